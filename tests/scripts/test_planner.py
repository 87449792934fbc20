"""tools/launch/main.py as a process: a reader that has gone, a damaged cache of Python, packages of the user."""

import compileall
import os
import shutil
import subprocess
import sys

import pytest


@pytest.fixture
def planned(tmp_path, monkeypatch, root):
    """planned(ROOT, stdout, **environment): a dry run of the project in ROOT, on CPU; its exit code and stderr."""
    monkeypatch.setenv("PYTHONPATH", str(root / "tests/fixtures/stub_mindspore"))
    monkeypatch.setenv("PYTHON", sys.executable)
    (tmp_path / "config.yaml").write_text("system:\n  distribute: False\n")
    (tmp_path / "train.py").write_text("")

    def run(root, stdout, **environment):
        words = ["--dry_run", "--train_script", "train.py", "config.yaml"]
        command = ["bash", str(root / "scripts/run_cpu.sh"), *words]
        env = {**os.environ, **environment}
        ended = subprocess.run(
            command, cwd=tmp_path, stdout=stdout, stderr=subprocess.PIPE, env=env, text=True, timeout=300
        )
        return ended.returncode, ended.stderr

    return run


def test_a_plan_that_nobody_reads_ends_without_a_word(root, planned):
    source, sink = os.pipe()
    os.close(source)
    with open(sink, "wb") as plan:
        assert planned(root, plan) == (0, "")


def copy_of(root, folder):
    """A copy of the project, whose files may be damaged."""
    for name in ("tools", "hccl_tools", "scripts"):
        shutil.copytree(root / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.mark.slow
def test_a_damaged_cache_of_python_is_named_with_its_remedy(root, planned, tmp_path):
    copy = copy_of(root, tmp_path)
    compileall.compile_dir(copy / "tools" / "launch", quiet=2)
    (cached,) = (copy / "tools/launch/engines/__pycache__").glob("placement.*.pyc")
    os.truncate(cached, 1024)
    code, told = planned(copy, subprocess.DEVNULL)
    assert code == 78
    remedy = f"delete the folders __pycache__ in {copy}"
    assert told == f"run_cpu.sh: Python's cache of this project is damaged; {remedy}\n"


# ---- what Python would read of the user's --------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ["json.py", "os.py", "sitecustomize.py", "usercustomize.py", "re.py"])
def test_a_broken_module_in_pythonpath_does_not_reach_the_launcher(root, planned, tmp_path, name):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / name).write_text("raise SystemExit('broken')\n")
    path = os.pathsep.join([str(folder), str(root / "tests/fixtures/stub_mindspore")])
    assert planned(root, subprocess.DEVNULL, PYTHONPATH=path) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize("variable", ["PYTHONHOME", "PYTHONSTARTUP", "PYTHONPLATLIBDIR"])
def test_a_variable_of_python_does_not_reach_the_launcher(root, planned, tmp_path, variable):
    assert planned(root, subprocess.DEVNULL, **{variable: str(tmp_path / "none")}) == (0, "")


@pytest.mark.slow
def test_a_package_tools_beside_the_program_is_not_ours(root, planned, tmp_path):
    for name in ("tools", "hccl_tools"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('not ours')\n")
    path = os.pathsep.join([str(tmp_path), str(root / "tests/fixtures/stub_mindspore")])
    assert planned(root, subprocess.DEVNULL, PYTHONPATH=path) == (0, "")


@pytest.mark.slow
def test_a_checkout_that_cannot_be_written_and_has_no_cache(root, planned, tmp_path):
    copy = tmp_path / "checkout"
    copy.mkdir()
    copy_of(root, copy)
    for folder, _, _ in os.walk(copy):
        os.chmod(folder, 0o555)
    try:
        assert planned(copy, subprocess.DEVNULL, PYTHONDONTWRITEBYTECODE="1") == (0, "")
    finally:
        for folder, _, _ in os.walk(copy):
            os.chmod(folder, 0o755)
