"""What the first words of mslaunch choose."""

import subprocess
import sys
import unicodedata

import pytest

from hccl_tools.common import project, typed
from tools.front import commands, pages

PATHS = f"{project.ROOT}:{project.path('tests', 'fixtures', 'stub_mindspore')}"


def mslaunch(*words, cwd=None, **more):
    return subprocess.run(
        [sys.executable, "-m", "mindspore_launch", *words],
        cwd=cwd,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": PATHS, "LC_ALL": "C.UTF-8", **more},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.parametrize("language", ["en", "zh"])
def test_its_help_is_one_screen(monkeypatch, language):
    monkeypatch.setattr(typed._Typed, "front", ("mslaunch",))
    monkeypatch.setenv("LAUNCH_LANG", language)
    from hccl_tools.common import language as messages

    messages._catalogue.cache_clear()
    try:
        lines = pages.overview().splitlines()
    finally:
        monkeypatch.undo()
        messages._catalogue.cache_clear()
    assert len(lines) <= 24
    assert [line for line in lines if columns(line) > 80] == []


def columns(line):
    return sum(1 + (unicodedata.east_asian_width(letter) in "WF") for letter in line)


def test_every_command_of_the_help_is_one():
    for _, rows in commands.GROUPS:
        for row in rows:
            first, *rest = row.typed.split()
            for word in first.split("|"):
                several = rest[0].split("|") if word in commands.groups() else [""]
                for second in several:
                    file, _, _ = commands.find([word, second])
                    assert row.typed.startswith("-n") or file not in ("", "?"), (word, second)


def test_every_script_is_a_preset():
    for name in commands.names():
        file, words, number = commands.find([name, "x"])
        assert name in ("help", "launch") or file, name
        assert words.split()[:1] == [name][: bool(words)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "words, status, said",
    [
        ([], 2, "mslaunch: a program, a config or a command is missing; see: "),
        (["table"], 2, "mslaunch: table: add a command: build, check, merge, show"),
        (["table", "chek"], 2, "mslaunch: table chek: write one of build, check, merge, show"),
        (["daignose"], 2, "mslaunch: daignose: no such command, program on PATH or file; did you mean"),
        (["help", "restrats"], 2, "mslaunch: help restrats: no such page; did you mean restarts?"),
        (["--bogus", "x.py"], 2, "mslaunch: unknown option --bogus; see: "),
        (["watch", "--bogus"], 2, "mslaunch watch: error: unrecognized arguments: --bogus"),
        (["ascend4p", "--bogus", "x.py"], 2, "mslaunch ascend4p: unknown option --bogus; see: "),
    ],
)
def test_a_mistake_says_what_to_type(words, status, said):
    ended = mslaunch(*words)
    assert (ended.returncode, ended.stdout) == (status, "")
    assert said in ended.stderr


def test_a_group_of_commands_says_which_it_has():
    shown = mslaunch("table", "--help")
    assert shown.returncode == 0 and " table build|check|merge|show|convert|diff ..." in shown.stdout
    assert mslaunch("help", "table").stdout == shown.stdout


def test_the_network_check_needs_a_table():
    ended = mslaunch("network")
    assert ended.returncode == 2 and "required: RANK_TABLE_FILE" in ended.stderr


def test_a_launch_may_be_named(tmp_path):
    program = tmp_path / "watch"
    program.write_text("#!/bin/sh\necho ran\n")
    program.chmod(0o755)
    words = ["launch", "-n", "1", "--device_target", "CPU", f"--log_dir={tmp_path}/logs", "watch"]
    ended = mslaunch(*words, PATH=f"{tmp_path}:/usr/bin:/bin")
    assert (ended.returncode, ended.stdout) == (0, "ran\n"), ended.stderr


@pytest.mark.slow
def test_the_version_is_the_same_everywhere():
    said = mslaunch("--version").stdout
    assert said.startswith("mindspore-launch 1.")
    assert mslaunch("watch", "--version").stdout == said == mslaunch("ascend4p", "--version").stdout


@pytest.mark.slow
def test_a_page_of_help_is_printed():
    assert mslaunch("help", "restarts").stdout.startswith("# Time limits and restarts")
    assert mslaunch("help", "launch").stdout.startswith("Starts any number of ranks")
    assert "ascend8p" in mslaunch("help", "scripts").stdout


@pytest.mark.slow
def test_python_variables_and_folders_of_the_user_do_not_steer_it(tmp_path):
    for name in ("tools", "hccl_tools"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('theirs')")
    program = tmp_path / "train.py"
    program.write_text("import os\nprint('rank', os.environ['RANK_ID'], os.environ['PYTHONPATH'])\n")
    paths = f"{tmp_path}:{project.ROOT}"
    ended = mslaunch("-n", "1", "--device_target", "CPU", f"--log_dir={tmp_path}/logs", str(program), PYTHONPATH=paths)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[-1] == f"rank 0 {paths}"


@pytest.mark.slow
def test_a_config_of_the_project_is_found_from_every_folder(tmp_path):
    name = "configs/mnist/lenet5_digits.yaml"
    words = ["run_cpu", "--dry_run", "--no_check", name]
    ended = mslaunch(*words, cwd=tmp_path, DATA_PATH=str(tmp_path))
    assert f"--config {project.path(name)}" in ended.stdout, ended.stderr
    (tmp_path / "configs/mnist").mkdir(parents=True)
    (tmp_path / name).write_text("{")
    theirs = mslaunch(*words, cwd=tmp_path)
    assert theirs.returncode == 78 and name in theirs.stderr
