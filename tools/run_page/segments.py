"""The phases of one rank in one attempt, as its log tells them: what it did from when until when."""

from __future__ import annotations

import os

from hccl_tools.common import documents
from hccl_tools.common.record import Row
from tools.progress import phases

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.progress.lines import Kinds
    from tools.progress.phases import Mark

_MOST = 1 << 20  # bytes that are read of a log's beginning, and of its end
_NARROW = 400  # a phase that takes less than one of so many parts of the axis is not drawn


class Segment(Row):
    """A phase, in seconds from the first line of the log."""

    phase: str  # of tools/progress/phases.py
    begin: float
    end: float


def of_log(path: str, kinds: Kinds, first: float, until: float) -> list[Segment]:
    """The phases by the times of lines; first: the time of the first line, until: when the rank ended.

    Of a large log the beginning and the end are read.  Raises OSError, and ValueError: it cannot be a path.
    """
    documents.refuse_special(path)
    with open(path, "rb") as file:
        block = file.read(_MOST)
        rest = file.seek(0, os.SEEK_END) - _MOST
        file.seek(max(_MOST, rest))
        told = [*phases.marks(block, kinds), *phases.marks(file.read(_MOST), kinds)]
    return of_marks(told, first, until)


def of_marks(told: list[Mark], first: float, until: float) -> list[Segment]:
    """The phases between marks.  A mark without a time ends nothing; one that lies before the last one neither."""
    found: list[Segment] = []
    now, begin = phases.START, 0.0
    for number, mark in enumerate(told):
        after = phases.after(told[: number + 1], phases.START) or phases.START
        if mark.at is None or after == now:
            continue
        at = min(until, mark.at - first)
        if at < begin:
            continue
        found += [Segment(now, begin, at)] if at > begin else []
        now, begin = after, at
    return [*found, Segment(now, begin, until)] if until > begin else found


def wide(found: list[Segment], axis: float) -> list[Segment]:
    """Those that are wide enough to be seen on an axis of so many seconds; the phase before takes the others' place."""
    kept: list[Segment] = []
    for one in found:
        if kept and (one.phase == kept[-1].phase or one.end - one.begin < axis / _NARROW):
            kept[-1] = kept[-1]._replace(end=one.end)
        else:
            kept.append(one)
    return kept
