"""Explains why bytes are not the JSON of a rank table, with line and column."""

from __future__ import annotations

import re
from json import JSONDecodeError

from hccl_tools.common.language import tr
from hccl_tools.common.problem import Problem
from hccl_tools.common.words import one_line, shown
from hccl_tools.table import look_alikes, other_files, positions

# a string, or a number that Python's json refuses: the string is there so that nothing in it counts
_NUMBER = re.compile(r'"(?:[^"\\]|\\.)*"|(-?Infinity|NaN|-?[0-9]{4000,})', re.DOTALL)


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
    for offset, key, before in positions.repeated_keys(text):
        row, column = positions.row_and_column(text, offset)
        first_row = positions.row_and_column(text, before)[0]
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
    row, column = positions.row_and_column(text, offset)
    return _problem(tr("line {row}, column {column}: {what}", row=row, column=column, what=what), remedy, row, column)


def _problem(text: str, remedy: str, row: int | None = None, column: int | None = None) -> Problem:
    return Problem("not-json", "", text, remedy, row=row, column=column)
