"""Determines which ranks are slower than the others, and by how much.

Ranks that exchange gradients wait for one another in every step, so all of them take the time of the slowest.  Three
times may show which rank that is, the best one first:

1. the time of a step before the ranks wait (`before_ms`), if the trainer prints it
2. the step time itself, if it differs: the ranks do not wait for one another
3. the time for data (`data_ms`): if a rank waits longer for data than the others, all others wait for it, too
"""

from __future__ import annotations

import statistics

from hccl_tools.common.grouping import grouped
from hccl_tools.common.record import Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tools.progress.ranks import RankProgress

BEFORE, STEP, DATA = "before_ms", "step_ms", "data_ms"
STEPS = 20  # for so many steps a rank must be slow, before it counts as slow
LEAST_SHARE = 0.1  # of a step: on a busy machine times before the collective differ by a few per cent of it


class Pace(Row):
    """How long a rank takes, against the median of all ranks and of those of its host."""

    kind: str  # BEFORE, STEP or DATA
    time: float  # ms
    median: float  # of all ranks
    ratio: float  # how many times as long as the job would take with the median
    ratio_of_host: float | None  # the same among the ranks of its host, if there are others
    share: float | None = None  # of BEFORE: how much of a step it is behind the median

    def is_slow(self, factor: float) -> bool:
        """Whether it takes `factor` times as long, and the job could gain from it."""
        return self.ratio >= factor and (self.share is None or self.share >= LEAST_SHARE)


def paces(ranks: Iterable[RankProgress], host_of: Mapping[int, str]) -> dict[int, Pace]:
    """{rank: its Pace} of the ranks that state how long they take; host_of: the host of each rank."""
    known = list(ranks)
    for kind in (BEFORE, STEP):
        found = _paces_of(kind, _times(known, kind), host_of)
        if kind == BEFORE and found:
            return _with_shares(found, known)
    return _with_data(found, _times(known, DATA), host_of)


def _times(ranks: list[RankProgress], kind: str) -> dict[int, float]:
    """Of a kind that most ranks have: a median of a few would state nothing."""
    values = ((one.rank, getattr(one, kind)) for one in ranks)
    times = {rank: value for rank, value in values if value is not None}
    return times if 2 * len(times) > len(ranks) and len(times) > 1 else {}


def _paces_of(kind: str, times: dict[int, float], host_of: Mapping[int, str]) -> dict[int, Pace]:
    if not times:
        return {}
    median, of_host = statistics.median_low(times.values()), _medians_of_hosts(times, host_of)
    return {
        rank: Pace(kind, time, median, time / median, _ratio(time, of_host.get(host_of.get(rank, ""))))
        for rank, time in times.items()
    }


def _medians_of_hosts(times: dict[int, float], host_of: Mapping[int, str]) -> dict[str, float]:
    """{host: median of its ranks}, of hosts with more than one."""
    by_host = grouped((host_of.get(rank, ""), time) for rank, time in times.items())
    return {host: statistics.median_low(found) for host, found in by_host.items() if len(found) > 1}


def _ratio(time: float, median: float | None) -> float | None:
    return time / median if median else None


def _with_shares(found: dict[int, Pace], ranks: list[RankProgress]) -> dict[int, Pace]:
    """The paces, with how much of a step each rank is behind, where it states how long its steps take."""
    steps = {one.rank: one.step_ms for one in ranks}
    return {
        rank: pace._replace(share=(pace.time - pace.median) / step) if (step := steps[rank]) else pace
        for rank, pace in found.items()
    }


def _with_data(found: dict[int, Pace], data: dict[int, float], host_of: Mapping[int, str]) -> dict[int, Pace]:
    """The paces, with those of ranks whose wait for data states more than their step time."""
    if not found or not data:
        return found
    median, of_host = statistics.median_low(data.values()), _medians_of_hosts(data, host_of)
    paces = dict(found)
    for rank, time in data.items():
        step = found.get(rank)
        if step is None or step.time <= time - median:
            continue
        ratio = _without(step.time, time - median)
        if ratio > step.ratio:
            host = of_host.get(host_of.get(rank, ""))
            own = None if host is None or step.time <= time - host else _without(step.time, time - host)
            paces[rank] = Pace(DATA, time, median, ratio, own)
    return paces


def _without(step: float, excess: float) -> float:
    """How many times as long a step takes as it would without this excess."""
    return step / (step - max(0.0, excess))


class Stragglers:
    """Which ranks were slow for STEPS steps: each is named once."""

    def __init__(self, factor: float) -> None:
        self._factor = factor
        self._since: dict[int, int] = {}  # rank: its steps_done when it was first seen slow
        self.worst: dict[int, Pace] = {}  # of those that were named: their slowest pace
        self.steps: dict[int, int] = {}  # of the same: the longest time that they were slow, in steps

    def update(self, ranks: Iterable[RankProgress], found: Mapping[int, Pace]) -> list[tuple[int, Pace]]:
        """The ranks to name now; `ranks`: those whose log has grown."""
        new = []
        for one in ranks:
            pace = found.get(one.rank)
            if pace is None or not pace.is_slow(self._factor):
                self._since.pop(one.rank, None)
                continue
            since = self._since.setdefault(one.rank, one.steps_done)
            if one.steps_done - since < STEPS:
                continue
            if one.rank not in self.worst:
                new.append((one.rank, pace))
            if one.rank not in self.worst or pace.ratio > self.worst[one.rank].ratio:
                self.worst[one.rank] = pace
            self.steps[one.rank] = max(self.steps.get(one.rank, 0), one.steps_done - since)
        return new

    def again(self) -> None:
        """Another attempt begins: steps are counted from 0."""
        self._since.clear()
