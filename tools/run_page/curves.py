"""Curves as a browser draws them: few enough points, the middle of all ranks, and ranks by name."""

from __future__ import annotations

import math
from statistics import median

from hccl_tools.common.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.run_page.reading import Curve

    Column = list["float | None"]

MOST_POINTS = 2000  # of a curve
_MOST_VALUES = 64_000  # of all ranks' curves of a chart
_MOST_NAMED = 64
_LEAST_BAND = 3  # ranks


class Drawn(Record):
    """What a chart shows."""

    steps: list[int]
    low: Column  # 5th percentile of the ranks at each step; these three are empty, where there are too few ranks
    middle: Column
    high: Column  # 95th percentile
    ranks: dict[int, Column]  # those that are drawn by name
    every: int  # how many steps share a point; 1: all are drawn
    number: int  # of ranks with values


def draw(ranks: dict[int, Curve], named: Sequence[int]) -> Drawn:
    """The curves of one field; `named`: the ranks that have a curve of their own where all of them are too many."""
    steps = sorted({step for curve in ranks.values() for step in curve.steps})
    few = len(ranks) <= _MOST_NAMED and len(ranks) * min(len(steps), MOST_POINTS) <= _MOST_VALUES
    shown = dict.fromkeys(ranks if few else named)
    width = -(-len(steps) // (MOST_POINTS // 2)) if len(steps) > MOST_POINTS else 1
    if width == 1:
        at, columns = steps, {rank: _aligned(curve, steps) for rank, curve in ranks.items()}
        means = columns
    else:
        bucket = {step: place // width for place, step in enumerate(steps)}
        at = [step for start in range(0, len(steps), width) for step in _ends(steps[start : start + width])]
        numbers = -(-len(steps) // width)
        columns = {rank: _extremes(ranks[rank], bucket, numbers) for rank in shown if rank in ranks}
        means = {rank: _means(curve, bucket, numbers) for rank, curve in ranks.items()}
        if len(at) < 2 * numbers:  # the last bucket has one step only
            columns = {rank: column[: len(at)] for rank, column in columns.items()}
            means = {rank: column[: len(at)] for rank, column in means.items()}
    low, middle, high = _band(list(means.values())) if len(ranks) >= _LEAST_BAND else ([], [], [])
    return Drawn(
        steps=at,
        low=low,
        middle=middle,
        high=high,
        ranks={rank: list(map(_short, columns[rank])) for rank in shown if rank in columns},
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


def _extremes(curve: Curve, bucket: dict[int, int], numbers: int) -> Column:
    """Two values of each bucket, the lowest and the highest in their order, so that no peak is lost."""
    column: Column = [None] * (2 * numbers)
    place, low, high, low_first = -1, 0.0, 0.0, True
    for step, value in zip(curve.steps, curve.values):
        if not math.isfinite(value):
            continue
        if bucket[step] != place:
            place, low, high = bucket[step], value, value
        elif value < low:
            low, low_first = value, False
        elif value > high:
            high, low_first = value, True
        column[2 * place], column[2 * place + 1] = (low, high) if low_first else (high, low)
    return column


def _means(curve: Curve, bucket: dict[int, int], numbers: int) -> Column:
    """The mean of each bucket, at both of its places."""
    sums, counts = [0.0] * numbers, [0] * numbers
    for step, value in zip(curve.steps, curve.values):
        if math.isfinite(value):
            sums[bucket[step]] += value
            counts[bucket[step]] += 1
    means = [total / number if number else None for total, number in zip(sums, counts)]
    return [mean for mean in means for _ in range(2)]


def _band(columns: list[Column]) -> tuple[Column, Column, Column]:
    low: Column = []
    middle: Column = []
    high: Column = []
    for values in zip(*columns):
        there = sorted(value for value in values if value is not None)
        if there:
            last = len(there) - 1
            low.append(_short(there[round(last * 0.05)]))
            middle.append(_short(median(there)))
            high.append(_short(there[round(last * 0.95)]))
        else:
            low.append(None)
            middle.append(None)
            high.append(None)
    return low, middle, high


def _short(value: float | None) -> float | None:
    """With five digits, more of which no screen shows."""
    return None if value is None else float(f"{value:.5g}")
