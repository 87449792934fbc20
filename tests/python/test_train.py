"""The trainer alone: what it says when it cannot train."""

import os
import pathlib
import subprocess
import sys

import pytest

PROJECT = pathlib.Path(__file__).resolve().parents[2]
DIGITS = PROJECT / "configs" / "mnist" / "lenet5_digits.yaml"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--config", "nix.yaml"], "nix.yaml: no such file"),
        (["--config", str(DIGITS), "-o", "train.dataset.dataset_root=nix"], "dataset_root nix: no such folder"),
        (["--config", str(DIGITS), "-o", "system.mod=1"], 'did you mean "mode"?'),
    ],
)
def test_a_trainer_that_cannot_train_says_so_in_a_line_before_it_loads_mindspore(tmp_path, arguments, said):
    (tmp_path / "mindspore.py").write_text("raise SystemExit('imported')")
    command = [sys.executable, str(PROJECT / "tools" / "train.py"), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 2
    assert said in ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize("shared", [False, True])
def test_a_rank_signs_off_only_from_a_scheduler_that_other_launchers_need_too(shared):
    # MindSpore's function at exit stands for the registered one: on a busy machine it may crash
    code = "import atexit; from tools import train; atexit.register(print, 'signed off'); train.leave(3)"
    env = {name: value for name, value in os.environ.items() if name != "LAUNCH_SHARED_SCHEDULER"}
    env.update({"LAUNCH_SHARED_SCHEDULER": "1"} if shared else {})
    root = pathlib.Path(__file__).resolve().parents[2]
    ended = subprocess.run([sys.executable, "-c", code], cwd=root, env=env, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (3, "signed off\n" if shared else ""), ended.stderr
