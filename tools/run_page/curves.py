"""Reduces curves for a browser: few enough points, the median of all ranks, and some ranks by name."""

from __future__ import annotations

import math
from statistics import median

from hccl_tools.common.grouping import grouped
from hccl_tools.common.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from tools.run_page.reading import Curve

    Column = list["float | None"]

MOST_POINTS = 2000  # of a curve
LEAST_BAND = 3  # ranks: fewer have a curve each, and neither a median nor a band
_LEAST_NOISE = 20  # points: of fewer each can be seen
_NOISE = 0.2  # of its whole height a curve of noise goes up or down from point to point
_WINDOWS = 30  # of a curve: so many stretches of it stay to be seen
_LEAST_WINDOW = 5  # points


class Drawn(Record):
    """The content of a chart."""

    steps: list[int]
    low: Column  # 5th percentile of the ranks at each step; these three are empty, where there are too few ranks
    middle: Column
    high: Column  # 95th percentile
    ranks: dict[int, Column]  # those that are drawn by name
    means: dict[int, Column]  # the same; where steps share points, their means
    bad: dict[int | None, list[int]]  # places in steps where a rank has nan or inf; None: where all that is there is
    every: int  # how many steps share two points; 1: all are drawn
    number: int  # of ranks with values


def draw(ranks: dict[int, Curve], named: Iterable[int], left_out: Collection[int] = ()) -> Drawn:
    """The curves of one field; `named`: the ranks with a curve of their own where all of them are too many.

    Of the band some ranks are left out, not of the median.
    """
    steps = sorted({step for curve in ranks.values() for step in curve.steps})
    shown = [rank for rank in dict.fromkeys(named if len(ranks) >= LEAST_BAND else ranks) if rank in ranks]
    width = -(-len(steps) // (MOST_POINTS // 2)) if len(steps) > MOST_POINTS else 1
    if width == 1:
        at, place = steps, {step: number for number, step in enumerate(steps)}
        columns = {rank: _aligned(curve, steps) for rank, curve in ranks.items()}
        lows = means = highs = columns
    else:
        at = [step for start in range(0, len(steps), width) for step in _ends(steps[start : start + width])]
        place = {step: 2 * (number // width) for number, step in enumerate(steps)}
        columns = {rank: _extremes(ranks[rank], place, len(at)) for rank in shown}
        means = {rank: _means(curve, place, len(at)) for rank, curve in ranks.items()}
        lows = {rank: _of_buckets(curve, place, len(at), min) for rank, curve in ranks.items()}
        highs = {rank: _of_buckets(curve, place, len(at), max) for rank, curve in ranks.items()}
    band = len(ranks) >= LEAST_BAND
    middle = _across(means, median) if band else []
    return Drawn(
        steps=at,
        low=_across(_without(lows, left_out), lambda values: sorted(values)[round(0.05 * (len(values) - 1))])
        if band
        else [],
        middle=middle,
        high=_across(_without(highs, left_out), lambda values: sorted(values)[round(0.95 * (len(values) - 1))])
        if band
        else [],
        ranks={rank: list(map(_short, columns[rank])) for rank in shown},
        means={rank: list(map(_short, means[rank])) for rank in shown},
        bad=_bad(ranks, place, middle),
        every=width,
        number=len(ranks),
    )


def _ends(steps: list[int]) -> list[int]:
    return [steps[0], steps[-1]] if len(steps) > 1 else steps


def _aligned(curve: Curve, steps: list[int]) -> Column:
    if curve.steps == steps:
        return [value if math.isfinite(value) else None for value in curve.values]
    there = dict(zip(curve.steps, curve.values))
    found = (there.get(step) for step in steps)
    return [value if value is not None and math.isfinite(value) else None for value in found]


def _extremes(curve: Curve, place: dict[int, int], length: int) -> Column:
    """Two values of each bucket, the lowest and the highest in their order, so that no peak is lost."""
    column: Column = [None] * (length + 1)
    now, low, high, low_first = -1, 0.0, 0.0, True
    for step, value in zip(curve.steps, curve.values):
        if not math.isfinite(value):
            continue
        if place[step] != now:
            now, low, high = place[step], value, value
        elif value < low:
            low, low_first = value, False
        elif value > high:
            high, low_first = value, True
        column[now], column[now + 1] = (low, high) if low_first else (high, low)
    return column[:length]


def _means(curve: Curve, place: dict[int, int], length: int) -> Column:
    return _of_buckets(curve, place, length, lambda values: sum(values) / len(values))


def _of_buckets(curve: Curve, place: dict[int, int], length: int, of: Callable[[list[float]], float]) -> Column:
    """One value of each bucket, at both of its places."""
    inside = grouped((place[step], value) for step, value in zip(curve.steps, curve.values) if math.isfinite(value))
    column: Column = [None] * (length + 1)
    for at, values in inside.items():
        column[at] = column[at + 1] = of(values)
    return column[:length]


def _without(columns: dict[int, Column], left_out: Collection[int]) -> dict[int, Column]:
    return {rank: column for rank, column in columns.items() if rank not in left_out}


def _across(columns: dict[int, Column], of: Callable[[list[float]], float]) -> Column:
    """One value of all ranks, at each place."""
    found = ([value for value in values if value is not None] for values in zip(*columns.values()))
    return [_short(of(there)) if there else None for there in found]


def _bad(ranks: dict[int, Curve], place: dict[int, int], middle: Column) -> dict[int | None, list[int]]:
    """Where values are nan or infinite: of each rank, and of all where nothing else is there."""
    found: dict[int | None, list[int]] = {}
    for rank, curve in ranks.items():
        places = {place[step] for step, value in zip(curve.steps, curve.values) if not math.isfinite(value)}
        if places:
            found[rank] = sorted(places)
    every = {at for places in found.values() for at in places}
    nothing = sorted(at for at in every if middle and middle[at] is None)
    return {**found, None: nothing} if nothing else found


def window_of(column: Sequence[float | None]) -> int:
    """Over how many points a curve needs a rolling median to be read; 1: it can be read as it is."""
    values = [value for value in column if value is not None]
    if len(values) < _LEAST_NOISE:
        return 1
    ordered = sorted(values)
    height = ordered[round(0.95 * (len(ordered) - 1))] - ordered[round(0.05 * (len(ordered) - 1))]
    jumps = median(abs(after - before) for before, after in zip(values, values[1:]))
    return max(_LEAST_WINDOW, len(values) // _WINDOWS) | 1 if jumps > _NOISE * height else 1


def smoothed(column: Column, window: int) -> Column:
    """The rolling median of the values; what is None stays so."""
    there = [place for place, value in enumerate(column) if value is not None]
    values = [value for value in column if value is not None]
    found: Column = [None] * len(column)
    for number, place in enumerate(there):
        half = min(window // 2, number, len(values) - 1 - number) if len(values) > window else window // 2
        found[place] = _short(median(values[max(0, number - half) : number + half + 1]))
    return found


def _short(value: float | None) -> float | None:
    """With five digits, more of which no screen shows."""
    return None if value is None else float(f"{value:.5g}")
