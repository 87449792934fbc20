"""Finds the line and column of a place in a JSON document; needed only when something is wrong there.

The text is known to be JSON.  Values in between are skipped at the speed of the json module.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator

from hccl_tools.common.problem import Problem, pointer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Scan = Callable[[str, int], tuple[Any, int]]  # (text, offset) -> value, offset of its end
    Wanted = dict[str, "Wanted"]  # a tree of keys

_BLANK = re.compile(r"[ \t\n\r]*")


def placed(problems: Iterable[Problem], data: bytes) -> list[Problem]:
    """The `problems` with row and column; a missing value gets those of the value that should contain it."""
    text = data.decode("utf-8")
    wanted: Wanted = {}
    for problem in problems:
        branch = wanted
        for key in problem.pointer.split("/")[1:]:
            branch = branch.setdefault(key.replace("~1", "/").replace("~0", "~"), {})
    offsets = dict(_offsets(text, wanted))
    rows = _rows(text, set(offsets.values()))
    return [_with_place(problem, offsets, rows) for problem in problems]


def _with_place(problem: Problem, offsets: dict[str, int], rows: dict[int, tuple[int, int]]) -> Problem:
    place = problem.pointer
    while place and place not in offsets:
        place = place.rpartition("/")[0]
    if place == "":
        return problem  # the whole document: line 1 would state nothing
    row, column = rows[offsets[place]]
    return problem._replace(row=row, column=column)


def _offsets(text: str, wanted: Wanted) -> Iterator[tuple[str, int]]:
    """(JSON pointer, offset) of the values that the tree `wanted` names."""
    scan = json.JSONDecoder().raw_decode
    tasks = [(_skip(text, 0), wanted, "")]
    while tasks:
        start, branch, base = tasks.pop()
        yield base, start
        if branch:
            # If an object has a key twice, the last one counts, as for Python.
            inside = {key: at for key, _, at in _members(text, start, scan) if key in branch}
            tasks += [(at, branch[key], base + pointer(key)) for key, at in inside.items()]


def _members(text: str, start: int, scan: Scan) -> Iterator[tuple[str, int, int]]:
    """(key, offset of the key, offset of the value) of each member of the container at `start`.

    scan(text, offset) skips a value.  The key of an entry of a list is its number, as text.
    """
    kind = text[start]
    at = _skip(text, start + 1)
    count = 0
    while kind in "{[" and text[at] not in "}]":
        key, key_at = str(count), at
        if kind == "{":
            key, at = scan(text, at)
            at = _skip(text, _skip(text, at) + 1)  # over the colon
        yield key, key_at, at
        _, at = scan(text, at)
        at = _skip(text, at)
        if text[at] == ",":
            at = _skip(text, at + 1)
        count += 1


def _skip(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    assert match  # an empty match at least
    return match.end()


def repeated_keys(text: str) -> list[tuple[int, str, int]]:
    """(offset, key, offset of its first occurrence) of every key that its object has already."""
    seen_twice = []

    def note(pairs: list[tuple[str, Any]]) -> None:
        if len(dict(pairs)) < len(pairs):
            seen_twice.append(True)

    scan = json.JSONDecoder(object_pairs_hook=note).raw_decode
    tasks = [_skip(text, 0)]
    found = []
    while tasks:
        first: dict[str, int] = {}
        for key, key_at, at in _members(text, tasks.pop(), scan):
            if key in first:  # never the number of an entry of a list
                found.append((key_at, key, first[key]))
            first.setdefault(key, key_at)
            del seen_twice[:]
            scan(text, at)
            if seen_twice:
                tasks.append(at)
    return sorted(found)


def row_and_column(text: str, offset: int) -> tuple[int, int]:
    """(row, column) of an offset, from 1."""
    return _rows(text, {offset})[offset]


def _rows(text: str, offsets: set[int]) -> dict[int, tuple[int, int]]:
    """{offset: (row, column)}; one pass over the text for all of them."""
    found, row, before, end = {}, 1, 0, -1  # end: of the row before; a table may be one long row
    for offset in sorted(offsets):
        rows = text.count("\n", before, offset)
        if rows:
            row += rows
            end = text.rfind("\n", before, offset)
        before = offset
        found[offset] = row, offset - end
    return found
