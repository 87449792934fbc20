"""Our commands in messages have the form that this user types."""

import os
import sys

import pytest

from hccl_tools.common import project, typed
from hccl_tools.common.language import tr

FILES = sorted(typed.WORDS)


@pytest.fixture
def of_front(tmp_path, monkeypatch):
    """mslaunch was typed, and the shell finds it."""
    program = tmp_path / "bin" / "mslaunch"
    program.parent.mkdir()
    program.touch(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(typed._Typed, "is_front", False)
    monkeypatch.setattr(typed._Typed, "front", None)
    monkeypatch.setattr(typed._Typed, "name", None)
    typed.use(str(program), ["watch"])


def test_every_file_of_the_table_is_there():
    assert [file for file in FILES if not os.path.exists(project.path(file))] == []


def test_a_checkouts_commands_are_files(monkeypatch):
    monkeypatch.chdir(project.ROOT)
    text = "see docs/gpu.md, python tools/watch.py logs, bash scripts/doctor.sh, tools/train.py"
    assert typed.as_typed(text) == text
    assert typed.command("tools/watch.py", "logs/a b") == "python tools/watch.py logs/a\\ b"
    assert typed.name_of("watch.py") == "watch.py"


def test_from_another_folder_they_have_their_whole_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    root = project.ROOT
    assert typed.as_typed("any number: scripts/launch.sh -n N") == f"any number: bash {root}/scripts/launch.sh -n N"
    assert typed.as_typed("python tools/train.py; see docs/gpu.md") == (
        f"python {root}/tools/train.py; see {root}/docs/gpu.md"
    )


@pytest.mark.parametrize(
    "text, expected",
    [
        ("python tools/diagnose.py {run}", "mslaunch diagnose {run}"),
        ("any number: scripts/launch.sh -n N", "any number: mslaunch -n N"),
        ("bash scripts/ascend4p.sh CONFIG", "mslaunch ascend4p CONFIG"),
        ("build it with hccl_tools/hccl_tools.py", "build it with mslaunch table build"),
        ("see docs/zh/gpu.md, and docs/restarts.md", "see mslaunch help gpu, and mslaunch help restarts"),
        ("`make data` makes data/digits", "`mslaunch prepare digits data/digits` makes data/digits"),
        ("default: tools/train.py of this folder", "default: tools/train.py of this folder"),
        ("/their/scripts/run.sh, their-tools/watch.py, scripts/other.sh", None),
    ],
)
def test_installed_they_are_words_of_mslaunch(of_front, text, expected):
    assert typed.as_typed(text) == (expected or text)


def test_a_batch_system_gets_the_file_of_a_script(of_front):
    path = project.path("scripts", "run_slurm.sh")
    assert typed.as_typed("sbatch -N 2 scripts/run_slurm.sh CONFIG") == f"sbatch -N 2 {typed.short_path(path)} CONFIG"


def test_messages_take_the_form_before_their_values(of_front):
    text = tr("{size} of logs are not read yet: python tools/diagnose.py RUN reads them", size="tools/watch.py {x}")
    assert "mslaunch diagnose RUN" in text
    assert "tools/watch.py {x}" in text


def test_a_brace_in_the_projects_path_is_no_place_for_a_value(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(project, "ROOT", "/opt/{launch}")
    monkeypatch.setattr(typed, "_is_command", lambda file: True)
    text = tr("{size} of logs are not read yet: python tools/diagnose.py RUN reads them", size="1 KB")
    assert "python '/opt/{launch}/tools/diagnose.py' RUN" in text or "/opt/\\{launch\\}/tools/diagnose.py RUN" in text


def test_to_ask_for_the_words_does_not_change_how_commands_are_named(monkeypatch):
    monkeypatch.setattr(typed._Typed, "is_front", False)
    monkeypatch.setattr(typed._Typed, "front", None)
    assert typed.front() and not typed.is_front()


def test_messages_begin_with_what_was_typed(of_front):
    assert typed.name_of("watch.py") == "mslaunch watch"


def test_mslaunch_that_no_path_has_is_named_by_its_python(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(typed._Typed, "is_front", False)
    monkeypatch.setattr(typed._Typed, "front", None)
    monkeypatch.setattr(typed._Typed, "name", None)
    typed.use("/gone/mslaunch", [])
    assert typed.front() == (sys.executable, "-m", "mindspore_launch")
