"""Compiled files (.pyc) on the doctor's page: what Python would do at its next start, and how to change that."""

import os
import py_compile
import shlex
import subprocess
import sys

import pytest

from hccl_tools.machine import distributions
from tools.doctor import system

NAMES = ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX", "PYTHONOPTIMIZE")


@pytest.fixture
def package(tmp_path, monkeypatch):
    """The file that the import of the package `net` reads, which is not compiled."""
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    source = tmp_path / "site" / "net" / "__init__.py"
    source.parent.mkdir(parents=True)
    source.write_text("NUMBER = 1\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site"), *sys.path])
    monkeypatch.setattr(distributions, "OF_RANKS", ("net",))
    return source


def states(environment=None, name="net"):
    return [(each.state, each.stays) for each in distributions.look([name], environment or {})]


def loads_compiled(source, environment):
    """Whether Python itself takes a compiled file for this package; it is told to write none."""
    code = "import sys; sys.dont_write_bytecode = True; sys.path.insert(0, sys.argv[1]); import net"
    command = [sys.executable, "-v", "-c", code, str(source.parent.parent)]
    kept = {name: value for name, value in os.environ.items() if name not in NAMES}
    said = subprocess.run(command, env={**kept, **environment}, capture_output=True, text=True, check=True).stderr
    (taken,) = [line for line in said.splitlines() if line.startswith("# code object from") and "/net/" in line]
    assert taken.endswith((f"{source.parent}/__init__.py", ".pyc'"))
    return taken.endswith(".pyc'")


def test_compiled_files_that_python_takes_are_no_finding_and_others_are(package, tmp_path):
    cases = [
        ({}, {}),
        ({"PYTHONOPTIMIZE": "1"}, {"optimize": 1}),
        ({"PYTHONOPTIMIZE": "2"}, {"optimize": 2}),
        ({"PYTHONOPTIMIZE": "yes"}, {"optimize": 1}),
        ({"PYTHONPYCACHEPREFIX": f"{tmp_path}/cache"}, {"cfile": f"{tmp_path}/cache{package.parent}/__init__."}),
        ({}, {"invalidation_mode": py_compile.PycInvalidationMode.UNCHECKED_HASH}),
    ]
    for environment, options in cases:
        if "cfile" in options:
            options["cfile"] += f"{sys.implementation.cache_tag}.pyc"
        assert states(environment) == [("none", False)] and not loads_compiled(package, environment)
        path = py_compile.compile(str(package), **options)
        assert states(environment) == [] and loads_compiled(package, environment), environment
        os.unlink(path)


def test_compiled_files_of_other_sources_or_of_another_python_are_not_good(package):
    path = py_compile.compile(str(package))
    package.write_text("NUMBER = 22\n")
    assert states() == [("stale", False)] and not loads_compiled(package, {})
    with open(path, "r+b") as file:
        file.write(b"\0\0\r\n")
    assert states() == [("stale", False)]
    os.truncate(path, 3)
    assert states() == [("stale", False)]
    os.rename(path, path.replace(sys.implementation.cache_tag, "cpython-36"))
    assert states() == [("cpython-36", False)]


def test_what_keeps_python_from_writing_them_stays(package, monkeypatch):
    assert states({"PYTHONDONTWRITEBYTECODE": "1"}) == [("none", True)]
    assert states({"PYTHONDONTWRITEBYTECODE": ""}) == [("none", False)]
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert states() == [("none", True)]


def test_a_module_of_one_file_and_python_itself_are_looked_at_and_what_is_no_module_is_not(package):
    (package.parent.parent / "one.py").write_text("")
    assert states(name="one") == [("none", False)]
    for name in ("../net", "no_such_module", "net.part", "", "\0"):
        assert states(name=name) == []
    (standard,) = distributions.look(["Python"], {"PYTHONPYCACHEPREFIX": "/no/such/folder"})
    assert standard.folder == os.path.dirname(os.__file__) and standard.cache == f"/no/such/folder{standard.folder}"


def test_a_folder_with_a_hostile_name_is_no_tag(package):
    (package.parent / "__pycache__").mkdir()
    for name in ("__init__.\x1b[31m.pyc", "__init__..pyc", f"__init__.{'x' * 60}.pyc", "__init__", "x.cpython-39.pyc"):
        (package.parent / "__pycache__" / name).write_text("")
    assert states() == [("none", False)]


# ---- the page ------------------------------------------------------------------------------------------------------


def test_the_line_says_why_and_its_command_mends_it(package, monkeypatch):
    assert system.compiled() == (".pyc", "ok", "nothing is compiled at each start", "")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    line = system.compiled()
    assert line.status == "warning"
    assert line.text == "each rank compiles at each start: net (no .pyc); PYTHONDONTWRITEBYTECODE is set"
    command, _, rest = line.remedy.partition("; ")
    assert rest == "or leave the variable out: unset PYTHONDONTWRITEBYTECODE"
    assert shlex.split(command) == [sys.executable, "-m", "compileall", "-qq", str(package.parent)]
    subprocess.run(["sh", "-c", command], check=True)
    line = system.compiled()
    assert (line.status, line.remedy) == ("ok", "") and "PYTHONDONTWRITEBYTECODE is set: only" in line.text


def test_who_may_not_write_them_is_told_what_the_owner_can_do_and_what_he_can(package, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    line = system.compiled()
    assert line.text.endswith(f"net (no .pyc); this user cannot write {package.parent}/__pycache__")
    assert line.remedy.startswith("as its owner: ") and line.remedy.endswith(f"; or as yourself: {system.OWN_CACHE}")
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", "/no/such/folder")
    assert system.compiled().remedy == f"name a folder that you can write: {system.OWN_CACHE}"
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert system.compiled().remedy == "unset PYTHONDONTWRITEBYTECODE"


@pytest.mark.parametrize(
    ("state", "text"), [("none", "no .pyc"), ("stale", ".pyc of other sources"), ("cpython-36", ".pyc of cpython-36")]
)
def test_what_a_package_has_instead(state, text):
    assert system.state_of_compiled(state) == text
