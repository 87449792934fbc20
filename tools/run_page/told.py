"""Sentences instead of charts: for columns with one value, with a constant value, or that repeat another chart."""

from __future__ import annotations

from bisect import bisect_left
from statistics import median

from hccl_tools.common.language import marked, tr
from hccl_tools.common.record import Record
from hccl_tools.common.words import count, listed
from tools.progress.counting import axis_of
from tools.run_page.reading import finite

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.progress.counting import Axis
    from tools.progress.series import Series
    from tools.run_page.reading import Curve, RunData

_TITLES = {
    "loss": (marked("Loss"), ""),
    "step_ms": (marked("Time of a step"), "ms"),
    "data_ms": (marked("Time of a step that waits for data"), "ms"),
    "before_ms": (marked("Time of a step before the ranks wait for one another"), "ms"),
    "samples_per_s": (marked("Samples a second"), "/s"),
    "lr": (marked("Learning rate"), ""),
}
ORDER = tuple(_TITLES)
SPEEDS = ("step_ms", "data_ms", "before_ms", "samples_per_s")  # they jump from step to step around a level
_LARGE = 1000  # from which a number has separators, and milliseconds become seconds
_SMALL = 1e-4
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
        return tr("{what}: nan or inf in all steps from {first} to {last}.", what=title, first=first, last=last)
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
    """The sentence about the samples a second, where the time of a step states the same; labels: of runs, by number."""
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


# ---- At which second of a run a step ended, where its logs have times; of one rank's clock, for no two are alike.


class Clock(Record):
    """The seconds of some steps, since the first of them; both in order."""

    steps: list[int]
    seconds: list[float]

    def at(self, step: int) -> float:
        """The second of a step; between those that are known on the line that joins them."""
        after = bisect_left(self.steps, step)
        if after == 0:
            return self.seconds[0]
        if after == len(self.steps):
            return self.seconds[-1]
        first, last = self.steps[after - 1], self.steps[after]
        share = (step - first) / (last - first)
        return self.seconds[after - 1] + share * (self.seconds[after] - self.seconds[after - 1])


def clock_of(data: RunData) -> Clock | None:
    """The clock of the lowest rank whose logs have times; None without any, or where all of them are the same."""
    axis = axis_of(log.counted for logs in data.logs.values() for log in logs)
    for _, logs in sorted(data.logs.items()):
        there = _times(logs, axis)
        seconds = [0.0]
        for (_, earlier), (_, moment) in zip(there, there[1:]):
            seconds.append(seconds[-1] + max(0.0, moment - earlier))  # a clock may be set back
        if seconds[-1] > 0:
            return Clock(steps=[step for step, _ in there], seconds=seconds)
    return None


def _times(logs: list[Series], axis: Axis) -> list[tuple[int, float]]:
    """(step, its time) in order; what an attempt did again counts as it was done last."""
    found: list[tuple[int, float]] = []
    for log in logs:
        times = sorted((axis.at(place), moment) for place, moment in log.times)
        found = [pair for pair in found if not times or pair[0] < times[0][0]] + times
    return found


def restarts(data: RunData) -> dict[int, int]:
    """{which restart: its first step}, of those that had a step, where the logs of all attempts are here."""
    axis = axis_of(log.counted for logs in data.logs.values() for log in logs)
    found: dict[int, int] = {}
    for logs in data.logs.values():
        if len(logs) == len(data.attempts):
            for number, log in enumerate(logs[1:], 1):
                _note(found, number, log, axis)
    return dict(sorted(found.items()))


def _note(found: dict[int, int], number: int, log: Series, axis: Axis) -> None:
    if log.places:
        step = axis.at(log.places[0])
        found[number] = min(step, found.get(number, step))


# ---- What a column of numbers is called on the page, and how its numbers are written: with a unit, and no more digits.


def title_of(field: str) -> tuple[str, str]:
    """(title, unit) of a field or a metric."""
    if field in _TITLES:
        title, unit = _TITLES[field]
        return tr(title), unit
    name, _, unit = field.partition(" ")
    return tr("{name} on held-out data", name=name), unit


def shown(value: float, unit: str) -> str:
    """The number with its unit: ``105 ms``, ``1.2 s``, ``96.4 %``, ``12,345/s``."""
    if unit == "ms" and abs(value) >= _LARGE:
        value, unit = value / 1000, "s"
    text = _digits(value)
    return f"{text}{unit}" if unit.startswith("/") else f"{text} {unit}".strip()


def _digits(value: float) -> str:
    """At most four digits that count; more of them only before the point."""
    if abs(value) >= _LARGE:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < _SMALL else f"{value:.4g}"
