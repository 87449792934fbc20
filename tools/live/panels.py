"""The panels in the free space of the live screen: the loss, the slowest ranks, the end of a log."""

from __future__ import annotations

from rich.cells import cell_len
from rich.text import Text

from hccl_tools.common.colours import columns, cut, padded
from hccl_tools.common.language import strerror, tr
from hccl_tools.common.words import named, one_line
from tools.live.watcher import SLOW
from tools.logs import log_tail
from tools.progress.figures import figure, milliseconds
from tools.progress.slowness import BEFORE, DATA, STEP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.live.curve import Point
    from tools.live.watcher import Seen, View

_BLOCKS = " ▁▂▃▄▅▆▇█"
_EIGHTHS = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")
_PARTS = len(_BLOCKS) - 1
LEAST_HIGH = 5  # lines of a chart
LEAST = 8  # lines of a chart, an empty one before and one behind it included
_WIDE = 100  # columns, from which on two things are next to each other
_HIGHEST = 14  # lines of the chart
_LEAST_OF_LOG = 4  # lines
_BOTH = 18  # lines, from which on a chart leaves half of them to the end of a log
_SLOWEST = 36  # columns at least
_NEWEST = 16 << 10  # bytes of a log


def below(view: View, rank: int | None, width: int, height: int) -> list[Text]:
    """At most `height` - 1 lines below the table; rank: the selected one."""
    row, room = _chosen(view, rank), height - 1
    found: list[Text] = []
    if height >= LEAST:
        charts = _charts(view, width, min(_HIGHEST, room - 1 if row is None or height < _BOTH else room // 2))
        found = [Text(""), *charts] if charts else []
    room -= len(found) + 1
    if row is not None and room >= _LEAST_OF_LOG:
        found += [Text(""), *_end_of_log(row, width, room)]
    return found


def _charts(view: View, width: int, height: int) -> list[Text]:
    slowest = _rows_of_slowest(view)
    beside = width >= _WIDE and bool(slowest)
    across = width - max(_SLOWEST, width * 2 // 5) - 3 if beside else width
    loss = _loss(view, across, height)
    if not loss:
        return _slowest(slowest, width, height)
    if not beside:
        return loss
    right = _slowest(slowest, width - across - 3, len(loss))
    return [_beside(one, other, across) for one, other in zip(loss, [*right, *[Text("")] * (len(loss) - len(right))])]


def _beside(left: Text, right: Text, width: int) -> Text:
    blanks = " " * (width - cell_len(left.plain) + 3)
    return Text().append_text(left).append(blanks).append_text(right)  # each with its own style


def _loss(view: View, width: int, height: int) -> list[Text]:
    drawn = chart_of(view.points, width, height - 1)
    if not drawn or view.curve_of is None:
        return []
    title = tr("loss of {rank}", rank=named("rank", [view.curve_of]))
    return [Text(title, style="bold"), *(Text(line, style="cyan") for line in drawn)]


def _rows_of_slowest(view: View) -> list[Seen]:
    """The ranks that take longest, of those that still write; none where all take the same."""
    rows = [row for row in view.rows if row.pace is not None and not row.stale]
    return sorted(rows, key=lambda row: -row.pace.ratio if row.pace else 0.0) if len(rows) > 1 else []


def _slowest(rows: Sequence[Seen], width: int, height: int) -> list[Text]:
    """Their times as bars, and that of the median rank."""
    if not rows or rows[0].pace is None or height < 3 or width < _SLOWEST:
        return []
    pace = rows[0].pace  # others may be compared by another time, which no bar next to it can show
    alike = [row for row in rows if row.pace and row.pace.kind == pace.kind][: height - 2]
    bars = [(named("rank", [row.rank]), row.pace.time, row) for row in alike if row.pace]
    highest = max([pace.median, *(time for _, time, _ in bars)])
    head = max(cell_len(name) for name in (tr("median"), *(name for name, _, _ in bars)))
    across = width - head - 20
    found = [Text(_TITLES[pace.kind](), style="bold")]
    for name, time, row in bars:
        ratio = f"x{row.pace.ratio:.2f}" if row.pace else ""
        line = f"{padded(name, head)}  {bar(time, highest, across)}  {milliseconds(time):>8} {ratio:>6}"
        found.append(Text(line, style="yellow" if row.state == SLOW else ""))
    line = f"{padded(tr('median'), head)}  {bar(pace.median, highest, across)}  {milliseconds(pace.median):>8}"
    return [*found, Text(line, style="dim")]


_TITLES = {
    BEFORE: lambda: tr("the slowest: time of a step before the ranks wait"),
    STEP: lambda: tr("the slowest: time of a step"),
    DATA: lambda: tr("the slowest: time of a step for data"),
}


def _chosen(view: View, rank: int | None) -> Seen | None:
    """The chosen rank; otherwise the worst one with a problem."""
    found = next((row for row in view.rows if row.rank == rank), None)
    return found or next(iter(view.problems), None)


def _end_of_log(row: Seen, width: int, height: int) -> list[Text]:
    title = Text(tr("the end of the log of {rank}", rank=named("rank", [row.rank])), style="bold")
    try:
        lines = log_tail.read(row.place.log, _NEWEST).lines
    except (OSError, ValueError) as error:
        reason = strerror(error)
        return [title, Text(tr("cannot be read: {reason}", reason=reason), style="dim")]
    shown = [Text(cut(one_line(line), width)) for line in lines[-(height - 1) :]]
    return [title, *(shown or [Text(tr("nothing yet"), style="dim")])]


# ---- A curve of several lines of block characters, with the numbers of its axes; and bars.


def chart_of(points: Sequence[Point], width: int, height: int) -> list[str]:
    """At most `height` lines of at most `width` columns; none without room, or with only one point."""
    if height < LEAST_HIGH or len(points) < 2:
        return []
    rows = height - 1  # the last line is the axis of steps
    low, high = min(point.loss for point in points), max(point.loss for point in points)
    names = _names(low, high, rows)
    left = max(columns(name) for name in names)
    across = width - left - 2
    if across < 10:
        return []
    levels = [_level(value, low, high, rows) for value in _columns(points, across)]
    lines = [
        f"{padded(names[row], left, left=False)} ┤{''.join(_block(level, rows - 1 - row) for level in levels)}"
        for row in range(rows)
    ]
    return [*lines, _axis(points, left, across)]


def _names(low: float, high: float, rows: int) -> list[str]:
    """The numbers next to the lines: at the top, in the middle and at the bottom."""
    names = [""] * rows
    names[0], names[-1] = figure(high), figure(low)
    if rows >= 5 and rows % 2:
        names[rows // 2] = figure(low / 2 + high / 2)
    return names


def _columns(points: Sequence[Point], across: int) -> list[float]:
    """The mean loss in each column; between two points those of a straight line."""
    first, last = points[0].step, points[-1].step
    sums, numbers = [0.0] * across, [0] * across
    for point in points:
        place = min(across - 1, int((point.step - first) / (last - first) * across))
        numbers[place] += 1
        sums[place] += (point.loss - sums[place]) / numbers[place]  # the mean so far; a sum might be infinite
    known = [place for place in range(across) if numbers[place]]
    for before, after in zip(known, known[1:]):
        for place in range(before + 1, after):
            share = (place - before) / (after - before)
            sums[place] = sums[before] * (1 - share) + sums[after] * share
    for place in range(known[-1] + 1, across):
        sums[place] = sums[known[-1]]
    return sums


def _level(value: float, low: float, high: float, rows: int) -> int:
    """How many parts of a character a column is high; at least one."""
    half = high / 2 - low / 2  # the whole difference may be more than a float can be
    share = (value / 2 - low / 2) / half if half else 0.5
    return 1 + round(share * (rows * _PARTS - 1))


def _block(level: int, row: int) -> str:
    """The character of a column in a row, counted from the bottom."""
    return _BLOCKS[min(_PARTS, max(0, level - row * _PARTS))]


def _axis(points: Sequence[Point], left: int, across: int) -> str:
    first = tr("step {number}", number=f"{points[0].step:.0f}")
    last = tr("step {number}", number=f"{points[-1].step:.0f}")
    blanks = across - columns(first) - columns(last)
    return " " * (left + 2) + (first + " " * blanks + last if blanks > 0 else cut(last, across))


def bar(value: float, highest: float, width: int) -> str:
    """A bar of exactly `width` columns."""
    parts = round(min(1.0, max(0.0, value / highest)) * width * 8) if highest > 0 else 0
    full, rest = divmod(parts, 8)
    return padded("█" * full + _EIGHTHS[rest], width)
