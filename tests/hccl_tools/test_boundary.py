import json
import os
import shlex
import subprocess
import sys

import pytest

from hccl_tools.commands import boundary
from hccl_tools.common import project
from hccl_tools.common.refusal import Refusal
from hccl_tools.table import rank_table

COMMANDS = {
    "hccl_tools/hccl_tools.py": ["--device_num", "0", "--server_ip", "10.0.0.1", "--stdout"],
    "hccl_tools/merge_hccl.py": ["t.json", "--stdout"],
    "hccl_tools/validate_hccl.py": ["t.json"],
    "hccl_tools/convert_hccl.py": ["t.json", "--to", "1.2"],
    "hccl_tools/diff_hccl.py": ["t.json", "t.json"],
    "hccl_tools/show_hccl.py": ["t.json", "--format", "svg"],
    "hccl_tools/check_network.py": ["t.json", "--format", "json", "--server_id", "10.0.0.1"],
    "tools/runs.py": ["--json"],
    "tools/watch.py": ["--once", "logs/run"],
    "tools/report.py": ["logs/run"],
}
PLAN = {"script": "ascend2p.sh", "started": "2026-01-31T12:00:00Z", "host": "h", "device_target": "CPU", "run_dir": "x"}


def raising(error):
    def work():
        raise error

    return work


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (Refusal(78, "one", "two\nlines"), 78, "x.py: one\nx.py: two\\nlines\n"),
        (PermissionError(13, "Permission denied", "logs"), 2, "x.py: logs: Permission denied\n"),
        (ImportError("broken", name="rich"), 2, "x.py: this needs rich 9.4.0 or later; "),
        (ImportError("not installed"), 2, "x.py: this needs jsonschema 4.0.1 or later; "),
    ],
)
def test_what_a_command_raises_becomes_lines_and_an_exit_code(in_process, error, status, said):
    found, out, err = in_process(lambda _: boundary.run("x.py", raising(error)))
    assert (found, out) == (status, "")
    assert err.startswith(said)


def test_a_mistake_of_ours_is_not_hidden():
    with pytest.raises(KeyError):
        boundary.run("x.py", raising(KeyError("x")))


@pytest.mark.slow
@pytest.mark.parametrize("words", ["nowhere.json", "--no-such-option", "--format nix x.json"])
def test_what_a_closed_stderr_would_get_does_not_go_to_stdout(world, words):
    command = f"exec {shlex.quote(sys.executable)} {project.path('hccl_tools', 'validate_hccl.py')} {words} 2>&-"
    ended = subprocess.run(["bash", "-c", command], stdout=subprocess.PIPE, text=True)
    assert (ended.returncode, ended.stdout) == (2, "")


@pytest.mark.slow
@pytest.mark.parametrize("program", COMMANDS)
@pytest.mark.parametrize(("stdout", "lines"), [("full", 1), ("closed", 0)])
def test_a_stdout_that_cannot_be_written_is_exit_2_without_a_traceback(run, cards, world, program, stdout, lines):
    (world / "t.json").write_text(rank_table.dump(rank_table.build([(0, "192.168.100.1")], "10.0.0.1")))
    (world / "logs" / "run").mkdir(parents=True)
    (world / "logs" / "run" / "launch.json").write_text(json.dumps({**PLAN, "ranks": []}))
    target = os.open("/dev/full", os.O_WRONLY)
    if stdout == "closed":
        reading, target = os.pipe()
        os.close(reading)
    ended = run(program, *COMMANDS[program], capture_output=False, stdout=target, stderr=subprocess.PIPE)
    os.close(target)
    complaints = [
        line for line in ended.stderr.splitlines() if "cannot write to stdout: No space left on device" in line
    ]
    assert (ended.returncode, len(complaints), "Traceback" in ended.stderr) == (2, lines, False), ended.stderr
