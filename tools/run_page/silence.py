"""Ranks whose logs ended long before those of the others, while they still ran."""

from __future__ import annotations

from statistics import median

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.progress.series import Series
    from tools.run_page.reading import Attempt, RunData

LEAST = 10.0  # seconds without a line that are worth a word
_SHARE = 3  # of a run: so large a part of it without a line, while the middle rank wrote
_LEAST_RANKS = 3


def seconds_of(attempt: Attempt, name: str) -> float | None:
    """How long a member ran, as launch.json says it."""
    seconds = attempt.members.get(name, {}).get("seconds")
    if not isinstance(seconds, (int, float)) or isinstance(seconds, bool) or not 0 <= seconds < 1e9:
        return None
    return float(seconds)


def log_of(data: RunData, rank: int, attempt: int) -> Series | None:
    """The log of a rank in an attempt, where each attempt has one."""
    logs = data.logs.get(rank, [])
    return logs[attempt] if len(logs) == len(data.attempts) else None


def last_line(log: Series | None) -> float | None:
    """How long after its first line a log has its last one: both are of one clock."""
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
