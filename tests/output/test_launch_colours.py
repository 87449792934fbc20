"""The report of a launch on a terminal has the colours of the picture in the README; nothing else has any."""

import json
import os
import pty
import re
import subprocess
import sys

import pytest

from hccl_tools.commands import validate
from hccl_tools.common import project
from hccl_tools.common.problem import WARNING, Problem
from tools.output.voice import Voice
from tools.pages import report_picture

TRAINER = """
import os, time
if os.environ["RANK_ID"] == "1":
    open("data/part_2.rec")
time.sleep(60)
"""
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def on_terminal(folder, *words, stream="stderr", **variables):
    """What the command writes to the terminal that this stream is, and the other stream, which is a pipe."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "PYTHON": sys.executable, **variables}
    if "NO_COLOR" not in variables:
        environment.pop("NO_COLOR", None)
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: theirs}
    process = subprocess.Popen(words, cwd=folder, stdin=subprocess.DEVNULL, env=environment, **streams)
    os.close(theirs)
    seen = b""
    try:
        while block := os.read(ours, 1 << 16):
            seen += block
    except OSError:  # nobody has it open any more
        pass
    os.close(ours)
    piped = b"".join(filter(None, process.communicate(timeout=300)))
    return seen.decode().replace("\r\n", "\n"), piped.decode()


@pytest.fixture(scope="module")
def failed(tmp_path_factory):
    """A launch that fails: (its folder, its lines on a terminal, what its stdout got)."""
    folder = tmp_path_factory.mktemp("failed")
    (folder / "fails.py").write_text(TRAINER)
    words = ["bash", project.path("scripts", "launch.sh"), "--device_target", "CPU", "-n", "2", "fails.py"]
    seen, piped = on_terminal(folder, *words)
    return folder, seen.splitlines(), piped


@pytest.mark.slow
def test_the_report_is_coloured_as_the_picture_is(failed):
    _, lines, _ = failed
    expected = [report_picture.on_terminal(ESCAPE.sub("", line)) for line in lines]
    assert lines == expected
    red = [line for line in lines if "\x1b[1;31m" in line]
    assert [re.search("exited with code 1|1, failed first|failed first: ", line) is not None for line in red] == [
        True
    ] * 3
    labels = [re.search("\x1b\\[36m *(\\w+):\x1b", line) for line in lines]
    named = [label[1] for label in labels if label]
    assert named in (["cause", "remedy"], ["note", "cause", "remedy"])  # the note is about a Python without MindSpore


def test_the_picture_knows_all_of_the_recording(failed):
    shown = "".join(map(report_picture.on_terminal, report_picture.recorded()))
    for style in ("\x1b[1;31m", "\x1b[1m", "\x1b[36m"):
        assert style in shown and style in "".join(failed[1])


def test_no_pipe_and_no_file_of_the_run_has_an_escape(failed):
    folder, _, piped = failed
    assert "\x1b" not in piped
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 5 and [path.name for path in files if b"\x1b" in path.read_bytes()] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stream", "variables"), [("stderr", {"NO_COLOR": "1"}), ("stderr", {"TERM": "dumb"}), ("stdout", {})]
)
def test_each_stream_is_asked_alone(failed, stream, variables):
    words = ["bash", project.path("scripts", "launch.sh"), "--no_such_option"]
    seen, piped = on_terminal(failed[0], *words, stream=stream, **variables)
    assert "\x1b" not in seen + piped and "unknown option --no_such_option" in seen + piped
    seen, _ = on_terminal(failed[0], *words)
    assert seen.startswith("\x1b[1;31mlaunch.sh:\x1b[0m unknown option --no_such_option")


@pytest.mark.slow
def test_a_diagnosis_has_the_colours_of_the_report(failed):
    words = [sys.executable, project.path("tools", "diagnose.py")]
    seen, _ = on_terminal(failed[0], *words, stream="stdout")
    assert seen.startswith("\x1b[1;31mrank 1 (device 1) failed first: ") and "\x1b[36m    cause:\x1b[0m " in seen
    assert "\x1b" not in "".join(on_terminal(failed[0], *words))
    assert "\x1b" not in on_terminal(failed[0], *words, "--format", "json", stream="stdout")[0]


@pytest.mark.slow
def test_runs_shows_how_a_run_ended_in_red(failed):
    words = [sys.executable, project.path("tools", "runs.py")]
    head, row = on_terminal(failed[0], *words, stream="stdout", COLUMNS="200")[0].splitlines()
    assert head.startswith("\x1b[1mrun ") and " \x1b[1;31m1\x1b[0m " in row
    assert "\x1b" not in on_terminal(failed[0], *words, stream="stdout", COLUMNS="30", NO_COLOR="1")[0]


def test_what_a_message_quotes_stays_harmless(monkeypatch):
    """A style is added after that, and cannot be ended or begun by a text."""
    written = []
    monkeypatch.setattr(Voice, "line", lambda _, text: written.append(text))
    monkeypatch.setattr("hccl_tools.common.colours.wanted", lambda _: True)
    voice = Voice("a\x1b[31m.sh")
    voice.refuse("b\x1b[0m: c")
    voice.say("note: \x1b[2J")
    assert written == ["\x1b[1;31ma\\x1b[31m.sh:\x1b[0m b\\x1b[0m: c", "a\\x1b[31m.sh: \x1b[36mnote:\x1b[0m \\x1b[2J"]


@pytest.mark.slow
def test_validate_shows_the_places_of_problems_in_red(tmp_path, table):
    (tmp_path / "good.json").write_text(json.dumps(table(2)))
    (tmp_path / "bad.json").write_text(json.dumps(table(2, edits={"/status": "failed"})))
    tool = project.path("hccl_tools", "validate_hccl.py")
    words = [sys.executable, tool, "good.json", "bad.json"]
    first, *_, problem, last = on_terminal(tmp_path, *words, stream="stdout")[0].splitlines()
    assert first.startswith("good.json: \x1b[32mgood") and last.startswith("bad.json: \x1b[1;31m1 problem\x1b[0m")
    assert problem.startswith("\x1b[1;31mbad.json:")
    assert "\x1b" not in on_terminal(tmp_path, *words, stream="stderr")[1]
    assert "\x1b" not in on_terminal(tmp_path, *words, "--format", "json", stream="stdout")[0]


def test_a_warning_is_not_red():
    problem = Problem("code", "/a", "text", "remedy", WARNING, 3)
    assert validate.problem_line(problem, "f", True) == "f:3: /a: \x1b[33mwarning: \x1b[0mtext; remedy [code]"
    assert validate.problem_line(problem, "f", False) == problem.line("f")
