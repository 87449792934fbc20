"""The files of scripts/ know each other in one direction only, and each keeps what is its own to itself."""

import re

import documents
import pytest
from test_structure import circle

SCRIPTS = documents.ROOT / "scripts"
LIBRARY = sorted((SCRIPTS / "lib").rglob("*.sh"))
FILES = [*LIBRARY, *sorted(SCRIPTS.glob("*.sh"))]
# Between the launcher, its engines' agents and the ranks: the environment (rank_entry.sh) belongs to none of them.
SHARED = ("LAUNCH_", "MS_", "RANK_", "DEVICE_")
CALL = re.compile(r"(?<![\w:/])([a-z_]+)::(_?\w+)")


def code(path):
    """What bash reads: no comments, no text in single quotes."""
    text = re.sub(r"(?m)(^|\s)#.*$", "", path.read_text(encoding="utf-8"))
    return re.sub(r"'[^']*'", lambda text: text[0] if "::" in text[0] else "''", text)


def defined(path):
    return {match[0] for match in re.findall(r"(?m)^((?:\w+)::(\w+))\(\)", code(path))}


def called(path):
    return {f"{space}::{name}" for space, name in CALL.findall(code(path))} - defined(path)


def owner(path):
    """How the names of a file's globals begin; those of all engines alike."""
    return "ENGINE" if path.parent.name == "engines" else path.stem.upper()


def knows():
    """{file: the files of which it calls functions}"""
    homes = {}
    for path in LIBRARY:
        for name in defined(path):
            homes.setdefault(name, set()).add(path)
    return {path: {home for name in called(path) for home in homes.get(name, ())} for path in FILES}


def test_no_circle():
    known = knows()
    assert sum(map(len, known.values())) > 50  # the calls are found at all
    assert circle(known) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_called_function_is_there(path):
    everything = set().union(*map(defined, LIBRARY))
    assert called(path) - everything == set()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_private_function_of_another_file(path):
    assert [name for name in called(path) if "::_" in name] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_global_of_another_file_is_set(path):
    text = code(path)
    assigned = re.findall(r"(?:^|[\s;(])([A-Z][A-Z_]+)(?:\[[^\]\s]*\])?\+?=", text)
    assigned += re.findall(r"(?:printf -v|unset|read .*)\s\"?([A-Z][A-Z_]+)\b", text)
    assigned += re.findall(r"\{([A-Z][A-Z_]+)\}[<>]+", text)
    others = {owner(other) for other in LIBRARY} - {owner(path)} - ({"LOG"} if path.parent == SCRIPTS else set())
    foreign = {name for name in assigned for other in others if name == other or name.startswith(other + "_")}
    assert {name for name in foreign if not name.startswith(SHARED)} == set()


def test_no_here_string():
    """Before bash 5.1 each is a temporary file, for which there may be no room."""
    here = [path.name for path in FILES if "<<<" in re.sub("#.*", "", path.read_text(encoding="utf-8"))]
    assert here == []
