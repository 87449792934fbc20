"""The charts of a page: what uPlot draws, as data, and the words around them."""

from __future__ import annotations

from statistics import median

from hccl_tools.common.language import marked, tr
from hccl_tools.common.words import count
from tools.run_page import curves, outliers
from tools.run_page.markup import data, escaped, section
from tools.run_page.reading import Curve, finite

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tools.run_page.named import Named
    from tools.run_page.outliers import Outlier
    from tools.run_page.reading import RunData

_TITLES = {
    "loss": (marked("Loss"), ""),
    "step_ms": (marked("Time of a step"), "ms"),
    "data_ms": (marked("Time of a step that waits for data"), "ms"),
    "before_ms": (marked("Time of a step before the ranks wait for one another"), "ms"),
    "samples_per_s": (marked("Samples a second"), ""),
    "lr": (marked("Learning rate"), ""),
}
_ORDER = tuple(_TITLES)
_MOST_METRICS = 4


def of_run(data: RunData, found: list[Outlier], names: dict[int, Named]) -> list[dict[str, Any]]:
    """The charts of one run."""
    charts = []
    for field in _fields([data]):
        ranks = data.curves[field]
        marked_ranks = {one.rank: one.kind for one in found if one.field == field}
        named = list(dict.fromkeys([*names, *marked_ranks, *sorted(ranks)[:1]]))
        drawn = curves.draw(ranks, named)
        if not drawn.steps:
            continue
        lines = [
            {"label": _rank(rank), "y": column, "out": int(rank in marked_ranks)}
            for rank, column in drawn.ranks.items()
        ]
        charts.append({**_head(field), "x": drawn.steps, "band": _band(drawn), "lines": lines, "notes": _notes(drawn)})
    return charts


def of_runs(runs: list[RunData], labels: list[str]) -> list[dict[str, Any]]:
    """The charts of several runs: the middle of the ranks of each; labels: what tells them apart, in their order."""
    charts = []
    for field in _fields(runs):
        middles = {number: _middle(run.curves[field]) for number, run in enumerate(runs) if field in run.curves}
        drawn = curves.draw(middles, list(middles))
        lines = [{"label": labels[number], "y": column, "out": 0} for number, column in drawn.ranks.items()]
        if drawn.steps:
            notes = _sampled(drawn)
            charts.append({**_head(field), "x": drawn.steps, "band": None, "lines": lines, "notes": notes})
    return charts


def _middle(ranks: dict[int, Curve]) -> Curve:
    """The median of all ranks at each step."""
    if len(ranks) == 1:
        return next(iter(ranks.values()))
    at: dict[int, list[float]] = {}
    for curve in ranks.values():
        for step, value in zip(curve.steps, curve.values):
            at.setdefault(step, []).append(value)
    there = {step: finite(values) for step, values in sorted(at.items())}
    return Curve(steps=[step for step in there if there[step]], values=[median(v) for v in there.values() if v])


def _fields(runs: list[RunData]) -> list[str]:
    metrics = dict.fromkeys(name for run in runs for name in run.metrics)
    there = {field for run in runs for field in run.curves}
    order = [*_ORDER[:1], *list(metrics)[:_MOST_METRICS], *_ORDER[1:]]
    return [field for field in order if field in there]


def title_of(field: str) -> tuple[str, str]:
    """(title, unit) of a field or a metric."""
    if field in _TITLES:
        title, unit = _TITLES[field]
        return tr(title), unit
    name, _, unit = field.partition(" ")
    return tr("{name} on held-out data", name=name), unit


def _head(field: str) -> dict[str, Any]:
    title, unit = title_of(field)
    return {"title": title, "unit": unit}


def _rank(rank: int) -> str:
    return tr("rank {rank}", rank=rank)


def _band(drawn: curves.Drawn) -> list[curves.Column] | None:
    return [drawn.low, drawn.middle, drawn.high] if drawn.middle else None


def _notes(drawn: curves.Drawn) -> list[str]:
    notes = _sampled(drawn)
    if len(drawn.ranks) < drawn.number:
        ranks = count(drawn.number, "rank")
        notes.append(
            tr("Of {ranks} only those that differ, and the first one, have a curve of their own.", ranks=ranks)
        )
    return notes


def _sampled(drawn: curves.Drawn) -> list[str]:
    if drawn.every == 1:
        return []
    text = tr(
        "Sampled: {number} logged steps share two points. A rank's curve keeps their lowest and highest value; "
        "the middle and the band are of their means.",
        number=drawn.every,
    )
    return [text]


def html_of(charts: list[dict[str, Any]]) -> str:
    """The section with the charts, empty without any.  The scripts of the page fill it."""
    if not charts:
        return ""
    parts = [f'<p class="hint">{escaped(tr("Drag to zoom, double-click to see all; a click on a name hides it."))}</p>']
    for number, chart in enumerate(charts):
        unit = f" <small>{escaped(chart['unit'])}</small>" if chart["unit"] else ""
        notes = "".join(f'<p class="hint">{escaped(note)}</p>' for note in chart.pop("notes"))
        parts.append(
            f"<figure><figcaption>{escaped(chart['title'])}{unit}</figcaption>"
            f'<div class="chart" data-chart="{number}"></div>{notes}</figure>'
        )
    words = {
        "step": tr("step"),
        "middle": tr("median"),
        "low": tr("5th percentile"),
        "high": tr("95th percentile"),
    }
    parts.append(f'<script type="application/json" id="data">{data({"words": words, "charts": charts})}</script>')
    return section("curves", tr("Curves"), "\n".join(parts))


def outlier_text(one: Outlier) -> str:
    """One sentence about a rank that differs."""
    title, unit = title_of(one.field)
    values = {"rank": one.rank, "what": title, "value": f"{one.value:.4g} {unit}".strip()}
    middle = f"{one.middle:.4g} {unit}".strip()
    if one.kind == outliers.NOT_FINITE:
        return tr(
            "rank {rank}: {what} is not a number (nan or inf) {times} times, first at step {step}",
            times=one.times,
            step=one.step,
            **values,
        )
    if one.kind == outliers.DRIFT:
        return tr(
            "rank {rank}: {what} has drifted: {value} at the end, the middle rank {middle}", middle=middle, **values
        )
    more = f"{100 * (one.value / one.middle - 1):.0f}" if one.middle else "?"
    if one.since is not None:
        return tr(
            "rank {rank}: {what} {value} in steps {since} to {until}, the middle rank {middle}: {more} % more",
            since=one.since,
            until=one.until,
            middle=middle,
            more=more,
            **values,
        )
    return tr(
        "rank {rank}: {what} {value}, the middle rank {middle}: {more} % more", middle=middle, more=more, **values
    )
