"""The output of plot_log.py: a line per rank; of many ranks, lines for those that matter and one for the others."""

from __future__ import annotations

from statistics import median

from hccl_tools.common.language import tr
from tools.progress.figures import sparkline
from tools.run_page import charts, curves, outliers
from tools.run_page.reading import Curve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tools.run_page.outliers import Outlier
    from tools.run_page.reading import RunData

    Curves = dict[str, dict[int, Curve]]
    from typing import Any

# the name in the document: that of tools/progress/series.py
FIELDS = {"loss": "loss", "step_time": "step_ms", "data_time": "data_ms", "before_time": "before_ms"}
_NAMES = {field: name for name, field in FIELDS.items()}
MOST_ROWS = 16  # of more ranks the others share a line
_MOST_MARKED = 24
_LEAST_OTHERS = 3  # of fewer there is no middle
WIDTH = 24  # characters of a sparkline


def lines(data: RunData, found: list[Outlier]) -> Iterator[str]:
    """The table, and a sentence about each rank that differs."""
    own, others = divided(list(data.logs), found)
    rows = [(str(rank), _of(data.curves, [rank])) for rank in own]
    if others:
        rows.append((tr("{number} others", number=len(others)), _of(data.curves, others)))
    first = max(4, *(len(name) for name, _ in rows))
    before = "before_ms" in data.curves
    yield (
        f"{'rank':{first}}  {'loss':{WIDTH}}  {'first':>9} {'last':>9}  {'step time':{WIDTH}}  {'median':>10} "
        f"{'for data':>10}" + f" {'before':>10}" * before
    )
    for name, ranks in rows:
        yield f"{name:{first}}  {_row(ranks, before)}"
    yield from map(charts.outlier_text, found)


def divided(ranks: list[int], found: list[Outlier]) -> tuple[list[int], list[int]]:
    """(those with a line of their own, the others): of many ranks those that differ, and after them the first rank."""
    own = list(dict.fromkeys([*(one.rank for one in found), *ranks[:1]]))
    own = own if len(own) <= _MOST_MARKED else [*own[: _MOST_MARKED - 1], own[-1]]
    others = [rank for rank in ranks if rank not in set(own)]
    return (ranks, []) if len(ranks) <= MOST_ROWS or len(others) < _LEAST_OTHERS else (own, others)


def _of(every: Curves, ranks: list[int]) -> Curves:
    return {field: {rank: found[rank] for rank in ranks if rank in found} for field, found in every.items()}


def _row(ranks: Curves, before: bool) -> str:
    """What follows the name in a line of the table, of one rank, or of the middle of several."""
    loss, time = _middle(ranks.get("loss", {})), _middle(ranks.get("step_ms", {}))
    medians = [_milliseconds(outliers.typical(ranks.get(field, {})).values()) for field in outliers.TIMES]
    of_step, of_data, of_before = medians
    ends = f"{_number(loss.values[:1])} {_number(loss.values[-1:])}"
    more = f" {of_before}" if before else ""
    warm = sparkline(course(time.steps[1:], time.values[1:]))  # the first step compiled the network
    return f"{sparkline(course(loss.steps, loss.values)):{WIDTH}}  {ends}  {warm:{WIDTH}}  {of_step} {of_data}{more}"


def _middle(ranks: dict[int, Curve]) -> Curve:
    """The curve of a rank, or the median of several at each step."""
    if len(ranks) == 1:
        return next(iter(ranks.values()))
    drawn = curves.draw(ranks, [])
    there = [(step, value) for step, value in zip(drawn.steps, drawn.middle) if value is not None]
    return Curve(steps=[step for step, _ in there], values=[value for _, value in there])


def _number(values: list[float]) -> str:
    """The one value in the list, nine characters wide; blanks for an empty list."""
    return f"{values[0]:9.4g}" if values else " " * 9


def _milliseconds(values: Iterable[float]) -> str:
    """The middle of these times, ten characters wide."""
    known = list(values)
    return f"{median(known):7.1f} ms" if known else " " * 10


def course(steps: list[int], values: list[float], width: int = WIDTH) -> list[float | None]:
    """The values, or of many the mean of each of `width` parts of the run; None of a part without any."""
    if len(values) <= width:
        return list(values)
    sums, counts = [0.0] * width, [0] * width
    first, whole = steps[0], steps[-1] - steps[0] + 1
    for step, value in zip(steps, values):
        part = (step - first) * width // whole
        sums[part] += value
        counts[part] += 1
    return [total / number if number else None for total, number in zip(sums, counts)]


# ---- The numbers of a run for a program: what plot_log.py prints with --json.  Times are milliseconds.


def document(data: RunData, found: list[Outlier], run: str) -> dict[str, Any]:
    """All ranks. run: the folder, as the user names it."""
    typical = {
        name: outliers.typical(data.curves.get(field, {})) for name, field in FIELDS.items() if field in outliers.TIMES
    }
    ranks = [
        {
            "rank": rank,
            "median": {name: times.get(rank) for name, times in typical.items()},
            "points": points(data, rank),
        }
        for rank in data.logs
    ]
    known = [one for one in found if one.field in _NAMES]
    return {
        "folder": run,
        "ranks": ranks,
        "slow": [_slow(one) for one in known if one.kind == outliers.SLOW],
        "drifting": [
            {"rank": one.rank, "loss": one.value, "median": one.middle} for one in known if one.kind == outliers.DRIFT
        ],
        "not_finite": [
            {"rank": one.rank, "field": _NAMES[one.field], "step": one.step, "times": one.times}
            for one in known
            if one.kind == outliers.NOT_FINITE
        ],
        "notes": data.notes,
    }


def points(data: RunData, rank: int) -> list[dict[str, Any]]:
    """The steps of a rank in their order, and its numbers there; None where its log does not state it."""
    at: dict[int, dict[str, Any]] = {}
    for name, field in FIELDS.items():
        curve = data.curves.get(field, {}).get(rank)
        for step, value in zip(curve.steps, curve.values) if curve else ():
            at.setdefault(step, {"step": step, **dict.fromkeys(FIELDS)})[name] = value
    return [at[step] for step in sorted(at)]


def _slow(one: Outlier) -> dict[str, Any]:
    return {
        "rank": one.rank,
        "kind": _NAMES[one.field],
        "time": one.value,
        "median": one.middle,
        "since": one.since,
        "until": one.until,
    }
