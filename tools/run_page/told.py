"""Columns that need no chart: one value, always the same, or another chart says it.  A sentence tells them."""

from __future__ import annotations

from statistics import median

from hccl_tools.common.language import tr
from hccl_tools.common.words import count, listed
from tools.run_page.quantities import shown, title_of
from tools.run_page.reading import finite

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.run_page.reading import Curve

_ALIKE = 0.02  # so little may two columns differ that say the same


def of_ranks(field: str, ranks: dict[int, Curve]) -> str | None:
    """The sentence about a column of one run; None: it needs a chart."""
    title, unit = title_of(field)
    steps = {step for curve in ranks.values() for step in curve.steps}
    every = [value for curve in ranks.values() for value in curve.values]
    values = finite(every)
    if not steps:
        return tr("{what}: no value.", what=title)
    first, last = min(steps), max(steps)
    if not values:
        return tr(
            "{what}: never a number, but nan or inf, in steps {first} to {last}.", what=title, first=first, last=last
        )
    if len(values) < len(every):
        return None
    lowest, highest = shown(min(values), unit), shown(max(values), unit)
    if len(steps) == 1:
        if len(values) == 1 or lowest == highest:
            return tr("{what}: {value} at step {step}, one measurement.", what=title, value=highest, step=last)
        return tr(
            "{what}: {low} to {high} at step {step}, one measurement of each of {ranks}.",
            what=title,
            low=lowest,
            high=highest,
            step=last,
            ranks=count(len(ranks), "rank"),
        )
    if _same(values):
        return tr(
            "{what}: {value} in all steps from {first} to {last}.", what=title, value=highest, first=first, last=last
        )
    return None


def of_runs(field: str, runs: dict[int, Curve], labels: list[str]) -> str | None:
    """The sentence about a column of several runs, each with its median; None: it needs a chart."""
    title, unit = title_of(field)
    if not all(curve.values and _same(curve.values) for curve in runs.values()):
        return None
    pairs = [f"{labels[number]} {shown(curve.values[0], unit)}" for number, curve in runs.items()]
    if all(len(curve.values) == 1 for curve in runs.values()):
        return tr("{what}, one measurement of each run: {values}.", what=title, values=listed(pairs))
    return tr("{what}, the same in all steps of a run: {values}.", what=title, values=listed(pairs))


def of_speed(speeds: dict[int, Curve], times: dict[int, Curve], labels: list[str] | None = None) -> str | None:
    """The sentence about the samples a second, where the time of a step says the same; labels: of runs, by number."""
    title, unit = title_of("samples_per_s")
    if not all(rank in times and _follows(speed, times[rank]) for rank, speed in speeds.items()):
        return None
    if labels is not None:
        pairs = [f"{labels[number]} {shown(median(curve.values), unit)}" for number, curve in speeds.items()]
        text = tr("{what}, the median of each run: {values}.", what=title, values=listed(pairs))
    else:
        values = [value for curve in speeds.values() for value in curve.values]
        text = tr(
            "{what}: median {middle}, {low} to {high}.",
            what=title,
            middle=shown(median(values), unit),
            low=shown(min(values), unit),
            high=shown(max(values), unit),
        )
    return tr("{sentence} The time of a step shows the same.", sentence=text)


def _follows(speed: Curve, time: Curve) -> bool:
    """Whether one of two columns is always the same number divided by the other."""
    if not speed.values or speed.steps != time.steps:
        return False
    products = [one * other for one, other in zip(speed.values, time.values)]
    if len(finite(products)) < len(products):
        return False
    middle = median(products)
    return middle > 0 and all(abs(product - middle) <= _ALIKE * middle for product in products)


def _same(values: list[float]) -> bool:
    """Whether no screen shows a difference between them; not so of nan."""
    return len({f"{value:.5g}" for value in values}) == 1 and len(finite(values)) == len(values)
