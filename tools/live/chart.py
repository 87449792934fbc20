"""A curve of several lines of block characters, with the numbers of its axes; and bars."""

from __future__ import annotations

from hccl_tools.common.columns import columns, cut, padded
from hccl_tools.common.language import tr
from tools.progress.figures import figure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.live.curve import Point

_BLOCKS = " ▁▂▃▄▅▆▇█"
_EIGHTHS = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")
_PARTS = len(_BLOCKS) - 1
LEAST = 5  # lines of a chart


def chart(points: Sequence[Point], width: int, height: int) -> list[str]:
    """At most `height` lines of at most `width` columns; none where there is no room, or only one point."""
    if height < LEAST or len(points) < 2:
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
    """The numbers beside the lines: at the top, in the middle and at the bottom."""
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
