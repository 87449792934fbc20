"""tools/launch/main.py as a process: what it does when the launcher has ended, and when Python's cache is damaged."""

import compileall
import os
import shutil
import subprocess
import sys

import launching
import pytest


@pytest.fixture
def planned(tmp_path, monkeypatch, root):
    """planned(ROOT, stdout): the planner of the project in ROOT, for a launch on CPU; its exit code and stderr."""
    monkeypatch.setenv("PYTHONPATH", str(root / "tests/fixtures/stub_mindspore"))
    (tmp_path / "config.yaml").write_text("system:\n  distribute: False\n")
    (tmp_path / "train.py").write_text("")

    def run(root, stdout, pid):
        given = {"device_target": "CPU", "script_devices": "[0,1)", "alone": "1", "train_script": "train.py"}
        words = launching.words(script="run_cpu.sh", job_pid=str(pid), **given)
        command = [sys.executable, str(root / "tools/launch/main.py"), *words]
        ended = subprocess.run(command, cwd=tmp_path, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=60)
        return ended.returncode, ended.stderr

    return run


def test_a_plan_that_nobody_reads_ends_without_a_word(root, planned):
    gone = subprocess.Popen(["true"])
    gone.wait()
    source, sink = os.pipe()
    os.close(source)
    with open(sink, "wb") as plan:
        assert planned(root, plan, gone.pid) == (78, "")


def test_a_damaged_cache_of_python_is_named_with_its_remedy(root, planned, tmp_path):
    for name in ("tools", "hccl_tools"):
        shutil.copytree(root / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    compileall.compile_dir(tmp_path / "tools" / "launch", quiet=2)
    (cached,) = (tmp_path / "tools/launch/engines/__pycache__").glob("placement.*.pyc")
    os.truncate(cached, 1024)
    code, told = planned(tmp_path, subprocess.DEVNULL, os.getpid())
    assert code == 78
    remedy = f"delete the folders __pycache__ in {tmp_path}"
    assert told == f"run_cpu.sh: Python's cache of this project is damaged; {remedy}\n"
