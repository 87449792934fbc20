"""When what happened: the attempts and the ranks on one axis, in seconds from the launch.

launch.json has times of the launcher's clock.  Times of logs are of other clocks, so only differences within one log
are used.
"""

from __future__ import annotations

import calendar
import os
import time
from statistics import median

from hccl_tools.common.record import Record
from tools.history.listing import RUNNING
from tools.run_page.reading import chosen_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.progress.series import Series
    from tools.run_page.reading import Attempt, RunData

MOST_ROWS = 32
TOLERANCE = 5.0  # seconds that clocks, and the starts of ranks, may differ
_TIME = "%Y-%m-%dT%H:%M:%SZ"
_BY_US = (128 + 15, 128 + 9)
# What a bar says of how a rank ended.
GOOD, FIRST, FAILED, STOPPED, RUNS, UNKNOWN = "good", "first", "failed", "stopped", "runs", "unknown"


class Bar(Record):
    """A rank in one attempt, in seconds from the launch."""

    attempt: int
    begin: float
    end: float
    how: str  # GOOD ...
    status: int | None
    first_step: float | None  # when its log had the first number
    stops: float | None  # from when on it was being stopped


class Timeline(Record):
    """Rows of ranks, and the length of the axis."""

    seconds: float
    rows: list[tuple[int, list[Bar]]]  # rank, bars
    all_ranks: int
    starts: list[float]  # of the attempts


def of(data: RunData, now: float | None = None) -> Timeline | None:
    """The time line; None where launch.json does not say when the run began."""
    started = _moment(data.run.started)
    if started is None or not data.ranks:
        return None
    rows: dict[int, list[Bar]] = {rank.rank: [] for rank in chosen_of(data.ranks, data.attempts, MOST_ROWS)}
    starts, before = [], 0.0
    for number, attempt in enumerate(data.attempts):
        ended = _moment(attempt.ended)
        longest = max((_seconds(attempt, name) or 0.0 for name in attempt.members), default=0.0)
        begin = before if ended is None else max(before, ended - started - longest)
        starts.append(begin)
        stopped = _first_end(attempt)
        for rank, bars in rows.items():
            log = _log_of(data, rank, number)
            bar = _bar(attempt, number, rank, begin, log, stopped)
            if bar is None and ended is None:
                bar = _without_end(data, attempt, number, rank, begin, started, now or time.time())
            bars += [bar] if bar else []
        before = max([begin, *(bar.end for bars in rows.values() for bar in bars)])
    length = max([0.1, *(bar.end for bars in rows.values() for bar in bars)])
    return Timeline(seconds=length, rows=list(rows.items()), all_ranks=len(data.ranks), starts=starts)


def _moment(text: str | None) -> float | None:
    try:
        return float(calendar.timegm(time.strptime(str(text), _TIME)))
    except (ValueError, OverflowError):
        return None


def _seconds(attempt: Attempt, name: str) -> float | None:
    seconds = attempt.members.get(name, {}).get("seconds")
    if not isinstance(seconds, (int, float)) or isinstance(seconds, bool) or not 0 <= seconds < 1e9:
        return None
    return float(seconds)


def _first_end(attempt: Attempt) -> float | None:
    """How long after the start the first rank failed."""
    return None if attempt.first_failure is None else _seconds(attempt, attempt.first_failure)


def _bar(
    attempt: Attempt, number: int, rank: int, begin: float, log: Series | None, stopped: float | None
) -> Bar | None:
    name = str(rank)
    seconds = _seconds(attempt, name)
    if seconds is None:
        return None
    status = attempt.members[name].get("status")
    status = status if isinstance(status, int) else None
    how = _how(attempt, name, status)
    stops = begin + stopped if how == STOPPED and stopped is not None and stopped < seconds else None
    return Bar(
        attempt=number,
        begin=begin,
        end=begin + seconds,
        how=how,
        status=status,
        first_step=_first_step(log, begin, seconds),
        stops=stops,
    )


def _how(attempt: Attempt, name: str, status: int | None) -> str:
    if name == attempt.first_failure:
        return FIRST
    if status is None:
        return UNKNOWN
    if status == 0:
        return GOOD
    if name in attempt.also_failed:
        return FAILED
    if attempt.stopped_by and attempt.first_failure is None:
        return STOPPED  # the stack of a rank that hangs comes with SIGABRT
    return STOPPED if status in _BY_US else FAILED


def _first_step(log: Series | None, begin: float, seconds: float) -> float | None:
    if log is None or log.first is None or log.first_step is None:
        return None
    since = log.first_step - log.first
    return begin + since if 0 <= since <= seconds else None


def _log_of(data: RunData, rank: int, attempt: int) -> Series | None:
    logs = data.logs.get(rank, [])
    return logs[attempt] if len(logs) == len(data.attempts) else None


def _without_end(
    data: RunData, attempt: Attempt, number: int, rank: int, begin: float, started: float, now: float
) -> Bar | None:
    """Of a run without an outcome: until now, or until its log was written for the last time."""
    runs = data.run.state == RUNNING
    if number < len(data.attempts) - 1:
        return None
    try:
        written = os.stat(os.path.join(attempt.logs, f"rank_{rank}.log")).st_mtime
    except OSError:
        written = now if runs else started
    end = (now if runs else written) - started
    if end <= begin:
        return None
    log = _log_of(data, rank, number)
    first = _first_step(log, begin, end - begin)
    return Bar(
        attempt=number, begin=begin, end=end, how=RUNS if runs else UNKNOWN, status=None, first_step=first, stops=None
    )


def clocks(data: RunData) -> list[tuple[str, str, float]]:
    """(host, first host, by how many seconds its first lines are later) of hosts whose clocks seem to differ."""
    hosts: dict[str, list[float]] = {}
    for rank in data.ranks:
        for log in data.logs.get(rank.rank, [])[-1:]:
            if log.first is not None and rank.host:
                hosts.setdefault(rank.host, []).append(log.first)
    middles = {host: median(times) for host, times in hosts.items()}
    if len(middles) < 2:
        return []
    first, base = next(iter(middles.items()))
    return [(host, first, value - base) for host, value in middles.items() if abs(value - base) > TOLERANCE]
