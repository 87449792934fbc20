"""The charts as HTML: one figure per chart, one legend for all, and the data that page.js draws."""

from __future__ import annotations

from hccl_tools.common.language import speaks_chinese, tr
from hccl_tools.common.record import Record
from hccl_tools.common.words import clauses, listed
from tools.run_page.markup import data, escaped
from tools.run_page.told import SPEEDS, shown, title_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tools.run_page.curves import Column

MEDIAN, BAND = "median", "band"  # keys, and classes of colours, of what stands for many ranks
PLAIN = "plain"  # the class of the colour of ranks for which none is left
FEW = 3  # points that no line joins


class Line(Record):
    """A line of a chart."""

    key: str  # the same in all charts: MEDIAN, rank-N, run-N
    label: str  # at its end
    style: str  # the CSS class of its colour
    y: Column
    raw: Column | None = None  # where y is smoothed: all values
    bad: list[int]  # places with nan or inf
    thin: bool = False
    dashed: bool = False
    t: Column | None = None  # the second of each place, where charts can be drawn by time


class Chart(Record):
    """A chart; its lines come with the one first that matters most."""

    field: str
    x: list[int]
    band: tuple[Column, Column] | None
    lines: list[Line]
    window: int  # of the rolling median; 1: lines are not smoothed
    notes: list[str]
    top: float | None = None  # where the axis ends, if values are left out


def said(sentences: list[str]) -> str:
    """The sentences without a chart, as HTML."""
    items = "".join(f"<li>{escaped(text)}</li>" for text in sentences)
    return f'<ul class="said">{items}</ul>' if items else ""


def controls(keys: list[tuple[str, str, str]], timed: bool, notes: list[str]) -> str:
    """The legend of all charts: a button of each line hides it everywhere; by what they are drawn; and notes."""
    buttons = "".join(
        f'<button type="button" aria-pressed="true" data-key="{escaped(key)}">'
        f'<i class="chip {escaped(style)}" aria-hidden="true"></i>{escaped(name)}</button>'
        for key, style, name in keys
    )
    by = ""
    if timed:
        ways = (("step", tr("by step"), "true"), ("time", tr("by time"), "false"))
        inner = "".join(
            f'<button type="button" aria-pressed="{on}" data-by="{way}">{escaped(text)}</button>'
            for way, text, on in ways
        )
        by = f'<div class="by" role="group" aria-label="{escaped(tr("What the charts are drawn by"))}">{inner}</div>'
    hint = tr("Click a name to hide it in all charts. Drag over a chart to zoom; double-click to see all.")
    legend = f'<div class="legend" role="group" aria-label="{escaped(tr("Lines of the charts"))}">{buttons}</div>'
    usage = f'<p class="hint usage">{escaped(hint)}</p>'
    return f'<div class="controls">{legend if keys else ""}{by}</div>\n{usage}{_hints(notes)}'


def _hints(notes: list[str]) -> str:
    return "".join(f'<p class="hint">{escaped(note)}</p>' for note in notes)


def figure(number: int, chart: Chart, common: list[str]) -> str:
    """A chart's place, its title and what must be known of it, without the notes that all charts share."""
    notes = _hints([note for note in chart.notes if note not in common])
    title = escaped(title_of(chart.field)[0])
    return (
        f'<figure><figcaption>{title}</figcaption><p class="at"></p>'
        f'<div class="chart" role="img" aria-label="{escaped(text_of(chart))}" data-chart="{number}"></div>'
        f"{notes}</figure>"
    )


def text_of(chart: Chart) -> str:
    """The chart as text, for those who do not see it."""
    title, unit = title_of(chart.field)
    first = tr("{what}, steps {first} to {last}", what=title, first=chart.x[0], last=chart.x[-1])
    parts = [_text_of_line(line, unit) for line in chart.lines]
    return clauses(first, *(part for part in parts if part)) + ("。" if speaks_chinese() else ".")


def _text_of_line(line: Line, unit: str) -> str:
    there = [value for value in line.y if value is not None]
    if not there:
        return ""
    values = {
        "first": shown(there[0], unit),
        "last": shown(there[-1], unit),
        "low": shown(min(there), unit),
        "high": shown(max(there), unit),
    }
    change = tr("from {first} to {last}", **values)
    ends = tr("lowest {low}, highest {high}", **values)
    return f"{line.label}: {listed([change, ends])}"


def source(charts: list[Chart], restarts: dict[int, int]) -> str:
    """The element with the data for page.js."""
    words = {
        "step": tr("step"),
        "time": tr("time"),
        "band": tr("5 to 95 %"),
        "restart": [[step, tr("restart {number}", number=number), str(number)] for number, step in restarts.items()],
        "bad": "nan",
    }
    document = {"words": words, "charts": [_document(chart) for chart in charts]}
    return f'<script type="application/json" id="data">{data(document)}</script>'


def _document(chart: Chart) -> dict[str, Any]:
    title, unit = title_of(chart.field)
    return {
        "title": title,
        "unit": unit,
        "calm": chart.field in SPEEDS,
        "top": chart.top,
        "points": _points(chart),
        "x": chart.x,
        "band": chart.band,
        "lines": [
            {
                "key": line.key,
                "label": line.label,
                "style": line.style,
                "thin": line.thin,
                "dashed": line.dashed,
                "y": line.y,
                **({"raw": line.raw} if line.raw else {}),
                **({"bad": line.bad} if line.bad else {}),
                **({"t": line.t} if line.t else {}),
            }
            for line in chart.lines
        ],
    }


def _points(chart: Chart) -> str:
    """Whether points are drawn: instead of lines, with them, or not."""
    most = max((sum(value is not None for value in line.y) for line in chart.lines), default=0)
    return "only" if most <= FEW else "also" if most < 30 else ""
