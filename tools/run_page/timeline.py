"""The time line of a run: the attempts and the ranks on one axis, in seconds from the launch.

launch.json has times of the launcher's clock.  Times in logs are from other clocks, so only differences within one log
are used.  The first line of a log is put at the start of its rank.
"""

from __future__ import annotations

import os
import time
from statistics import median

from hccl_tools.common import documents, utc
from hccl_tools.common.grouping import grouped
from hccl_tools.common.record import Record, Row
from tools.history.listing import RUNNING
from tools.progress import phases

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from tools.progress.lines import Kinds
    from tools.progress.phases import Mark
    from tools.progress.series import Series
    from tools.run_page.reading import Attempt, RunData

LEAST = 10.0  # seconds without a line that are worth a word
_SHARE = 3  # of a run: so large a part of it without a line, while the middle rank wrote
_LEAST_RANKS = 3
_MOST = 1 << 20  # bytes that are read of a log's beginning, and of its end
_NARROW = 400  # a phase that takes less than one of so many parts of the axis is not drawn
MOST_ROWS = 12  # ranks of an attempt that have a row of their own
_FEW_ROWS, _MANY_ATTEMPTS = 3, 3  # of each attempt but the last one, where there are more attempts than that
_QUIET_SHARE = 20  # a pause before the end is worth a word if it is so large a part of the attempt
TOLERANCE = 5.0  # seconds that clocks, and the starts of ranks, may differ
_BY_US = (128 + 15, 128 + 9)
# What a bar states about how a rank ended.
GOOD, FIRST, FAILED, STOPPED, RUNS, UNKNOWN = "good", "first", "failed", "stopped", "runs", "unknown"


class Bar(Record):
    """A rank in one attempt, in seconds from the launch."""

    begin: float
    end: float
    how: str  # GOOD ...
    status: int | None
    first_step: float | None  # when its log had the first number
    stops: float | None  # from when on it was being stopped
    quiet: float | None  # when its log had its last line, if that is long before its end


class Block(Record):
    """One attempt."""

    number: int  # from 0
    begin: float
    end: float
    bars: dict[int, Bar]  # by rank
    rows: list[int]  # the ranks that have a row of their own, the most important first
    others: list[int]


class Timeline(Record):
    """The attempts, and the length of the axis."""

    seconds: float
    blocks: list[Block]


def of(data: RunData, names: Iterable[int] = (), now: float | None = None) -> Timeline | None:
    """The time line; None where launch.json does not state when the run began.  names: the ranks that have a name."""
    started = utc.seconds(data.run.started)
    if started is None or not data.ranks:
        return None
    names, now = list(names), time.time() if now is None else now
    blocks: list[Block] = []
    before = 0.0
    for number, attempt in enumerate(data.attempts):
        ended = utc.seconds(attempt.ended)
        longest = max((seconds_of(attempt, name) or 0.0 for name in attempt.members), default=0.0)
        begin = before if ended is None else max(before, ended - started - longest)
        bars = _bars(data, attempt, number, begin, (started, now))
        before = max([begin, *(bar.end for bar in bars.values())])
        rows = _rows(data, names, number)
        shown = set(rows)
        others = [rank.rank for rank in data.ranks if rank.rank not in shown]
        blocks.append(Block(number=number, begin=begin, end=before, bars=bars, rows=rows, others=others))
    last = utc.seconds(data.attempts[-1].ended)
    return Timeline(seconds=max(0.1, before, 0.0 if last is None else last - started), blocks=blocks)


def _rows(data: RunData, names: list[int], number: int) -> list[int]:
    """All ranks, or of many: who failed in this attempt, those with a name, and the first and the last one."""
    known = [rank.rank for rank in data.ranks]
    few = len(data.attempts) > _MANY_ATTEMPTS and number < len(data.attempts) - 1
    if len(known) <= MOST_ROWS and not few:
        return known
    attempt, there = data.attempts[number], set(known)
    failed = [int(name) for name in (attempt.first_failure, *attempt.also_failed) if name and name.isdecimal()]
    most, ends = (_FEW_ROWS, known[:1]) if few else (MOST_ROWS, [known[0], known[-1]])
    matter = [rank for rank in dict.fromkeys([*failed, *([] if few else names)]) if rank in there]
    return list(dict.fromkeys([*matter[: most - len(ends)], *ends]))


def _bars(data: RunData, attempt: Attempt, number: int, begin: float, clock: tuple[float, float]) -> dict[int, Bar]:
    """The bars of all ranks that have one; clock: when the run began, and now."""
    stopped = None if attempt.first_failure is None else seconds_of(attempt, attempt.first_failure)
    also = frozenset(attempt.also_failed)
    found = {}
    for rank in data.ranks:
        name, log = str(rank.rank), log_of(data, rank.rank, number)
        seconds = seconds_of(attempt, name)
        bar = None
        if seconds is not None:
            status = documents.number(attempt.members[name], "status")
            how = _how(attempt, name, status, also)
            stops = begin + stopped if how == STOPPED and stopped is not None and stopped < seconds else None
            bar = _bar(begin, begin + seconds, how, status, stops)
        elif attempt.ended is None and number == len(data.attempts) - 1:
            bar = _without_end(data, os.path.join(attempt.logs, rank.log), begin, clock)
        if bar is not None:
            found[rank.rank] = _with_log(bar, log)
    return found


def _bar(begin: float, end: float, how: str, status: int | None = None, stops: float | None = None) -> Bar:
    return Bar(begin=begin, end=end, how=how, status=status, stops=stops, first_step=None, quiet=None)


def _with_log(bar: Bar, log: Series | None) -> Bar:
    """The bar, with what its log tells."""
    seconds = bar.end - bar.begin
    if log is None or log.first is None:
        return bar
    first = None if log.first_step is None else log.first_step - log.first
    last = last_line(log)
    until = seconds if bar.stops is None else bar.stops - bar.begin
    quiet = last is not None and until - last > max(LEAST, seconds / _QUIET_SHARE)
    return bar.replace(
        first_step=bar.begin + first if first is not None and 0 <= first <= seconds else None,
        quiet=bar.begin + last if quiet and last is not None else None,
    )


def _how(attempt: Attempt, name: str, status: int | None, also: frozenset[str]) -> str:
    if name == attempt.first_failure:
        return FIRST
    if status is None:
        return UNKNOWN
    if status == 0:
        return GOOD
    if name in also:
        return FAILED
    if attempt.stopped_by and attempt.first_failure is None:
        return STOPPED  # the stack of a rank that hangs comes with SIGABRT
    return STOPPED if status in _BY_US else FAILED


def _without_end(data: RunData, log: str, begin: float, clock: tuple[float, float]) -> Bar | None:
    """Of a run without an outcome: until now, or until its log was written for the last time."""
    runs, (started, now) = data.run.state == RUNNING, clock
    try:
        written = os.stat(log).st_mtime
    except (OSError, ValueError):  # it is on another host
        written = started
    end = (now if runs else written) - started
    return None if end <= begin else _bar(begin, end, RUNS if runs else UNKNOWN)


def clocks(data: RunData) -> list[tuple[str, str, float]]:
    """(host, first host, by how many seconds its first lines are later) of hosts whose clocks seem to differ."""
    hosts = grouped(
        (rank.host, log.first)
        for rank in data.ranks
        for log in data.logs.get(rank.rank, [])[-1:]
        if log.first is not None and rank.host
    )
    middles = {host: median(times) for host, times in hosts.items()}
    if len(middles) < 2:
        return []
    first, base = next(iter(middles.items()))
    return [(host, first, value - base) for host, value in middles.items() if abs(value - base) > TOLERANCE]


# ---- The phases of one rank in one attempt, as its log tells them: what it did from when until when.


class Segment(Row):
    """A phase, in seconds from the first line of the log."""

    phase: str  # of tools/progress/phases.py
    begin: float
    end: float


def segments_of_log(path: str, kinds: Kinds, first: float, until: float) -> list[Segment]:
    """The phases by the times of lines; first: the time of the first line, until: when the rank ended.

    Of a large log the beginning and the end are read.  Raises OSError, and ValueError: it cannot be a path.
    """
    documents.refuse_special(path)
    with open(path, "rb") as file:
        block = file.read(_MOST)
        rest = file.seek(0, os.SEEK_END) - _MOST
        file.seek(max(_MOST, rest))
        told = [*phases.marks(block, kinds), *phases.marks(file.read(_MOST), kinds)]
    return segments_of_marks(told, first, until)


def segments_of_marks(told: list[Mark], first: float, until: float) -> list[Segment]:
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


def wide_segments(found: list[Segment], axis: float) -> list[Segment]:
    """The segments that are wide enough to be seen on an axis of this length; the phase before replaces the others."""
    kept: list[Segment] = []
    for one in found:
        if kept and (one.phase == kept[-1].phase or one.end - one.begin < axis / _NARROW):
            kept[-1] = kept[-1]._replace(end=one.end)
        else:
            kept.append(one)
    return kept


# ---- Ranks whose logs ended long before those of the others, while they still ran.


def seconds_of(attempt: Attempt, name: str) -> float | None:
    """The running time of a member in launch.json."""
    seconds = attempt.members.get(name, {}).get("seconds")
    if not isinstance(seconds, (int, float)) or isinstance(seconds, bool) or not 0 <= seconds < 1e9:
        return None
    return float(seconds)


def log_of(data: RunData, rank: int, attempt: int) -> Series | None:
    """The log of a rank in an attempt, where each attempt has one."""
    logs = data.logs.get(rank, [])
    return logs[attempt] if len(logs) == len(data.attempts) else None


def last_line(log: Series | None) -> float | None:
    """The time between the first and the last line of a log: both are from one clock."""
    if log is None or log.first is None or log.last is None or log.last < log.first:
        return None
    return log.last - log.first


def ranks(data: RunData) -> list[int]:
    """The silent ranks of the last attempt.

    The last line of such a rank is earlier than that of the middle rank by more than 10 s, and by more than a third of
    the attempt.  It ran for more than 10 s after that line, so it did not just end.
    """
    number = len(data.attempts) - 1
    told = {rank.rank: last_line(log_of(data, rank.rank, number)) for rank in data.ranks}
    spoke = {rank: last for rank, last in told.items() if last is not None}
    if len(spoke) < _LEAST_RANKS:
        return []
    attempt = data.attempts[number]
    ran = {rank: seconds_of(attempt, str(rank)) for rank in spoke}
    whole = max([*spoke.values(), *(seconds for seconds in ran.values() if seconds is not None)])
    limit = median(spoke.values()) - max(LEAST, whole / _SHARE)
    return [rank for rank, last in spoke.items() if last < limit and _ran_on(ran[rank], last)]


def _ran_on(seconds: float | None, last: float) -> bool:
    return seconds is None or seconds - last > LEAST
