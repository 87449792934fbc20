"""Reduces a line to what its program wrote: without colours, and without the prefixes of other programs.

Times come from ts(1), from Docker and containerd, from "kubectl logs --timestamps" and from Jenkins; the name of the
rank from mpirun, torchrun and PyTorch.  Other names count only if a whole file has them: see voices.py.
"""

from __future__ import annotations

import json
import re
import time
from calendar import timegm
from functools import cache

from tools.logs import plog

# Numbers, addresses and times of a text.
_CHANGES = re.compile(r"0x[0-9a-fA-F]+|\b[0-9a-f]{8,}\b|\d+(?:[.:/T,-]\d+)*")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
_ZONE = r"(?:Z| ?[+-]\d\d:?\d\d)?"
_WEEKDAY = r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) )?"
# "2026-11-25T10:11:12.123456789Z ", containerd's "... stderr F ", "[Nov 25 10:11:12] ", "10:11:12 "
TIME = (
    rf"\[?(?:\d{{4}}-\d\d-\d\d[T ]{_CLOCK}{_ZONE}"
    rf"|{_WEEKDAY}(?:{'|'.join(_MONTHS)}) [ \d]\d {_CLOCK}(?: \d{{4}})?|{_CLOCK})"
    r"\]?(?: std(?:out|err) [FP])?(?:[ \t]|(?=\[))"
)
# "[1,3]<stderr>:", "[prterun-node1-77@1,3]<stdout>: ", "[default3]:", "[rank3]: "
RANK = (
    r"(?:\[(?:[^\s\[\],@]{1,200}@)?(?:\d{1,9},)?\d{1,7}\]<std(?:out|err|diag)>: ?"
    r"|\[(?:default|[Rr]ank ?)\d{1,7}\]:? ?|[Rr]ank ?\d{1,7}: (?=Traceback| +File |\[))"
)
_BEFORE = rf"(?:{TIME}|{RANK}){{0,4}}"
_bare = re.compile(rf"[ \t]{{0,8}}(?:{TIME}|{RANK}){{1,4}}")
_timed = re.compile(rf"[ \t]{{0,8}}(?:{TIME}){{1,2}}")
_named_day = re.compile(
    rf"{_WEEKDAY}(?P<month>{'|'.join(_MONTHS)}) (?P<day>[ \d]\d) (?P<clock>\d\d:\d\d:\d\d)(?: (?P<year>\d{{4}}))?"
)
_LINE_BEGINS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\^", re.DOTALL)
ESCAPES = r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|\x1b[@-Z\\-_]"
_ESCAPES = re.compile(ESCAPES.encode())
_CLEAN = re.compile(rf"{ESCAPES}|[\x00-\x08\x0b-\x1f\x7f]+")
_DOCKER = re.compile(rb'\{"(?:log|stream|time|attrs)":[^\n]{0,40000}"(?:stream|log)":')
_SOURCE = re.compile(r'\s*File "[^"]+", line \d+')
_AROUND = 8  # lines of a record
_LONGEST = 4000  # characters of a line


def bare(line: str) -> str:
    """The line without the times and the rank before it; its indentation stays."""
    found = _bare.match(line)
    return line[found.end() :] if found else line


def untimed(line: str) -> str:
    """The line without the times before it."""
    found = _timed.match(line)
    return line[found.end() :] if found else line


def anchored(source: str) -> str:
    """The expression of a rule, so that its ^ takes what may be before a line, too."""
    found = _LINE_BEGINS.sub(lambda found: rf"^[ \t]*{_BEFORE}[ \t]*" if found[0] == "^" else found[0], source)
    return found if "(?<" not in source or found == source or _is_expression(found) else source


def _is_expression(source: str) -> bool:
    """What looks behind must have a fixed width."""
    try:
        re.compile(source)
    except re.error:
        return False
    return True


def time_of(line: str) -> float | None:
    """The time at the beginning of a line, in seconds as `plog.seconds` counts them; None if it has none.

    A time without a year is of this year, or of the last one if it would be in the future.
    """
    found = plog.seconds(line[:80])
    if found is not None:
        return found
    named = _named_day.search(line[:80])
    if named is None:
        return None
    year = int(named["year"]) if named["year"] else _year(named["month"], int(named["day"]))
    return plog.seconds(f"{year}-{_MONTHS.index(named['month']) + 1:02}-{int(named['day']):02} {named['clock']}")


@cache
def _year(month: str, day: int) -> int:
    """The year of such a day that was the last one.  A day is allowed for clocks that differ and for time zones."""
    now = time.gmtime()
    begin = timegm((now.tm_year, _MONTHS.index(month) + 1, max(1, day), 0, 0, 0))
    return now.tm_year - (begin > time.time() + 86400)


def without_colours(block: bytes) -> bytes:
    """The lines of a log without what colours them, and without the drawings of a progress bar before the last one."""
    if b"\x1b" in block:
        block = _ESCAPES.sub(b"", block)
    return b"\n".join(map(_last_drawing, block.split(b"\n"))) if b"\r" in block else block


def is_docker(head: bytes) -> bool:
    """Whether these are the first bytes of a file in which Docker keeps what a container prints (json-file)."""
    return bool(_DOCKER.match(head))


def undockered(block: bytes) -> bytes:
    """The lines of such a file as the container printed them, each with its time."""
    return b"\n".join(map(_printed, block.split(b"\n")))


def _printed(line: bytes) -> bytes:
    if not line.startswith(b"{"):
        return line
    try:
        said = json.loads(line)
        text = said["log"].rstrip("\n").replace("\n", " ")
        time = str(said.get("time", "")).replace("\n", " ")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):  # cut off, or a line of something else
        return line
    return (f"{time} {text}" if time else text).encode("utf-8", "replace")


def _last_drawing(line: bytes) -> bytes:
    return line.rstrip(b"\r ").rpartition(b"\r")[2] if b"\r" in line else line


def clean(line: bytes) -> str:
    """A line without what moves a terminal's cursor; bytes that are not UTF-8 become replacement characters."""
    return _CLEAN.sub("", line.decode("utf-8", "replace"))


def is_source(block: bytes, begin: int, line: str) -> bool:
    """Whether the line is the source code that a traceback shows: it is not an event."""
    line = bare(line)
    if _SOURCE.match(line):
        return True
    before = block[max(0, block.rfind(b"\n", 0, max(0, begin - 1)) + 1) : max(0, begin - 1)]
    return line[:1].isspace() and bool(_SOURCE.match(bare(before[:_LONGEST].decode("utf-8", "replace"))))


def around(block: bytes, begin: int, end: int) -> str:
    """The line and those around it that may belong to the same message."""
    for _ in range(_AROUND):
        begin = max(0, block.rfind(b"\n", 0, max(0, begin - 1)) + 1)
        following = block.find(b"\n", end + 1)
        end = len(block) if following < 0 else following
    record = clean(block[begin : min(end, begin + 8 * _LONGEST)].replace(b"\n", b"\t")).replace("\t", "\n")
    return "\n".join(map(bare, record.split("\n")))


def pattern_of(text: str) -> str:
    """The text without what changes from one time to the next: numbers, addresses, times."""
    return _CHANGES.sub("#", text)
