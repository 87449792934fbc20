"""The trainer alone: what it says when it cannot train."""

import os
import pathlib
import subprocess
import sys

import pytest

from tools.trainer import job

PROJECT = pathlib.Path(__file__).resolve().parents[2]
DIGITS = PROJECT / "configs" / "mnist" / "lenet5_digits.yaml"
ON_CPU = ["--config", str(DIGITS), "-o", "system.device_target=CPU"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "variables", "said"),
    [
        (["--config", "nix.yaml"], {}, "nix.yaml: no such file"),
        (
            ["--config", str(DIGITS), "-o", "train.dataset.dataset_root=nix"],
            {"MS_ROLE": "MS_WORKER"},
            "dataset_root nix: no such folder",
        ),
        (["--config", str(DIGITS), "-o", "system.mod=1"], {}, 'did you mean "mode"?'),
        (
            ON_CPU,
            {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "1"},
            "/scripts/run_mpirun.sh instead",
        ),
        (
            ON_CPU,
            {"SLURM_STEP_NUM_TASKS": "2", "SLURM_LOCALID": "1"},
            "/scripts/run_slurm.sh instead",
        ),
        (ON_CPU, {}, "no launcher has started this process"),
    ],
)
def test_a_trainer_that_cannot_train_says_so_in_a_line_before_it_loads_mindspore(tmp_path, arguments, variables, said):
    (tmp_path / "mindspore.py").write_text("raise SystemExit('imported')")
    command = [sys.executable, str(PROJECT / "tools" / "train.py"), *arguments]
    of_launchers = ("MS_", "RANK_", "OMPI_", "SLURM_")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(of_launchers)}
    environment = {**clean, "PYTHONPATH": str(tmp_path), **variables}
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 2
    assert said in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_a_rank_leaves_without_what_python_does_at_exit():
    # MindSpore's function at exit is the registered one here: on a busy machine it may crash
    code = "import atexit; from tools.trainer import job; atexit.register(print, 'end'); print('flushed'); job.leave(3)"
    ended = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (3, "flushed\n"), ended.stderr


def test_a_rank_leaves_when_no_other_thread_of_it_runs(monkeypatch):
    """One may still owe another rank an answer, which would wait for it and fail."""
    runs, asked = [True, True, False], []
    monkeypatch.setattr(job, "runs_another_thread", lambda: asked.append("asked") or runs[len(asked) - 1])
    monkeypatch.setattr(os, "_exit", asked.append)
    job.leave(3)
    assert asked == ["asked", "asked", "asked", 3]


THREADS = """
import hashlib, threading, time
from tools.trainer import job
assert not job.runs_another_thread()
thread = threading.Thread(target=hashlib.pbkdf2_hmac, args=("sha256", b"", b"", 1_000_000))
thread.start()
while not job.runs_another_thread():
    time.sleep(0.001)
thread.join()
while job.runs_another_thread():
    time.sleep(0.001)
"""


def test_another_thread_runs():
    ended = subprocess.run([sys.executable, "-c", THREADS], cwd=PROJECT, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
