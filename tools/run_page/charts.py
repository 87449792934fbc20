"""The charts of a page: the data that page.js draws, and sentences instead of charts that show nothing."""

from __future__ import annotations

from statistics import median

from hccl_tools.common.grouping import grouped
from hccl_tools.common.language import tr
from hccl_tools.common.record import Record
from hccl_tools.common.words import count, named
from tools.run_page import curves, figures, outliers, told
from tools.run_page.curves import Drawn
from tools.run_page.figures import BAND, MEDIAN, PLAIN, Chart, Line
from tools.run_page.markup import section
from tools.run_page.named import ALSO_FAILED, DRIFTS, FAILED, HUNG, MOST, NOT_FINITE, SILENT, SLOW, label
from tools.run_page.reading import Curve, finite
from tools.run_page.told import ORDER, SPEEDS, shown, title_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.run_page.named import Named
    from tools.run_page.outliers import Outlier
    from tools.run_page.reading import RunData
    from tools.run_page.told import Clock

_MOST_METRICS = 4
_FAR = 3.0  # times as high as all that follows is a first value that the axis leaves out
_PEAK = 1.5  # times as high as the band is a value that a sentence must name


class Charts(Record):
    """The charts of a page, and what goes with all of them."""

    charts: list[Chart]
    said: list[str]  # sentences about columns without a chart
    keys: list[tuple[str, str, str]]  # (key of lines, CSS class of its colour, its name), for the legend
    restarts: dict[int, int]  # {which restart: its first step}
    timed: bool  # lines have times, too


def of_run(data: RunData, found: list[Outlier], names: dict[int, Named]) -> Charts:
    """The charts of one run; names: the ranks that have a colour."""
    charts, said = [], []
    for field in _fields([data]):
        ranks = data.curves[field]
        sentence = told.of_ranks(field, ranks)
        if sentence is None and field == "samples_per_s":
            sentence = told.of_speed(ranks, data.curves.get("step_ms", {}))
        if sentence is None:
            apart = [one.rank for one in found if one.field == field]
            charts.append(_chart(field, ranks, apart, names))
        else:
            said.append(sentence)
    return Charts(charts=charts, said=said, keys=_keys(data, charts, names), restarts=told.restarts(data), timed=False)


def _keys(data: RunData, charts: list[Chart], names: dict[int, Named]) -> list[tuple[str, str, str]]:
    """What the legend has: of the ranks those that have a line in some chart."""
    number = max((len(ranks) for ranks in data.curves.values()), default=0)
    drawn = {line.key for chart in charts for line in chart.lines}
    keys = [(MEDIAN, MEDIAN, tr("median of {ranks}", ranks=count(number, "rank")))] if MEDIAN in drawn else []
    keys += [(BAND, BAND, tr("5 to 95 % of the others"))] if any(chart.band for chart in charts) else []
    there = ((f"rank-{rank}", one) for rank, one in names.items())
    return [*keys, *((key, _style(one), _why(one)) for key, one in there if key in drawn)]


def _style(one: Named | None) -> str:
    """The class of a rank's colour: that of the median without a name, a plain one where all colours are gone."""
    return MEDIAN if one is None else PLAIN if one.colour is None else f"rank-{one.colour}"


def _why(one: Named) -> str:
    """The name of a rank in the legend, and why it has one."""
    reasons = {
        FAILED: tr("failed first"),
        HUNG: tr("elsewhere in the code"),
        ALSO_FAILED: tr("failed"),
        SILENT: tr("silent"),
        NOT_FINITE: tr("nan or inf"),
        SLOW: tr("slow"),
        DRIFTS: tr("drifts"),
    }
    return " · ".join([label(one.rank), *(reasons[why] for why in one.why if why in reasons)])


def _chart(field: str, ranks: dict[int, Curve], apart: list[int], names: dict[int, Named]) -> Chart:
    """With lines of the ranks that are apart in it, and a thin one of the rank that failed first."""
    lead = [rank for rank in names if rank in apart][:MOST]
    thin = [rank for rank, one in names.items() if rank not in apart and one.why[0] == FAILED]
    drawn = curves.draw(ranks, [*lead, *thin], {*apart, *thin})
    window = _window(field, drawn)
    lines = []
    for place, rank in enumerate(drawn.ranks):
        line = _line(drawn, rank, window, f"rank-{rank}", label(rank), _style(names.get(rank)))
        lines.append(line.replace(thin=rank in thin, dashed=rank not in names and place > 0))
    if drawn.middle:
        column = curves.smoothed(drawn.middle, window) if window > 1 else drawn.middle
        lines.append(Line(key=MEDIAN, label=tr("median"), style=MEDIAN, y=column, bad=drawn.bad.get(None, [])))
    band = (drawn.low, drawn.high) if drawn.low and len(drawn.steps) > figures.FEW else None
    others = {rank: curve for rank, curve in ranks.items() if rank not in {*apart, *thin}}
    notes = [*_notes(drawn, window, lines), *_peak(field, others, drawn)]
    left = [rank for rank in dict.fromkeys(apart) if rank not in drawn.ranks]
    if left:
        text = tr("Different, too, but without a line: {ranks}.", ranks=named("rank", left))
        notes.append(text)
    return _finished(Chart(field=field, x=drawn.steps, band=band, lines=lines, window=window, notes=notes))


def _line(drawn: Drawn, number: int, window: int, key: str, name: str, style: str) -> Line:
    smooth = curves.smoothed(drawn.means[number], window) if window > 1 else drawn.ranks[number]
    raw = drawn.ranks[number] if window > 1 else None
    return Line(key=key, label=name, style=style, y=smooth, raw=raw, bad=drawn.bad.get(number, []))


def _window(field: str, drawn: Drawn) -> int:
    """Over how many points lines are smoothed: only of columns that jump around a level."""
    columns = [drawn.middle] if drawn.middle else list(drawn.means.values())
    stride = 1 if drawn.every == 1 else 2  # both points of a bucket have the same mean
    window = max((curves.window_of(column[::stride]) for column in columns), default=1) if field in SPEEDS else 1
    return window * stride | 1 if window > 1 else 1


def of_runs(runs: list[RunData], labels: list[str]) -> Charts:
    """The charts of several runs: the median of each run's ranks; labels: what distinguishes them, in their order."""
    charts, said = [], []
    clocks = [told.clock_of(data) for data in runs]
    timed = all(clock is not None for clock in clocks)
    for field in _fields(runs):
        middles = {number: middle(run.curves[field]) for number, run in enumerate(runs) if field in run.curves}
        sentence = told.of_runs(field, middles, labels)
        if sentence is None and field == "samples_per_s":
            times = {
                number: middle(run.curves["step_ms"]) for number, run in enumerate(runs) if "step_ms" in run.curves
            }
            sentence = told.of_speed(middles, times, labels)
        if sentence is None:
            charts.append(_compared(field, middles, labels, clocks if timed else []))
        else:
            said.append(sentence)
    keys = [(f"run-{number}", f"rank-{number % MOST}", labels[number]) for number in range(len(runs))]
    return Charts(charts=charts, said=said, keys=keys if charts else [], restarts={}, timed=timed and bool(charts))


def _compared(field: str, middles: dict[int, Curve], labels: list[str], clocks: list[Clock | None]) -> Chart:
    """A line of each run."""
    parts = {number: curves.draw({number: curve}, [number]) for number, curve in middles.items()}
    joint = curves.draw(middles, list(middles))
    window = max(_window(field, drawn) for drawn in parts.values())
    lines = []
    for number in joint.ranks:
        line = _line(joint, number, window, f"run-{number}", labels[number], f"rank-{number % MOST}")
        clock = clocks[number] if clocks else None
        seconds = [None if clock is None else round(clock.at(step), 2) for step in joint.steps]
        lines.append(line.replace(dashed=number >= MOST, t=seconds if clock else None))
    notes = _notes(joint, window, lines)
    return _finished(Chart(field=field, x=joint.steps, band=None, lines=lines, window=window, notes=notes))


def middle(ranks: dict[int, Curve]) -> Curve:
    """The median of all ranks at each step."""
    if len(ranks) == 1:
        return next(iter(ranks.values()))
    at = grouped((step, value) for curve in ranks.values() for step, value in zip(curve.steps, curve.values))
    there = {step: finite(values) for step, values in sorted(at.items())}
    return Curve(steps=[step for step in there if there[step]], values=[median(v) for v in there.values() if v])


def _fields(runs: list[RunData]) -> list[str]:
    metrics = dict.fromkeys(name for run in runs for name in run.metrics)
    there = {field for run in runs for field in run.curves}
    order = [*ORDER[:1], *list(metrics)[:_MOST_METRICS], *ORDER[1:]]
    return [field for field in order if field in there]


def _finished(chart: Chart) -> Chart:
    """With the top of its axis, where the first value would make all others flat: that step compiled the network."""
    columns = [*(chart.band or ()), *(line.raw or line.y for line in chart.lines)]
    first = max((column[0] for column in columns if column and column[0] is not None), default=None)
    rest = [value for column in columns for value in column[1:] if value is not None]
    if chart.field not in SPEEDS[:3] or first is None or not rest or first <= _FAR * max(rest):
        return chart
    unit = title_of(chart.field)[1]
    note = tr("Step {step} took {value}; the axis leaves it out.", step=chart.x[0], value=shown(first, unit))
    return chart.replace(top=max(rest), notes=[note, *chart.notes])


def _notes(drawn: Drawn, window: int, lines: list[Line]) -> list[str]:
    notes = []
    if window > 1:
        points = window if drawn.every == 1 else window // 2 * drawn.every
        text = tr(
            "Where a line would jump from step to step, it is the rolling median of {number} logged steps. Pale lines "
            "show each step.",
            number=points,
        )
        with_band = tr(
            "Where a line would jump from step to step, it is the rolling median of {number} logged steps. The band "
            "and pale lines show each step.",
            number=points,
        )
        notes.append(with_band if drawn.low else text)
    if drawn.every > 1:
        text = tr(
            "Sampled: {number} logged steps share two points. Lines and the band keep their lowest and highest values; "
            "the median is of their means.",
            number=drawn.every,
        )
        notes.append(text)
    if any(line.bad for line in lines):
        notes.append(tr("A cross: the value is not a number (nan or inf)."))
    return notes


def _peak(field: str, others: dict[int, Curve], drawn: Drawn) -> list[str]:
    """Names the highest time of a step that neither the band nor a line has; others: the ranks of the band."""
    tops = [value for value in drawn.high[1:] if value is not None]
    if field not in SPEEDS[:3] or not tops:
        return []
    start = drawn.steps[0]
    highest = max(
        (
            (value, step, rank)
            for rank, curve in others.items()
            for step, value in zip(curve.steps, curve.values)
            if step > start and value < float("inf")
        ),
        default=None,
    )
    if highest is None or highest[0] <= _PEAK * max(tops):
        return []
    value, step, rank = highest
    text = tr(
        "Highest: {value}, rank {rank} at step {step}; it is above the band.",
        value=shown(value, title_of(field)[1]),
        rank=rank,
        step=step,
    )
    return [text]


def html_of(found: Charts) -> str:
    """The section with the charts, empty without any.  The scripts of the page fill it."""
    said = figures.said(found.said)
    if not found.charts:
        return section("curves", tr("Curves"), said)
    every = [note for chart in found.charts for note in chart.notes]
    common = [note for note in dict.fromkeys(every) if every.count(note) > 1]  # said once for all
    parts = [
        said,
        figures.controls(found.keys, found.timed, common),
        *(figures.figure(number, chart, common) for number, chart in enumerate(found.charts)),
        figures.source(found.charts, found.restarts),
    ]
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
            "rank {rank}: {what} has drifted: {value} at the end, the median rank {middle}", middle=middle, **values
        )
    more = f"{100 * (one.value / one.middle - 1):.0f}" if one.middle else "?"
    if one.since is not None:
        return tr(
            "rank {rank}: {what} {value} in steps {since} to {until}, the median rank {middle}: {more} % more",
            since=one.since,
            until=one.until,
            middle=middle,
            more=more,
            **values,
        )
    return tr(
        "rank {rank}: {what} {value}, the median rank {middle}: {more} % more", middle=middle, more=more, **values
    )
