"""Determines the phase of a job from its logs; the result is empty if they do not show it."""

from __future__ import annotations

import os
import statistics
from collections import Counter

from hccl_tools.common.record import Record
from tools.live.job import RUNNING
from tools.progress import phases

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tools.live.job import Job
    from tools.progress.ranks import RankProgress

RESTART = "restart"  # besides those of tools/progress/phases.py: no rank of the new attempt has written yet
_BY_SCHEDULER = (phases.JOIN, phases.PREPARE)


class Phase(Record):
    """The phase of most ranks."""

    name: str
    seconds: float | None  # for how long
    ranks: int  # that do it
    of: int  # all ranks
    ended: int = 0  # ranks that have ended, while no rank takes steps


def of(
    job: Job,
    ranks: Sequence[RankProgress],
    over: frozenset[int],
    quiet: frozenset[int],
    scheduler: str | None,
    date: float,
    clocks: Mapping[str, float],
) -> Phase | None:
    """The phase now.

    over: the ranks that have ended; quiet: those that have written nothing for long, while others did;
    scheduler: what the log of MindSpore's scheduler tells; date: seconds since 1970;
    clocks: seconds by which the hosts' clocks are ahead of ours, of those that differ.
    """
    if job.state != RUNNING or not ranks:
        return None
    living = [one for one in ranks if one.rank not in over]
    found = {one.rank: one.phase for one in living if one.phase is not None}
    if over and not any(phase == phases.STEPS and rank not in quiet for rank, phase in found.items()):
        return Phase(name=phases.STOP, seconds=None, ranks=len(living), of=len(ranks), ended=len(over))
    if not any(one.tail.size for one in ranks):
        return _begins(job, ranks, date)
    if scheduler in _BY_SCHEDULER:
        found = {**dict.fromkeys((one.rank for one in living), scheduler), **found}
    if not found:
        return None
    number = Counter({rank: phase for rank, phase in found.items() if rank not in quiet}.values() or found.values())
    name = max(sorted(number, key=phases.PHASES.index), key=number.__getitem__)
    hosts = {place.rank: place.host for place in job.places}
    since = [
        date + clocks.get(hosts.get(one.rank, ""), 0.0) - one.phase_since
        for one in living
        if one.phase == name and one.phase_since is not None
    ]
    seconds = max(0.0, statistics.median_low(since)) if since else None
    return Phase(name=name, seconds=seconds, ranks=number[name], of=len(ranks))


def _begins(job: Job, ranks: Sequence[RankProgress], date: float) -> Phase | None:
    """No log has a line.  Logs of other hosts may be there and not here, so the phase there is unknown."""
    here = os.uname().nodename
    if any(place.host != here and not one.tail.there for place, one in zip(job.places, ranks)):
        return None
    if job.attempt:
        return Phase(name=RESTART, seconds=None, ranks=len(ranks), of=len(ranks))
    seconds = None if job.started is None else max(0.0, date - job.started)
    return Phase(name=phases.START, seconds=seconds, ranks=len(ranks), of=len(ranks))
