"""Completes a launch: its options and their values, programs and configs, but nothing of ours after them."""

from __future__ import annotations

import os

from hccl_tools.common import project
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import Refusal
from hccl_tools.common.typed import FRONT
from tools.command import parse, table
from tools.command.declaration import Declaration
from tools.command.line import Line
from tools.front import presets, where
from tools.front.tab import offer, values
from tools.front.tab.offer import Offer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# Options that have another word in --help than what TAB should offer.
_TAKES = {**values.BY_NAME, "engine": "|".join(name for name in where.DECLARED if name != "server")}
_OF_MPIRUN = {"hostfile": "FILE", "hosts": "HOSTS", "host": "HOSTS", "H": "HOSTS"}  # mpirun_words.py takes them
_OF_FRONT = ("hostfile", "hosts")  # with one of them mslaunch starts the ranks by mpirun


class _Place(Record):
    """Where the cursor is."""

    others: bool = False  # behind --, the program, or another launcher's option: the word there is not ours
    option: str = ""  # behind this option, which may take the word


def find(script: str, words: Sequence[str], begun: str) -> Offer:
    """The candidates after the words of a launch by the script; empty: by mslaunch alone."""
    line = _line(script, words)
    takes = _takes(line, not script)
    place = _place(line, words)
    if place.others:
        return Offer(native=offer.FILES)
    logs = line.value("log_dir", "logs")
    wanted = takes.get(place.option, "")
    if wanted and not wanted.startswith("["):
        return values.of(wanted, begun, logs)
    if begun.startswith("--") and "=" in begun:
        return values.assigned(begun, takes.get(table.bare(begun), ""), logs)
    if begun.startswith("-"):
        shown = [*line.table, *(() if script else _OF_FRONT)]  # those that --help has
        return values.names([table.typed(name) for name in shown], begun)
    argument = _argument(line, begun)
    if not wanted:
        return argument
    value = values.of(wanted, begun, logs)  # or it is left out
    if value.words:
        return value
    return argument.replace(runs=value.runs)


def _line(script: str, words: Sequence[str]) -> Line:
    """The command line with what such a launch declares."""
    if script:
        told = [f"script={project.path(script)}", *presets.chosen(os.path.basename(script), list(words))]
    else:
        told = [f"script={FRONT}", f"name={FRONT}", *where.DECLARED[_engine(words)]]
    return Line(Declaration.from_words(told), os.environ)


def _engine(words: Sequence[str]) -> str:
    try:
        return where.without_table(words, os.environ).engine
    except Refusal:
        return "local"  # --engine has another value: the launch states this


def _takes(line: Line, is_front: bool) -> dict[str, str]:
    """{option: what it takes}; empty: a flag."""
    found = dict(_OF_MPIRUN) if is_front or line.declaration.others == "mpirun_words" else {}
    for name, option in line.table.items():
        found[name] = _TAKES.get(name, "" if option.takes == "-" else option.takes)
    return found


def _place(line: Line, words: Sequence[str]) -> _Place:
    """Reads the words into the line as far as they are right: what is wrong the launch itself reports."""
    at = start = 0
    while at < len(words):
        line.others.clear()  # `steps` puts them there
        try:
            for taken in parse.steps(line, words[at:]):
                start, at = at, at + taken
        except Refusal:
            start, at = at, at + 1
            continue
        if at < len(words):
            return _Place(others=True)
    last = words[-1] if words else ""
    if start < len(words) - 1 or not last.startswith("-") or "=" in last:
        return _Place()
    name = table.bare(last) if last.startswith("--") else last[1:]
    return _Place(option=name, others=name not in (*line.table, *_OF_MPIRUN) and _takes_value(line, last))


def _takes_value(line: Line, option: str) -> bool:
    """Whether it is another launcher's option, such as -np, that takes the next word."""
    try:
        return next(parse.steps(line, [option, "1"]), 1) > 1
    except Refusal:
        return False  # nobody knows it


def _argument(line: Line, begun: str) -> Offer:
    """The next argument of the script, or a program."""
    given, declared = len(line.arguments), line.names
    if given < len(declared):
        name = declared[given]
        takes = table.of((), ())["device_target"].takes if name == "DEVICE_TARGET" else name
        return values.of(takes, begun)
    if declared == ("CONFIG",):
        return Offer()  # what follows a config is an option or --
    return offer.files(offer.PROGRAMS, begun)
