"""Finds the ranks that differ from the others, and by how much: slow ones, losses that drift away, nan and inf.

It looks at the whole run, for report.py and plot_log.py.  While a run continues, tools/progress/slowness.py compares
the last steps with a factor that the user chooses.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from statistics import median

from hccl_tools.common.record import Record
from tools.run_page.reading import Curve, finite

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    Curves = dict[str, dict[int, Curve]]

SLOW, DRIFT, NOT_FINITE = "slow", "drift", "not finite"
TIMES = ("step_ms", "data_ms", "before_ms")
_STEP_SHARE = 20  # a rank is slow, if it is behind the middle one by so small a part of a step
_PARTS, _SHARE_IN_PART, _LEAST_IN_PART = (
    4,
    10,
    5,
)  # or in a quarter of the run, which has so many values of it, by a tenth
_LEAST_RANKS = 3
_FAR = 8  # spreads of the middle ranks
_LEAST_DRIFT = 0.02  # of the loss
MOST = 12  # of one field


class Outlier(Record):
    """A rank that differs."""

    kind: str  # SLOW, DRIFT or NOT_FINITE
    field: str
    rank: int
    value: float  # of the rank
    middle: float  # of the ranks
    step: int | None = None  # of the first value that is nan or infinite
    times: int = 0  # how many are
    since: int | None = None  # the steps in which it is slow, if it is not so in the whole run
    until: int | None = None


def find(curves: Curves) -> list[Outlier]:
    """All outliers, by field; in each field those that differ most come first.

    Ranks that wait for each other in every step all take the time of the slowest.  Where most ranks say how long they
    take before they wait, a step's own time does not count.
    """
    found: list[Outlier] = []
    steps, before = curves.get("step_ms", {}), curves.get("before_ms", {})
    waits = len(before) > 1 and 2 * len(before) > len(steps)
    for field, ranks in curves.items():
        found += _worst(_not_finite(field, ranks))
        if field in TIMES and not (field == "step_ms" and waits):
            found += _worst(_slow(field, ranks, steps or before))
        elif field == "loss":
            found += _worst(_drifting(ranks))
    return found


def _worst(found: Iterable[Outlier]) -> list[Outlier]:
    return sorted(found, key=lambda one: (-one.times, -abs(one.value - one.middle)))[:MOST]


def typical(ranks: dict[int, Curve]) -> dict[int, float]:
    """{rank: the median of its values}; the first of several is left out: its step compiled the network."""
    found = {}
    for rank, curve in ranks.items():
        values = finite(curve.values[1:] or curve.values)
        if values:
            found[rank] = median(values)
    return found


def _slow(field: str, ranks: dict[int, Curve], steps: dict[int, Curve]) -> Iterable[Outlier]:
    """Those that are slow in the whole run, and those that are so in a quarter of it; steps: the times of steps."""
    found = {one.rank: one for one in _slower(field, ranks, steps, _STEP_SHARE)}
    last = max((curve.steps[-1] for curve in ranks.values() if curve.steps), default=0)
    in_parts: dict[int, Outlier] = {}
    for part in range(_PARTS):
        since, until = last * part // _PARTS, last * (part + 1) // _PARTS
        inside = {rank: _part(curve, since, until) for rank, curve in ranks.items()}
        inside = {rank: curve for rank, curve in inside.items() if len(curve.steps) >= _LEAST_IN_PART}
        steps_inside = {rank: _part(curve, since, until) for rank, curve in steps.items()}
        for one in _slower(field, inside, steps_inside, _SHARE_IN_PART):
            known = in_parts.get(one.rank)
            if one.rank not in found and (known is None or one.value - one.middle > known.value - known.middle):
                in_parts[one.rank] = one.replace(since=since + 1, until=until)
    return [*found.values(), *in_parts.values()]


def _part(curve: Curve, since: int, until: int) -> Curve:
    """What it has after the step `since`, up to `until`."""
    first, end = bisect_right(curve.steps, since), bisect_right(curve.steps, until)
    return Curve(steps=curve.steps[first:end], values=curve.values[first:end])


def _slower(field: str, ranks: dict[int, Curve], steps: dict[int, Curve], share: int) -> Iterable[Outlier]:
    """Ranks that are behind the middle one by more than one of `share` parts of a step."""
    times, step = typical(ranks), typical(steps)
    if len(times) < 2:
        return
    ordered = sorted(times.values())
    middle = ordered[(len(ordered) - 1) // 2]
    limit = middle + (median(step.values()) if step else middle) / share
    for rank, time in times.items():
        if time > limit:
            yield Outlier(kind=SLOW, field=field, rank=rank, value=time, middle=middle)


def _drifting(ranks: dict[int, Curve]) -> Iterable[Outlier]:
    """Ranks whose loss in the last quarter of the run is far from that of the others."""
    ends = [curve.steps[-1] for curve in ranks.values() if curve.steps]
    since = max(ends, default=0) * 3 // 4
    until = min((end for end in ends if end > since), default=0)  # a rank that hung lacks the last steps
    means = {}
    for rank, curve in ranks.items():
        values = finite([value for step, value in zip(curve.steps, curve.values) if since < step <= until])
        if values:
            means[rank] = sum(values) / len(values)
    if len(means) < _LEAST_RANKS:
        return
    middle = median(means.values())
    spread = median(abs(mean - middle) for mean in means.values())
    limit = max(_FAR * spread, _LEAST_DRIFT * abs(middle))
    for rank, mean in means.items():
        if abs(mean - middle) > limit:
            yield Outlier(kind=DRIFT, field="loss", rank=rank, value=mean, middle=middle)


def _not_finite(field: str, ranks: dict[int, Curve]) -> Iterable[Outlier]:
    for rank, curve in ranks.items():
        bad = [step for step, value in zip(curve.steps, curve.values) if not math.isfinite(value)]
        if bad:
            yield Outlier(
                kind=NOT_FINITE, field=field, rank=rank, value=math.nan, middle=math.nan, step=bad[0], times=len(bad)
            )
