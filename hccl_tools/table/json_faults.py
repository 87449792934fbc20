"""Explains why bytes are not the JSON of a rank table, and finds line and column of a JSON pointer."""

from __future__ import annotations

import json
import re
from json import JSONDecodeError

from hccl_tools.common.language import tr
from hccl_tools.common.problem import Problem, pointer
from hccl_tools.common.words import one_line, shown
from hccl_tools.table import look_alikes, other_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    Scan = Callable[[str, int], tuple[Any, int]]
    Wanted = dict[str, "Wanted"]

# a string, or a number that Python's json refuses: the string is there so that nothing in it counts
_NUMBER = re.compile(r'"(?:[^"\\]|\\.)*"|(-?Infinity|NaN|-?[0-9]{4000,})', re.DOTALL)
_BLANK = re.compile(r"[ \t\n\r]*")


def explain(data: bytes, error: Exception) -> Problem:
    """The Problem for what json.loads or the decoding of `data` raised."""
    if not data.strip():
        return _problem(tr("the file is empty"), tr(look_alikes.BUILD))
    other = other_files.named(data)
    if other:
        return _problem(tr("this is {what}, and not the JSON of a rank table", what=other[0]), other[1])
    if isinstance(error, UnicodeDecodeError):
        row = data.count(b"\n", 0, error.start) + 1
        return _problem(
            tr("byte {number} is not UTF-8 (line {row})", number=error.start + 1, row=row),
            tr("save the file as UTF-8"),
            row,
        )
    if isinstance(error, RecursionError):
        return too_deep()
    text = data.decode("utf-8")
    if text.startswith("\ufeff"):
        return _problem(
            tr("line 1, column 1: the file starts with a byte-order mark"), tr("save it as UTF-8 without one"), 1, 1
        )
    return _syntax(text, error) if isinstance(error, JSONDecodeError) else _number(text, error)


def too_deep() -> Problem:
    """The Problem of a document with too many levels to walk through."""
    return _problem(tr("it is nested too deeply"), tr("a rank table has at most nine levels"))


def _syntax(text: str, error: JSONDecodeError) -> Problem:
    rest = text[error.pos :]
    comment = re.match(r"[ \t\n\r]*(//|/\*|#)", rest)
    comma = re.search(r",[ \t\n\r]*\Z", text[: error.pos])
    if comment:
        return _at(text, error.pos + comment.start(1), tr("a comment; JSON has none"), tr("delete the comments"))
    # Python names the comma itself from 3.13 on, and what follows it before.
    bracket = re.match(r",?[ \t\n\r]*([]}])", rest)
    if bracket and (comma or rest.startswith(",")):
        offset = error.pos + bracket.start(1)
        return _at(text, offset, tr("a comma before '{bracket}'", bracket=bracket[1]), tr("delete that comma"))
    if rest.startswith("'"):
        return _at(text, error.pos, tr("a single quote"), tr('put texts in double quotes: "..."'))
    if not rest.strip():
        return _at(
            text, error.pos, tr("the file ends here, in the middle of its JSON"), tr("copy it or build it again")
        )
    found = one_line(rest[:30].partition("\n")[0].strip()) or tr("the end of the line")
    return _at(text, error.pos, f"{error.msg}, found {found}", tr("write JSON there"))


def _number(text: str, error: Exception) -> Problem:
    for match in _NUMBER.finditer(text):
        if match[1]:
            what = (
                tr("{text} is not a number in JSON", text=match[1])
                if len(match[1]) < 20
                else tr("a number of very many digits")
            )
            return _at(text, match.start(), what, tr("write the number that you mean"))
    return _problem(str(error), tr("write JSON there"))


def repeated(text: str) -> list[Problem]:
    """A Problem for every key that its object has already."""
    found = []
    for offset, key, before in repeated_keys(text):
        row, column = row_and_column(text, offset)
        first_row = row_and_column(text, before)[0]
        what = tr(
            "line {row}, column {column}: {key} is a key of the same object in line {first_row} already",
            row=row,
            column=column,
            key=shown(key),
            first_row=first_row,
        )
        found.append(Problem("duplicate-key", "", what, tr("keep one of them"), row=row, column=column))
    return found


def _at(text: str, offset: int, what: str, remedy: str) -> Problem:
    row, column = row_and_column(text, offset)
    return _problem(tr("line {row}, column {column}: {what}", row=row, column=column, what=what), remedy, row, column)


def _problem(text: str, remedy: str, row: int | None = None, column: int | None = None) -> Problem:
    return Problem("not-json", "", text, remedy, row=row, column=column)


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
