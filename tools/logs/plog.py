"""Parses a line of a plog, CANN's log of a process, or of MindSpore's own log, which has the same form.

[ERROR] HCCL(114650,python3):2025-06-19-09:28:35.212.164 [p2p_mgmt.cc:305] [115859]connected p2p timeout
 level  module(pid, program): local time                  source            thread  text
"""

from __future__ import annotations

import re
import time
from calendar import timegm

from hccl_tools.common.record import Row

# MindSpore has a thread's address between pid and program.
_LINE = re.compile(
    r"\[(?P<level>[A-Z]+)\] ?(?P<module>\w+)\((?P<pid>\d{1,10})(?:,(?P<program>[^):]*))?\):"
    r"(?P<time>\d{4}-\d\d-\d\d-\d\d:\d\d:\d\d(?:\.\d{3}){0,2})"
)
_TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)[-T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{3})\.?(\d{3})?)?")
_WARNING = re.compile(
    r"\[WARNING\] ?\w+\(\d|\[W\d{3,4} \d\d:\d\d:\d\d"
)  # "[W301 10:00:04.2 socket.cpp:752]": of PyTorch
# Warnings of Python, which may quote an error, and the search for libraries that a program can do without.
_HARMLESS = re.compile(
    r"\b(?:User|Future|Deprecation|PendingDeprecation|Runtime|Import|Resource|Syntax)Warning: "
    r"|\bNCCL INFO [A-Z]{2,20}/Plugin\b|; dlerror: "
)
LOUD = ("ERROR", "CRITICAL", "FATAL")
QUIET = ("DEBUG", "INFO", "TRACE")


class PlogLine(Row):
    """Level, module and process of a line, its local time in seconds (None where the date is not one), the program."""

    level: str
    module: str
    pid: int
    time: float | None
    program: str = ""  # with MindSpore's thread before it


def parse(line: str) -> PlogLine | None:
    """The head of a line; None where it has another form."""
    found = _LINE.search(line)
    if not found:
        return None
    return PlogLine(found["level"], found["module"], int(found["pid"]), seconds(found["time"]), found["program"] or "")


def warns(line: str) -> bool:
    """Whether it is a warning of CANN, MindSpore or PyTorch: jobs that go well print these, too."""
    return bool(_WARNING.search(line))


def is_harmless(line: str) -> bool:
    """Whether no known failure can be in this line of a rank: what it reports did not end the program."""
    return bool(_HARMLESS.search(line))


def seconds(text: str) -> float | None:
    """The first time in a text as seconds since 1970, as if it were UTC; None if it has none.

    Plogs have local times without a zone, so only differences between lines of one zone mean something.
    """
    found = _TIME.search(text)
    if not found:
        return None
    year, month, day, hour, minute, second = (int(part) for part in found.groups()[:6])
    if not (1970 <= year <= 2200 and 1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second < 61):
        return None
    return timegm((year, month, day, hour, minute, second)) + float(f"0.{found[7] or 0}{found[8] or ''}")


def clock(moment: float) -> str:
    """``11:24:07``, of the time that `parse` has found."""
    return time.strftime("%H:%M:%S", time.gmtime(moment))
