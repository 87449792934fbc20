"""Which files a program consists of."""

import os

import pytest

from tools.launch.programs import sources


@pytest.fixture
def project(tmp_path, monkeypatch):
    """project({path: text}): writes files below the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)

    def write(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    return write


def found(program):
    """The paths of the files, relative to the current folder."""
    return {os.path.relpath(path) for path, _ in sources.contents(program)}


@pytest.mark.parametrize(
    ("line", "also"),
    [
        ("import a", {"a.py"}),
        ("import os, a as b, p.q", {"a.py", "p/__init__.py", "p/q.py"}),
        ("from p import q", {"p/__init__.py", "p/q.py"}),
        ("from p import (\n    q,\n    nothing,\n)", {"p/__init__.py", "p/q.py"}),
        ("from p.q import thing", {"p/__init__.py", "p/q.py"}),
        ("if True:\n    from p.q import thing", {"p/__init__.py", "p/q.py"}),
        ("import p", {"p/__init__.py"}),
        ("import r", {"r/__init__.py", "r/s.py", "a.py"}),  # from .s import x; from ..a import y
        ("important = 1\n'from p import q'", set()),
        ("from \xff import \xfe", set()),
        ("import json, mindspore", set()),
    ],
)
@pytest.mark.parametrize("folder", ["", "tools/"])
def test_a_program_is_its_file_and_what_it_imports_from_its_project(project, line, also, folder):
    project({"p/__init__.py": "", "p/q.py": "", "a.py": "import a", "b.py": ""})
    project({"r/__init__.py": "from .s import x", "r/s.py": "from ..a import y"})
    project({f"{folder}train.py": line})
    assert found(f"{folder}train.py") == {f"{folder}train.py", *also}


def test_pythonpath_counts_and_what_python_has_does_not(project, monkeypatch):
    project({"else/where/m.py": "", "train.py": "import m, pytest"})
    assert found("train.py") == {"train.py"}
    monkeypatch.setenv("PYTHONPATH", f"{os.pathsep}else/where")
    assert found("train.py") == {"train.py", "else/where/m.py"}


def test_a_large_project_is_not_read_to_its_end(project, monkeypatch):
    monkeypatch.setattr(sources, "MOST_FILES", 20)
    project({f"m{n}.py": f"import m{n + 1}" for n in range(30)})
    assert len(found("m0.py")) == 20


def test_a_file_that_cannot_be_read_is_left_out(project):
    project({"train.py": "import a, b", "b.py": ""})
    os.symlink("a.py", "a.py")
    os.mkdir("c.py")
    assert found("train.py") == {"train.py", "b.py"}
    assert found("c.py") == set()
