"""The ranks of a job as lines of text: one for each rank, or for several that are alike."""

from __future__ import annotations

from hccl_tools.common.colours import cut, padded
from hccl_tools.common.language import marked, tr
from hccl_tools.common.record import Row
from hccl_tools.common.words import count, one_line, ranges, size_of
from tools.live.watcher import PROBLEMS
from tools.progress.figures import age, figure, middle, milliseconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tools.live.watcher import Seen

_GAP = "  "
_FRESH = 3  # columns that are true of a rank that writes nothing: its number, its state, and since when


class Line(Row):
    """A line of the table."""

    cells: tuple[str, ...]  # of all COLUMNS
    state: str  # of watcher.ORDER
    rank: int | None  # None: several
    stale: bool = False  # its numbers are old: see Seen


class Column(Row):
    """A column, for a group of like ranks; its place in the list is its importance."""

    head: str  # English; it fits the width in any language
    width: int
    cell: Callable[[Sequence[Seen]], str]
    left: bool = False  # not aligned to the right


def _ranks(rows: Sequence[Seen]) -> str:
    return ranges(row.rank for row in rows)


def _hosts(rows: Sequence[Seen]) -> str:
    hosts = {row.place.host for row in rows}
    return one_line(hosts.pop()) if len(hosts) == 1 else count(len(hosts), "host")


def _state(rows: Sequence[Seen]) -> str:
    first = rows[0]
    return f"{tr(first.state)} {first.status}" if first.status else tr(first.state)


def _step(rows: Sequence[Seen]) -> str:
    steps = [row.progress.step for row in rows if row.progress.step is not None]
    if not steps:
        return ""
    low, high = min(steps), max(steps)
    return str(low) if low == high else f"{low}-{high}"


def _loss(rows: Sequence[Seen]) -> str:
    if len(rows) == 1:
        return figure(rows[0].progress.number("loss"))
    return figure(middle(row.progress.number("loss") for row in rows))


def _ratio(rows: Sequence[Seen]) -> str:
    worst = max((row.pace.ratio for row in rows if row.pace), default=None)
    return "" if worst is None else f"x{worst:.2f}"


def _most(sizes: Iterable[int | None]) -> str:
    known = [size for size in sizes if size]
    return size_of(max(known)) if known else ""


COLUMNS = (
    Column(marked("rank"), 9, _ranks, left=True),
    Column(marked("state"), 10, _state, left=True),
    Column(marked("last line"), 9, lambda rows: age(middle(row.age for row in rows))),
    Column(marked("step"), 9, _step),
    Column(marked("loss"), 9, _loss),
    Column(marked("step time"), 9, lambda rows: milliseconds(middle(row.progress.step_ms for row in rows))),
    Column(marked("pace"), 6, _ratio),
    Column(marked("samples/s"), 9, lambda rows: figure(middle(row.progress.number("samples_per_s") for row in rows))),
    Column(marked("before"), 8, lambda rows: milliseconds(middle(row.progress.before_ms for row in rows))),
    Column(marked("memory"), 8, lambda rows: _most(row.memory for row in rows)),
    Column(marked("NPU"), 8, lambda rows: _most(row.npu_memory for row in rows)),
    Column(marked("data"), 8, lambda rows: milliseconds(middle(row.progress.data_ms for row in rows))),
    Column(marked("host"), 20, _hosts, left=True),
)


def fitting(lines: Sequence[Line], width: int) -> list[int]:
    """The columns for a terminal of this width, the most important first: the first one, and those with information."""
    found, used = [0], COLUMNS[0].width
    for number, column in enumerate(COLUMNS[1:], 1):
        if number > 1 and not any(line.cells[number] for line in lines):
            continue
        used += len(_GAP) + column.width
        if used > width:
            break
        found.append(number)
    return found


def head(shown: Sequence[int]) -> str:
    """The names of these columns."""
    return _joined([tr(column.head) for column in COLUMNS], shown)


def text(line: Line, shown: Sequence[int]) -> str:
    """The line with these columns."""
    return _joined(line.cells, shown)


def fresh(line: Line, shown: Sequence[int]) -> int:
    """The length of the line's text before its old numbers; of all, where it has none."""
    every = text(line, shown)
    return len(_joined(line.cells, [number for number in shown if number < _FRESH])) if line.stale else len(every)


def _joined(cells: Sequence[str], shown: Sequence[int]) -> str:
    return _GAP.join(_fitted(cells[number], COLUMNS[number]) for number in shown).rstrip()


def _fitted(cell: str, column: Column) -> str:
    return padded(cut(cell, column.width), column.width, column.left)


def body(rows: Sequence[Seen], height: int) -> list[Line]:
    """Lines for all rows, at most `height`: what has a problem has a line of its own as far as there is room."""
    if len(rows) <= height:
        return [_line([row]) for row in rows]
    alone = [row for row in rows if row.state in PROBLEMS]
    groups = _groups([row for row in rows if row.state not in PROBLEMS], max(1, height // 2))
    if len(alone) + len(groups) > height:
        room = max(0, height - len(groups) - 1)
        groups = [alone[room:], *groups]
        alone = alone[:room]
    return [_line(group) for group in [*([row] for row in alone), *filter(None, groups)]][:height]


def _groups(rows: Sequence[Seen], most: int) -> list[list[Seen]]:
    """Like ranks of one host together, or of all hosts if that makes too many groups."""
    by_host: dict[tuple[str, str], list[Seen]] = {}
    by_state: dict[str, list[Seen]] = {}
    for row in rows:
        by_host.setdefault((row.state, row.place.host), []).append(row)
        by_state.setdefault(row.state, []).append(row)
    return list(by_host.values()) if len(by_host) <= most else list(by_state.values())


def _line(rows: Sequence[Seen]) -> Line:
    return Line(
        cells=tuple(column.cell(rows) for column in COLUMNS),
        state=rows[0].state,
        rank=rows[0].rank if len(rows) == 1 else None,
        stale=all(row.stale for row in rows),
    )
