"""The results of several runs, which of them was best, and sentences about this."""

from __future__ import annotations

import functools
import math
import re

from hccl_tools.common.language import tr
from hccl_tools.common.record import Record
from hccl_tools.common.words import count, listed
from tools.history.listing import RUNNING
from tools.progress import figures
from tools.run_page import attempts, charts
from tools.run_page.reading import Curve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tools.run_page.reading import RunData

ALIKE = 0.01  # times that differ by less are the same
_MOST_FAILED = 4  # sentences
_LOW = re.compile(r"(?:^|[\W_])(?:error|err|loss|wer|cer|perplexity|ppl|mae|mse|rmse)", re.IGNORECASE)
_HIGH = re.compile(
    r" %$|(?:^|[\W_])(?:acc|accuracy|top[_-]?\d+|f1|precision|recall|map|auc|iou|miou|bleu|psnr|ssim)(?:$|[\W_])",
    re.IGNORECASE,
)


class Result(Record):
    """The result of one run; None: its logs do not state it."""

    failed: bool
    runs: bool
    seconds: int | None
    steps: int | None  # the last one that a log has
    loss: float | None  # at that step; nan, where no rank had a number
    lowest: tuple[float, int] | None  # the loss and its step
    measured: dict[str, float]  # the last ones on held-out data
    step_ms: float | None
    cause: str  # empty, if it has not failed or that is unknown


def of(data: RunData) -> Result:
    """What the run reached, as the median of its ranks."""
    loss = _middle(data, "loss")
    steps = [curve.steps[-1] for ranks in data.curves.values() for curve in ranks.values() if curve.steps]
    ends = {name: _middle(data, name).values[-1:] for name in data.metrics}
    return Result(
        failed=data.run.failed,
        runs=data.run.state == RUNNING,
        seconds=data.run.seconds,
        steps=max(steps, default=None),
        loss=_last(data.curves.get("loss", {}), loss),
        lowest=min(zip(loss.values, loss.steps), default=None),
        measured={name: values[0] for name, values in ends.items() if values},
        step_ms=figures.middle(_middle(data, "step_ms").values),
        cause=attempts.why(data, len(data.attempts) - 1) if data.run.failed else "",
    )


def _middle(data: RunData, field: str) -> Curve:
    """The median of all ranks, at the steps where one of them has a number."""
    ranks = data.curves.get(field)
    return charts.middle(ranks) if ranks else Curve(steps=[], values=[])


def _last(ranks: dict[int, Curve], middle: Curve) -> float | None:
    """The last value; nan, where no rank has a number at the last step."""
    last = max((curve.steps[-1] for curve in ranks.values() if curve.steps), default=None)
    if last is None:
        return None
    return middle.values[-1] if middle.steps and middle.steps[-1] == last else math.nan


# --- which of them is best --------------------------------------------------------------------------------------------


def lower_is_better(metric: str) -> bool | None:
    """Whether lower is better; None: the name does not state it."""
    if _LOW.search(metric):
        return True
    return False if _HIGH.search(metric) else None


def best(results: Sequence[Result], value: Callable[[Result], float | None], low: bool | None) -> list[int]:
    """The places of the best runs, of those that did not fail if there are any; none, where all are alike.

    low: whether less is better; None: it is not for us to say.
    """
    well = [place for place, one in enumerate(results) if not one.failed] or list(range(len(results)))
    found = {place: number for place in well if (number := value(results[place])) is not None}
    found = {place: number for place, number in found.items() if not math.isnan(number)}
    if low is None or len(set(found.values())) < 2:
        return []
    top = min(found.values()) if low else max(found.values())
    return [place for place, number in found.items() if number == top]


def fastest(results: Sequence[Result]) -> list[int]:
    """The runs that took the least time; none, where all took the same, or did not do the same."""
    ended = [place for place, one in enumerate(results) if not one.failed and not one.runs and one.seconds is not None]
    if len({results[place].steps for place in ended}) > 1:
        return []
    return _least({place: float(results[place].seconds or 0) for place in ended})


def quickest(results: Sequence[Result]) -> list[int]:
    """The runs whose steps took the least time, likewise."""
    well = [place for place, one in enumerate(results) if not one.failed]
    return _least({place: found for place in well if (found := results[place].step_ms) is not None})


def _least(times: dict[int, float]) -> list[int]:
    """The places with the least time, or about that; none, where that is all of them."""
    bound = (1 + ALIKE) * min(times.values(), default=0.0)
    found = [place for place, time in times.items() if time <= bound]
    return found if len(found) < len(times) else []


def lowest_of(one: Result) -> float | None:
    """The lowest loss of a run."""
    return one.lowest[0] if one.lowest else None


def measured(one: Result, metric: str) -> float | None:
    """The last measurements of a run."""
    return one.measured.get(metric)


# --- as text ---------------------------------------------------------------------------------------------------------


def title(results: Sequence[Result]) -> str:
    """How many ended how."""
    failed, run = sum(one.failed for one in results), sum(one.runs for one in results)
    parts = [(len(results) - failed - run, tr("ended well")), (failed, tr("failed")), (run, tr("still running"))]
    ends = listed(tr("{number} {ended}", number=number, ended=words) for number, words in parts if number)
    return tr("{runs} compared: {ends}", runs=count(len(results), "run"), ends=ends)


def answer(results: Sequence[Result], names: Sequence[str]) -> list[str]:
    """The most important result; names: the letters of the runs."""
    sentences = [_loss(results, names), *_metrics(results, names), _time(results, names)]
    sentences += _failures(results, names)
    running = [name for one, name in zip(results, names) if one.runs]
    if running:
        sentences.append(tr("Still running: {runs}. Their numbers are those of now.", runs=listed(running)))
    return [sentence for sentence in sentences if sentence]


def _loss(results: Sequence[Result], names: Sequence[str]) -> str:
    places = best(results, lowest_of, low=True)
    first = results[places[0]] if places else None
    if first is None or first.lowest is None:
        return ""
    value, step = first.lowest
    values = {"run": _named(places, names), "value": f"{value:.3g}", "step": f"{step:,}"}
    text = tr("{run} reached the lowest loss: {value} at step {step}.", **values)
    below = [
        tr("{run} had reached {value} before it failed.", run=name, value=f"{one.lowest[0]:.3g}")
        for one, name in zip(results, names)
        if one.failed and not first.failed and one.lowest and one.lowest[0] < value
    ]
    return " ".join([text, *below[:1]])


def _named(places: Sequence[int], names: Sequence[str]) -> str:
    return listed(names[place] for place in places)


def _metrics(results: Sequence[Result], names: Sequence[str]) -> list[str]:
    sentences = []
    for metric in dict.fromkeys(name for one in results for name in one.measured):
        low = lower_is_better(metric)
        places = best(results, functools.partial(measured, metric=metric), low)
        if not places:
            continue
        name, _, unit = metric.partition(" ")
        value = f"{results[places[0]].measured[metric]:.4g} {unit}".rstrip()
        values = {"run": _named(places, names), "name": name, "value": value}
        text = tr("{run} ended with the lowest {name}: {value}.", **values)
        sentences.append(text if low else tr("{run} ended with the highest {name}: {value}.", **values))
    return sentences


def _time(results: Sequence[Result], names: Sequence[str]) -> str:
    places = fastest(results)
    if places:
        time = figures.clock(results[places[0]].seconds or 0)
        return tr("{run} took the least time: {time}.", run=_named(places, names), time=time)
    ended = [one for one in results if not one.failed and not one.runs and one.seconds is not None]
    if len(ended) < 2:
        return ""
    if len({one.steps for one in ended}) > 1:
        return tr("The times are not comparable: the runs did not do the same number of steps.")
    return tr("Those that ended well took the same time: {time}.", time=figures.clock(ended[0].seconds or 0))


def _failures(results: Sequence[Result], names: Sequence[str]) -> list[str]:
    failed = [(one, name) for one, name in zip(results, names) if one.failed]
    sentences = []
    for one, name in failed[:_MOST_FAILED]:
        values = {"run": name, "time": "?" if one.seconds is None else figures.clock(one.seconds)}
        text = tr("{run} failed after {time}: {cause}", cause=one.cause, **values)
        sentences.append(text if one.cause else tr("{run} failed after {time}.", **values))
    more = len(failed) - _MOST_FAILED
    return sentences + ([tr("{number} more failed; the table has them.", number=more)] if more > 0 else [])
