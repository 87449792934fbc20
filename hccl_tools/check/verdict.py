"""Judges a rank table: its structure by the schema, everything else by the rules.

A mistake that occurs many times, such as a key that every device lacks, gets one line.
"""

from __future__ import annotations

import os
import re

from hccl_tools.check import rules, schema_check
from hccl_tools.common.language import tr
from hccl_tools.common.problem import WARNING, Problem
from hccl_tools.common.words import count, one_line
from hccl_tools.table import formats, rank_table
from hccl_tools.table.view import View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_MOST_ALIKE = 3  # lines of one kind that a person reads one by one
_NUMBERS = re.compile(r"/[0-9]+(?=/|$)")


def check(table: object, generation: str | None = None) -> list[Problem]:
    """Every Problem of a parsed table, sorted by place, including warnings (see `problem.errors`).

    generation: one of `rules.GENERATIONS`, whose own rules then apply too, or None.
    """
    try:
        name, foreign = formats.detect(table)
        if foreign:
            return [foreign]
        found = schema_check.problems_by_name(table, "rank_table_" + name)
        if isinstance(table, dict):
            version = formats.untyped_version(table)
            if version:  # by the schema it is two problems with two remedies
                found = [problem for problem in found if problem.pointer != version.pointer] + [version]
            found.extend(rules.broken(View(table, name), generation))
        return _collapsed(sorted(set(found), key=_place)) if found else []
    except RecursionError:  # shallow enough to read, too deep to check
        from hccl_tools.table import json_faults

        return [json_faults.too_deep()]


def advice(bad: Sequence[Problem]) -> str:
    """The advice about a table that is used although it has the errors `bad`."""
    return tr("{problems}; see `python hccl_tools/validate_hccl.py FILE`", problems=count(len(bad), "problem"))


def check_file(path: str, generation: str | None = None) -> tuple[Any, list[Problem]]:
    """(document or None, problems) of the file `path`.  Raises rank_table.NotReadable."""
    return check_bytes(rank_table.read_bytes(path), generation)


def check_bytes(data: bytes, generation: str | None = None) -> tuple[Any, list[Problem]]:
    """(document or None, problems) of a table's bytes; the problems have their rows."""
    table, found = rank_table.parse(data)
    found = found or check(table, generation)
    if found and table is not None:
        from hccl_tools.table import json_faults  # only problems need a place

        found = json_faults.placed(found, data)
    return table, found


def path_problem(path: str) -> Problem | None:
    """The Problem of a path from which HCCL reads no table: not one ".json" at its end, or 4,096 bytes and more."""
    real = os.path.realpath(path)
    if real.find(".json") == len(real) - len(".json") and len(os.fsencode(real)) < 4096:
        return None
    text = tr(
        'HCCL reads a table only if its path has ".json" exactly once, at the end; this path is {real}',
        real=one_line(real),
    )
    return Problem("bad-path", "", text, tr("give the table such a name before the launch"), WARNING)


def _place(problem: Problem) -> tuple[object, ...]:
    """Sorts /a/2 before /a/10, and a place before the places in it."""
    parts = problem.pointer.split("/")
    place = [(part.isdecimal(), int(part) if part.isdecimal() and len(part) < 20 else 0, part) for part in parts]
    return place, problem[:5]


def _collapsed(problems: Sequence[Problem]) -> list[Problem]:
    """The problems in their order; of more than _MOST_ALIKE only the first, which states how many there are.

    Alike: the same code at the same keys of different entries, with the same text, or with values of the wrong type.
    """
    groups: dict[tuple[str, str, str, str], list[Problem]] = {}
    for problem in problems:
        text = "" if problem.code == "wrong-type" else problem.text
        kind = problem.code, problem.severity, _NUMBERS.sub("/*", problem.pointer), text
        groups.setdefault(kind, []).append(problem)
    if all(len(alike) <= _MOST_ALIKE for alike in groups.values()):
        return list(problems)
    left = {id(each) for alike in groups.values() if len(alike) > _MOST_ALIKE for each in alike[1:]}
    firsts = {id(alike[0]): alike for alike in groups.values() if len(alike) > _MOST_ALIKE}
    return [_of_all(firsts[id(each)]) if id(each) in firsts else each for each in problems if id(each) not in left]


def _of_all(alike: list[Problem]) -> Problem:
    first = alike[0]
    last = alike[-1].pointer
    text = tr(
        "{text} (and {number} more like it, the last at {last})", text=first.text, number=len(alike) - 1, last=last
    )
    return first._replace(text=text)
