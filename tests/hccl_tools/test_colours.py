"""Who gets colours: a person at a terminal who wants them, and nobody else."""

import json
import os
import pty
import re
import types

import pytest

from hccl_tools.common import colours

TERMINAL, PIPE = types.SimpleNamespace(isatty=lambda: True), types.SimpleNamespace(isatty=lambda: False)


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, True),
        ({"NO_COLOR": ""}, True),  # no-color.org: an empty one does not count
        ({"NO_COLOR": "0"}, False),
        ({"TERM": "dumb"}, False),
        ({"TERM": ""}, False),
        ({"TERM": None}, False),
    ],
)
def test_a_terminal_gets_colours_unless_its_user_wants_none(monkeypatch, variables, expected):
    for name, value in variables.items():
        monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(name, value)
    ours, theirs = pty.openpty()
    assert colours.wanted(TERMINAL) is colours.wanted(theirs) is expected
    os.close(ours)
    os.close(theirs)


@pytest.mark.parametrize("name", ["FORCE_COLOR", "CLICOLOR_FORCE"])
def test_a_pipe_gets_none_whatever_is_exported(monkeypatch, name):
    monkeypatch.setenv(name, "1")
    reads, writes = os.pipe()
    assert not colours.wanted(PIPE) and not colours.wanted(writes) and not colours.wanted(None)
    os.close(reads)
    os.close(writes)
    assert not colours.wanted(writes)  # it is closed


def test_a_styled_text_is_the_text_alone_for_all_that_does_not_ask_for_its_style():
    text = colours.styled("rank 2 failed", colours.FAILURE)
    assert text == "rank 2 failed" and f"{text}" == str(text) == "rank 2 failed"
    assert json.dumps([text]) == '["rank 2 failed"]'
    assert colours.style_of(text) == colours.FAILURE and colours.style_of("plain") == ""


@pytest.mark.parametrize("style", colours.CODES)
def test_a_style_changes_no_text_and_ends_where_it_should(style):
    for text in ("    cause: full: no", "原因：满", "no colon"):
        shown = colours.shown(text, style)
        assert re.sub(r"\x1b\[[0-9;]*m", "", shown) == text == colours.shown(text, style, coloured=False)
        assert "\x1b" not in shown.rpartition("\x1b[0m")[2]


def test_a_label_ends_with_the_first_colon():
    assert colours.shown("    cause: full: no", colours.LABEL) == "\x1b[36m    cause:\x1b[0m full: no"
    assert colours.shown("原因：a: b", colours.LABEL) == "\x1b[36m原因：\x1b[0ma: b"
    assert colours.shown("no colon", colours.LABEL) == "no colon"
    assert colours.shown("", colours.FAILURE) == ""


def test_whole_lines_have_no_colour_that_a_light_or_a_dark_terminal_shows_badly():
    """Bold, or bold and red: of the standard colours the only one that can be read on both."""
    assert {colours.CODES[style] for style in (colours.FAILURE, colours.HEAD)} == {"1;31", "1"}
    assert all(set(code.split(";")) <= {"1", "2", *map(str, range(31, 37))} for code in colours.CODES.values())
