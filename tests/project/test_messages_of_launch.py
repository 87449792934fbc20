"""What tools/launch and tools/attempts say in Chinese: refusals of the planner, and what hosts say of each other."""

import os
import subprocess
import sys
from pathlib import Path

import polib
import pytest
from launch import launching

from hccl_tools.common import language
from tools.attempts.verdict import NOT_STARTED, Attempts
from tools.launch import request
from tools.pages import messages


def refused(tmp_path, script, *typed):
    """What the script says on stderr, in Chinese."""
    environment = {name: value for name, value in os.environ.items() if name not in ("RANK_TABLE_FILE", "RESUME")}
    environment.update(LAUNCH_LANG="zh", LC_ALL="C.UTF-8", PYTHON=sys.executable)
    (tmp_path / "data").mkdir()
    command = ["bash", Path(messages.ROOT, "scripts", script), *typed]
    ended = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, encoding="utf-8", timeout=300, check=False
    )
    assert ended.returncode in (2, 78), ended
    return ended.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (
            ["ascend8p.sh", "--devices", "0,1", "config.yaml"],
            'ascend8p.sh: --devices "0,1" 指定了 2 个设备 (0,1)，而 ascend8p.sh 启动 8 个；请用 scripts/ascend2p.sh',
        ),
        (
            ["run.sh", "--device_target", "GPU", "data", "8"],
            "run.sh: --device_target GPU：run.sh 接受 Ascend 和 CPU；GPU 请用：bash {root}/scripts/run_gpu.sh",
        ),
        (["run.sh", "data", "3"], "run.sh: RANK_SIZE 3：请写 1, 2, 4 或 8"),
        (
            ["run.sh", "--train_script", "nix.py", "data", "8"],
            "run.sh: --train_script nix.py：文件不存在；请指定做训练的 Python 文件",
        ),
        (
            ["run.sh", "--pod_wait", "x", "data", "8"],
            "run.sh: 未知选项 --pod_wait；run_pod.sh 接受它；帮助：bash {script} --help",
        ),
        (
            ["run.sh", "--max_restarts", "x", "data", "8"],
            "run.sh: --max_restarts x 不是至多 8 位的整数；帮助：bash {script} --help",
        ),
    ],
    ids=["devices", "target", "rank_size", "trainer", "option", "number"],
)
def test_the_launcher_refuses_in_chinese(tmp_path, typed, said):
    assert (
        refused(tmp_path, *typed)
        == said.format(script=Path(messages.ROOT, "scripts/run.sh"), root=messages.ROOT) + "\n"
    )


def test_without_a_catalogue_a_refusal_is_english(monkeypatch):
    monkeypatch.setattr(language, "_catalogue", lambda: None)
    with pytest.raises(request.Refusal, match="RANK_SIZE 3: write 1, 2, 4 or 8"):
        launching.request(rank_size="3")


def test_a_host_that_does_not_come_is_named_in_chinese(monkeypatch):
    catalogue = polib.mofile(messages.compiled(messages.CATALOGUE))
    texts = {entry.msgid: entry.msgstr for entry in catalogue}
    monkeypatch.setattr(language, "_catalogue", lambda: type("Chinese", (), {"gettext": staticmethod(texts.get)}))
    told = []
    attempts = Attempts(["10.0.0.1", "10.0.0.2"], 1, 100, 0, told.append)
    attempts.ready(0, 0)
    attempts.check_time()
    assert told == [["end", 0, NOT_STARTED, "10.0.0.2", "0 秒后仍未就绪（10.0.0.2：2 台主机中的 1 台）"]]
