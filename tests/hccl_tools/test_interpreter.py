"""A person whose Python is too old or lacks a package sees one line, whatever the command."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from suite import needs
from suite.cases import for_each

from hccl_tools.machine import interpreter

ROOT = Path(__file__).resolve().parents[2]
# What is started as a file; MindSpore's scheduler only after the plan has looked for its imports.
COMMANDS = sorted(
    str(path.relative_to(ROOT))
    for folder in ("hccl_tools", "tools")
    for path in (ROOT / folder).glob("*.py")
    if path.read_text(encoding="utf-8").startswith("#!") and path.name != "scheduler.py"
)
OLD = {
    f"{version[0]}.{version[1]}": path
    for path in sorted(Path(os.environ.get("PYENV_ROOT", "/nonexistent"), "versions").glob("3.*/bin/python"))
    if (version := [int(part) for part in path.parts[-3].split(".")[:2]]) < [3, 9]
}


@pytest.fixture(params=[False, True], ids=["without .venv", "with .venv"])
def venv(request, tmp_path, monkeypatch):
    """Whether the project has an environment, which is not the active one."""
    monkeypatch.setattr(interpreter, "ROOT", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["/x/validate_hccl.py", "table.json"])
    if request.param:
        (tmp_path / ".venv/bin").mkdir(parents=True)
        (tmp_path / ".venv/bin/activate").touch()
    return request.param


def said(capsys, *modules):
    """The one line that interpreter.check ended with."""
    with pytest.raises(SystemExit) as end:
        interpreter.check(*modules)
    assert end.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_an_old_python_is_named_with_what_is_needed(venv, monkeypatch, capsys):
    monkeypatch.setattr(sys, "version_info", (3, 8, 18))
    line = said(capsys)
    assert line.startswith(f"validate_hccl.py: {sys.executable} is Python 3.8; 3.9 or later is needed; ")
    assert ("/.venv/bin/activate" if venv else f"make -C {interpreter.ROOT} data") in line


def test_a_missing_package_is_named_as_pip_knows_it(venv, monkeypatch, capsys):
    monkeypatch.setitem(interpreter.PACKAGES, "no_such_module", "No-Such")
    line = said(capsys, "json", "no_such_module")
    assert line.startswith(f"validate_hccl.py: {sys.executable} has no No-Such; ")
    assert ("activate this project's environment: source " if venv else "-m pip install No-Such") in line


def test_a_package_that_is_too_old_is_named_with_what_is_needed(monkeypatch):
    monkeypatch.setattr("importlib.metadata.version", lambda name: {"jsonschema": "3.2.0", "PyYAML": "5.1"}[name])
    with pytest.raises(ImportError, match="jsonschema 4.0.1 or later is needed") as caught:
        interpreter.new_enough("jsonschema")
    assert caught.value.name == "jsonschema"
    assert interpreter.install("jsonschema").endswith(" -m pip install 'jsonschema>=4.0.1'")
    interpreter.new_enough("yaml")


def test_a_python_that_is_right_hears_nothing(capsys):
    interpreter.check("yaml")
    assert capsys.readouterr() == ("", "")


@for_each(
    "command",
    [
        *COMMANDS,
        *("hccl_tools/machine/interpreter.py", "hccl_tools/common/project.py"),
        *("hccl_tools/__init__.py", "tools/__init__.py"),
    ],
)
def test_what_runs_before_the_check_is_read_by_old_pythons(command):
    """The whole file is parsed before its first line runs."""
    ast.parse((ROOT / command).read_text(encoding="utf-8"), feature_version=(3, 7))


@for_each("command", COMMANDS)
def test_a_command_checks_before_it_imports_what_may_not_be_there(command):
    source = (ROOT / command).read_text(encoding="utf-8")
    imports = re.findall(r"(?m)^\s*(?:from|import) (\S+)|^interpreter\.(?:check|python)\(", source)
    before = imports[: imports.index("")]
    allowed = {*getattr(sys, "stdlib_module_names", [name.partition(".")[0] for name in before]), "hccl_tools"}
    assert {name.partition(".")[0] for name in before} <= allowed


@pytest.mark.slow
@for_each("command", [command for command in COMMANDS if command != "tools/launch/main.py"])
@for_each("version", ["3.6", "3.7", "3.8"])
def test_a_real_old_python_says_so_at_once(version, command):
    if version not in OLD:
        pytest.skip(f"needs Python-{version}: below PYENV_ROOT")
    ended = subprocess.run(
        [str(OLD[version]), "-B", command, "x"], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    (line,) = ended.stderr.splitlines()
    assert f" is Python {version}; 3.9 or later is needed; " in line


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "module"),
    [
        (["tools/train.py", "--config", "configs/mnist/lenet5_digits.yaml"], "yaml"),
        (["tools/eval.py", "--config", "configs/mnist/lenet5_digits.yaml", "--ckpt", "x"], "yaml"),
        (["tools/diagnose.py", "logs/latest"], "yaml"),
        (["tools/prepare_digits.py", "x"], "sklearn"),
        (["tools/prepare_text.py", "x"], "PIL"),
        (["tools/prepare_cifar10.py", "x"], "numpy"),
        (["hccl_tools/validate_hccl.py", "bad.json"], "jsonschema"),
        (["hccl_tools/merge_hccl.py", "bad.json"], "jsonschema"),
        (["hccl_tools/convert_hccl.py", "bad.json", "--to", "1.2"], "jsonschema"),
        (["hccl_tools/diff_hccl.py", "good.json", "bad.json"], "jsonschema"),
        (["hccl_tools/check_network.py", "bad.json"], "jsonschema"),
        (["hccl_tools/show_hccl.py", "good.json"], "rich"),
    ],
)
def test_without_a_package_no_command_shows_a_traceback(command, module, tmp_path, table):
    needs.need_packages_of(command[0])
    (tmp_path / "bad.json").write_text('{"version": 1, "server_list": []}')
    (tmp_path / "good.json").write_text(json.dumps(table(2)))
    words = [str(tmp_path / word) if word.endswith(".json") else word for word in command]
    hide = f"import runpy, sys; sys.modules[{module!r}] = None; del sys.argv[0]; "
    hide += "runpy.run_path(sys.argv[0], run_name='__main__')"
    ended = subprocess.run(
        [sys.executable, "-c", hide, *words], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert ended.returncode == 2, ended.stderr
    assert "Traceback" not in ended.stderr
    package = interpreter.PACKAGES.get(module, module)
    assert package in ended.stderr.splitlines()[-1]
    assert "activate this project's environment" in ended.stderr or "pip install" in ended.stderr


ALONE = [command for command in COMMANDS if command.count("/") == 1]


@pytest.mark.slow
@for_each("command", ALONE)
def test_a_command_that_was_copied_without_its_project_says_what_it_needs(tmp_path, command):
    copy = shutil.copy(ROOT / command, tmp_path)
    ended = subprocess.run(
        [sys.executable, "-B", copy, "--help"], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == f"the rest of the project is not here; run it there: python PROJECT/{command}\n"


def test_the_commands_that_people_copy_are_among_them():
    assert {"hccl_tools/hccl_tools.py", "hccl_tools/validate_hccl.py", "tools/train.py"} <= {*ALONE}


def test_a_folder_that_was_copied_without_its_project_says_so(tmp_path, run):
    folder = shutil.copytree(ROOT / "hccl_tools", tmp_path / "hccl_tools")
    ended = run(folder / "validate_hccl.py", "x.json")
    assert (ended.returncode, ended.stdout) == (2, "")
    (line,) = ended.stderr.splitlines()
    assert line.startswith(f"validate_hccl.py: there is no {tmp_path}/schemas; ")
