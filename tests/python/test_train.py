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


def test_a_rank_leaves_without_what_python_does_at_exit():
    # MindSpore's function at exit is the registered one here: on a busy machine it may crash
    code = "import atexit; from tools.trainer import job; atexit.register(print, 'end'); print('flushed'); job.leave(3)"
    ended = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (3, "flushed\n"), ended.stderr
