"""Reads pytest's report in a rank's log: the exception of the first test that failed.

pytest prints no traceback.  For each failed test it shows the source, the exception after an E, and its place.  With
--tb=short the places come before the exception.

    >       return d["DATAPATH"]
    E       KeyError: 'DATAPATH'

    train.py:4: KeyError
"""

from __future__ import annotations

import re

from tools.logs.findings import PythonException, in_library

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MARKS = (b"= FAILURES =", b"= ERRORS =")  # one of these is in every report that has an exception
_PART = re.compile(r"^=+ (?P<name>.+?) =+$")
_TEST = re.compile(r"^_+ (?!_).+ _+$")
_OUTPUT = re.compile(r"^-{3,} Captured ")  # what the test printed, and after it nothing else
_RAISED = re.compile(r"^E {3,}(?P<type>[A-Za-z_][\w.]*)(?:: ?(?P<message>.*))?$")
_ASSERT = re.compile(r"^E {3,}(assert .*)$")
_FRAME = re.compile(r'^E {3,}File "(?P<file>.+)", line (?P<line>\d+)$')  # of source that Python could not read
_PLACE = re.compile(r"^(?P<file>[^\s:][^:]*):(?P<line>\d+): ?(?:in (?P<function>\S.*)|[A-Za-z_][\w.]*(?:: .*)?)?$")
_DEF = re.compile(r"^>? *(?:async )?def (?P<function>\w+)\(")
_SUMMARY = re.compile(r"^(?:FAILED|ERROR) \S")
_MOST_MESSAGE = 12  # lines
_MOST_SUMMARY = 4


def exception(lines: list[str]) -> PythonException | None:
    """The exception of the first test that failed, or could not be set up or imported; None without a report."""
    for begin, end in _tests(lines):
        found = _of_test(lines, begin, end)
        if found:
            return found
    return None


def summary(lines: list[str]) -> list[str]:
    """The lines that name the tests that failed: with --tb=no all that pytest reports."""
    begin = _last_part(lines, ("short test summary info",))
    rest = [] if begin is None else lines[begin + 1 :]
    return [line for line in rest if _SUMMARY.match(line)][:_MOST_SUMMARY]


def source_rows(lines: list[str]) -> Iterator[int]:
    """The rows that show source: it may name any error, and none has happened there."""
    for begin, end in _tests(lines):
        if _TEST.match(lines[begin - 1]):  # any program may write ===== ERRORS =====, and then what happens
            yield from (row for row in range(begin, end) if not _is_said(lines[row]) and not _PLACE.match(lines[row]))


def _last_part(lines: list[str], names: tuple[str, ...]) -> int | None:
    """The row where the last part of such a name begins."""
    for row in range(len(lines) - 1, -1, -1):
        part = _PART.match(lines[row]) if lines[row].startswith("=") else None
        if part and part["name"] in names:
            return row
    return None


def _tests(lines: list[str]) -> Iterator[tuple[int, int]]:
    """(begin, end) of what the last report states about each failed test, without what the test printed."""
    last = _last_part(lines, ("FAILURES", "ERRORS"))
    if last is None:
        return
    first = (
        _last_part(lines[:last], ("ERRORS",)) if "FAILURES" in lines[last] else None
    )  # errors of its set-up come first
    begin, printed = (last if first is None else first) + 1, False
    for row in range(begin, len(lines)):
        line = lines[row]
        part = _PART.match(line) if line.startswith("=") else None
        if part or _TEST.match(line):
            if not printed:
                yield begin, row
            begin, printed = row + 1, False
            if part and part["name"] not in ("FAILURES", "ERRORS"):
                return
        elif not printed and _OUTPUT.match(line):
            yield begin, row
            printed = True
    if not printed:
        yield begin, len(lines)


def _is_said(line: str) -> bool:
    return line.startswith("E ") or line == "E"


def _of_test(lines: list[str], begin: int, end: int) -> PythonException | None:
    """The last exception of a test: those before it are its cause, or were being handled."""
    rows = [row for row in range(begin, end) if _is_said(lines[row])]
    if not rows:
        return None
    first = rows[-1]
    while first > begin and _is_said(lines[first - 1]):
        first -= 1
    said = _said(lines, first, rows[-1])
    if said is None:
        return None
    above = max([begin, *(row + 1 for row in rows if row < first)])
    places = _places(lines, above, end)
    if not places and not _TEST.match(lines[begin - 1]):
        places = _places_behind(lines, end, said.type)
    return _placed(lines, above, places, said)


def _said(lines: list[str], first: int, last: int) -> PythonException | None:
    """Type and message in the rows behind an E."""
    file, place = "", 0
    for row in range(first, last + 1):
        if frame := _FRAME.match(lines[row]):
            file, place = frame["file"], int(frame["line"])
        asserted, raised = _ASSERT.match(lines[row]), _RAISED.match(lines[row])
        if asserted:
            return PythonException("AssertionError", _message(lines, row, last, asserted[1]), file, place, None, row)
        if raised:
            message = _message(lines, row, last, raised["message"] or "")
            return PythonException(raised["type"], message, file, place, None, row)
    return None


def _message(lines: list[str], row: int, last: int, text: str) -> str:
    """The text of the row, and what follows it behind an E."""
    indent = len(lines[row]) - len(lines[row][1:].lstrip())
    return "\n".join([text, *(line[indent:] for line in lines[row + 1 : min(last + 1, row + _MOST_MESSAGE)])]).strip()


def _placed(
    lines: list[str], begin: int, places: list[tuple[int, re.Match[str]]], said: PythonException
) -> PythonException | None:
    """The exception with its place: the innermost one that is not in a library."""
    if said.file:  # of source that Python could not read
        return said
    own = [(row, found) for row, found in places if not in_library(found["file"])]
    if not places:
        return None
    row, found = (own or places)[-1]
    function = found["function"] or _function_above(lines, begin, row)
    return said._replace(file=found["file"], line=int(found["line"]), function=function)


def _places(lines: list[str], begin: int, end: int) -> list[tuple[int, re.Match[str]]]:
    return [(row, found) for row in range(begin, end) for found in [_PLACE.match(lines[row])] if found]


def _places_behind(lines: list[str], begin: int, kind: str) -> list[tuple[int, re.Match[str]]]:
    """With --tb=line the place is behind what the test printed."""
    end = next((row for row in range(begin, len(lines)) if _PART.match(lines[row])), len(lines))
    return [found for found in _places(lines, begin, end) if f": {kind}" in lines[found[0]]]


def _function_above(lines: list[str], begin: int, row: int) -> str | None:
    """The function whose source is shown above a place."""
    for above in range(row - 1, begin - 1, -1):
        if lines[above].startswith("_ _ "):
            return None
        shown = _DEF.match(lines[above])
        if shown:
            return shown["function"]
    return None
