"""The time zone, and whether something keeps the clock right.  What it shows is another question."""

from __future__ import annotations

import ctypes
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.preflight.difference import Value
    from tools.preflight.question import Question

_UNSYNCHRONISED = 0x40  # STA_UNSYNC of <sys/timex.h>
_STATUS_AT = 5  # of struct timex, whose members have the size of a long up to there


def collect(_: Question) -> dict[str, Value]:
    """The zone by its distance from UTC: its names differ between distributions."""
    facts: dict[str, Value] = {"time_zone": time.strftime("%z")}
    status = _status()
    if status is not None:
        facts["clock_kept"] = not status & _UNSYNCHRONISED
    return facts


def _status() -> int | None:
    """What the kernel says of its clock; None where it does not tell."""
    buffer = (ctypes.c_long * 64)()  # larger than the structure; modes 0: only read
    if ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(buffer)) < 0:
        return None
    return int(buffer[_STATUS_AT]) & 0xFFFFFFFF
