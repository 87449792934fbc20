"""Many ranks as one row: how many of them do what, at each moment."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate

from hccl_tools.common.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.run_page.timeline import Bar

# What a rank does, the lowest layer of the drawing first.
STEPS, BEFORE, RUNS, QUIET, STOPPING = "steps", "before", "runs", "quiet", "stopping"
LAYERS = (STEPS, BEFORE, RUNS, QUIET, STOPPING)


class Density(Record):
    """How many ranks do what, at moments at even distances in the time in which any of them ran."""

    begin: float
    end: float
    moments: list[float]
    layers: dict[str, list[int]]  # by LAYERS, only those that some rank is in; a rank that has ended is in none


def of(bars: Sequence[Bar], parts: int) -> Density:
    """Of the bars of as many ranks, at the middles of `parts` parts of the time in which they ran."""
    begin, end = min(bar.begin for bar in bars), max(bar.end for bar in bars)
    moments = [begin + (end - begin) * (part + 0.5) / parts for part in range(parts)]
    changes = {layer: [0] * (parts + 1) for layer in LAYERS}
    for bar in bars:
        for layer, since, until in _spans(bar):
            changes[layer][bisect_left(moments, since)] += 1
            changes[layer][bisect_left(moments, until)] -= 1
    counted = {layer: list(accumulate(change[:-1])) for layer, change in changes.items()}
    return Density(
        begin=begin, end=end, moments=moments, layers={name: one for name, one in counted.items() if any(one)}
    )


def _spans(bar: Bar) -> list[tuple[str, float, float]]:
    """(layer, begin, end) of what one rank did; without a first step nobody knows whether it takes steps."""
    until = bar.end if bar.stops is None else bar.stops
    end = until if bar.quiet is None else min(until, bar.quiet)
    first = bar.first_step
    found = [(RUNS, bar.begin, end)] if first is None else [(BEFORE, bar.begin, min(first, end)), (STEPS, first, end)]
    return [span for span in [*found, (QUIET, end, until), (STOPPING, until, bar.end)] if span[1] < span[2]]
