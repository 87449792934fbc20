"""The files of scripts/ declare; what runs is Python, and lib/start.sh is all that leads there."""

import re

import documents
from suite.cases import for_each

from tools.pages import commands

SCRIPTS = documents.ROOT / "scripts"
FILES = [*sorted(SCRIPTS.glob("*.sh")), SCRIPTS / "lib" / "start.sh"]
LARGE = {"doctor.sh"}  # has a page of its own for machines without Python


def code(path):
    """What bash reads: no comments, no text in single quotes."""
    text = re.sub(r"(?m)(^|\s)#.*$", "", path.read_text(encoding="utf-8"))
    return re.sub(r"'[^']*'", "''", text)


def test_the_library_is_one_file():
    assert [path.name for path in (SCRIPTS / "lib").iterdir()] == ["start.sh"]


@for_each("name", commands.SCRIPTS)
def test_a_script_hands_over_to_the_library_and_to_nothing_else(name):
    text = code(SCRIPTS / name)
    sourced = re.findall(r"(?m)^\s*(?:\\?\.|source) (\S+)", text)
    assert set(sourced) == (set() if name in LARGE else {'"$LAUNCH_LIB/start.sh"'})
    assert text.count("\n") < (120 if name in LARGE else 60)


@for_each("path", [path for path in FILES if path.name not in LARGE])
def test_no_script_has_functions_or_options_of_bash(path):
    """A function of the caller's could have its name; and what bash was told is the ranks' (SHELLOPTS)."""
    text = code(path)
    assert re.findall(r"(?m)^\s*[\w:]+\(\)|^\s*function ", text) == []
    assert re.findall(r"(?m)^\s*\\?(?:set|shopt) .*", text) == []


def test_all_of_it_is_short():
    assert sum(path.read_text(encoding="utf-8").count("\n") for path in FILES) <= 900


def test_no_here_string():
    """Before bash 5.1 each is a temporary file, for which there may be no room."""
    here = [path.name for path in FILES if "<<<" in re.sub("#.*", "", path.read_text(encoding="utf-8"))]
    assert here == []
