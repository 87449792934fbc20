"""Draws the picture of plot_log.py with matplotlib: the median of the ranks in a band, and the ranks that differ.

Its words are English, because the fonts of matplotlib lack other letters.
"""

from __future__ import annotations

import math

from tools.run_page import curves, outliers
from tools.run_page.reading import Curve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tools.run_page.curves import Drawn
    from tools.run_page.outliers import Outlier
    from tools.run_page.reading import RunData

TITLES = {
    "loss": "loss",
    "step_ms": "time of a step, ms",
    "before_ms": "of it before the ranks\nwait for one another, ms",
    "data_ms": "of it for data, ms",
}
MOST_NAMED = 6  # ranks in a part of the picture
_OUTLIERS = ("#c0342b", "#b45309", "#a21caf", "#0f766e", "#7a5c00", "#1f2937")
_PLAIN = ("#2563c9", "#8e63ce")
_MIDDLE, _BAND = "#2563c9", "#8a94a0"
_NEXT = 0.1  # the least distance of two names, as a part of the height
_HOLE = 100  # steps that share two points and are a hundredth of the run apart have a hole between them
_PEAK = 4  # times as high as almost all values: it is cut off


def draw(data: RunData, found: list[Outlier]) -> Any:
    """The Figure.  Raises ImportError without matplotlib."""
    from matplotlib.figure import Figure

    fields = [field for field in TITLES if field in data.curves]
    colours = _colours(found)
    figure = Figure(figsize=(9, 1 + 2.2 * len(fields)), layout="constrained")
    parts: Any = figure.subplots(len(fields), 1, sharex=True, squeeze=False)[:, 0]
    for field, axes in zip(fields, parts):
        named = list(dict.fromkeys(one.rank for one in found if one.field == field))[:MOST_NAMED]
        _part(axes, field, curves.draw(_warm(field, data.curves[field]), named), named, colours)
    parts[-1].set_xlabel("step")
    if parts[0].get_legend_handles_labels()[1]:
        parts[0].legend(fontsize="small", frameon=False)
    return figure


def _colours(found: list[Outlier]) -> dict[int, str]:
    """{rank: its colour in all parts of the picture}."""
    ranks = dict.fromkeys(one.rank for one in found)
    return {rank: _OUTLIERS[number % len(_OUTLIERS)] for number, rank in enumerate(ranks)}


def _warm(field: str, ranks: dict[int, Curve]) -> dict[int, Curve]:
    """Times without those of the first step, which compiled the network."""
    if field not in outliers.TIMES:
        return ranks
    return {
        rank: Curve(steps=curve.steps[1:] or curve.steps, values=curve.values[1:] or curve.values)
        for rank, curve in ranks.items()
    }


def _part(axes: Any, field: str, drawn: Drawn, named: list[int], colours: dict[int, str]) -> None:
    """One field of all ranks."""
    axes.set_ylabel(TITLES[field], fontsize="small")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="0.9")
    alone = {"marker": "."} if len(drawn.steps) == 1 else {}
    places = _places(drawn)
    steps = [drawn.steps[place] for place in places]
    if drawn.middle:
        low, middle, high = (_floats(column, places) for column in (drawn.low, drawn.middle, drawn.high))
        axes.fill_between(steps, low, high, color=_BAND, alpha=0.35, linewidth=0, label="5 to 95 % of the ranks")
        axes.plot(steps, middle, color=_MIDDLE, linewidth=1.8, label="median", **alone)
        shown = [rank for rank in named if rank in drawn.ranks]
    else:
        shown = list(drawn.ranks)
    ends = {}
    for number, rank in enumerate(shown):
        colour = colours.get(rank, _PLAIN[number % len(_PLAIN)])
        values = _smooth(drawn, _floats(drawn.ranks[rank], places))
        axes.plot(steps, values, color=colour, linewidth=1.2, **alone)
        ends[rank] = (next((value for value in reversed(values) if math.isfinite(value)), 0.0), colour)
    _limit(axes, field, [*drawn.low, *drawn.high, *(value for rank in shown for value in drawn.ranks[rank])])
    _name(axes, ends)


def _places(drawn: Drawn) -> list[int]:
    """The points to draw: not the two of steps with a hole between them, where a part of a log was not read."""
    steps = drawn.steps
    if drawn.every == 1:
        return list(range(len(steps)))
    most = (steps[-1] - steps[0]) / _HOLE
    return [place for place in range(len(steps)) if steps[min(place | 1, len(steps) - 1)] - steps[place & ~1] <= most]


def _smooth(drawn: Drawn, values: list[float]) -> list[float]:
    """The values of a rank; where steps share two points, their lowest and highest value, it is the mean of both."""
    if drawn.every == 1:
        return values
    means = [sum(values[place : place + 2]) / len(values[place : place + 2]) for place in range(0, len(values), 2)]
    return [mean for mean in means for _ in range(2)][: len(values)]


def _floats(column: list[float | None], places: list[int]) -> list[float]:
    return [math.nan if (value := column[place]) is None else value for place in places]


def _limit(axes: Any, field: str, values: list[float | None]) -> None:
    """Times begin at 0, and a few peaks, such as after a restart, do not make all the rest flat."""
    known = sorted(value for value in values if value is not None)
    if field not in outliers.TIMES or not known:
        return
    most, highest = known[round((len(known) - 1) * 0.98)], known[-1]
    if highest > _PEAK * most > 0:
        axes.set_title(f"peaks, at most {highest:.4g} ms, are cut off", fontsize="small", loc="right")
        highest = 1.5 * most
    axes.set_ylim(0, 1.1 * highest or 1)


def _name(axes: Any, ends: dict[int, tuple[float, str]]) -> None:
    """Puts the name of each rank next to the end of its line, one above the other."""
    low, high = axes.get_ylim()
    free = -math.inf
    for rank, (value, colour) in sorted(ends.items(), key=lambda one: one[1][0]):
        free = max(free + _NEXT, min(1.0, (value - low) / ((high - low) or 1)))
        axes.text(1.01, free, f"rank {rank}", transform=axes.transAxes, color=colour, va="center", fontsize="small")
