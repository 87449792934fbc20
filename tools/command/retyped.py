"""Rebuilds a command line with other options, for a remedy that can be pasted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tools.command import table
from tools.command.declaration import Declaration
from tools.command.line import Line
from tools.command.parse import steps


def with_options(declaration: Declaration, words: Sequence[str], options: Mapping[str, str]) -> list[str]:
    """The words, which are not a mistake, with these options at their beginning and nowhere else; "": without a value.

    Options that the script does not have are left out.
    """
    line, at, known = Line(declaration, {}), 0, 0
    kept: list[str] = []
    for taken in steps(line, words):
        if not any(name in options for name, _ in line.options[known:]):
            kept += words[at : at + taken]
        at, known = at + taken, len(line.options)
    added = [name for name in options if name in line.table]
    front = [word for name in added for word in (table.typed(name), options[name]) if word]
    return [*front, *kept, *words[at:]]


def for_target(declaration: Declaration, words: Sequence[str], target: str) -> list[str]:
    """The words for another hardware, which is an option of most scripts and an argument of some."""
    if "DEVICE_TARGET" not in declaration.arguments:
        return with_options(declaration, words, {"device_target": target})
    line, changed, at = Line(declaration, {}), list(words), 0
    place = declaration.arguments.index("DEVICE_TARGET")
    for taken in steps(line, words):
        if len(line.arguments) == place + 1:
            changed[at] = target
            break
        at += taken
    return changed
