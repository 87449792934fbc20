"""Formats runs as lines for people, and as JSON."""

from __future__ import annotations

import os
from datetime import timedelta

from hccl_tools.common import colours, documents
from hccl_tools.common.colours import columns, cut, padded
from hccl_tools.common.language import marked, tr
from hccl_tools.common.words import clauses, count, one_line
from tools.history.listing import LOST, RUNNING, Run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Cells = tuple[str, ...]

_MOST_NAME = 40  # columns of what ran
_EXIT = 3  # the place in _HEAD of how a run ended
_HEAD = (
    marked("run"),
    marked("ranks"),
    marked("took"),
    marked("exit"),
    marked("loss"),
    marked("measured"),
    marked("what ran"),
    marked("cause"),
)


def rows(runs: Sequence[Run], width_of_terminal: int | None, coloured: bool = False) -> Iterator[str]:
    """A head and a line for each run; without a terminal lines may be of any length.

    coloured: the head is bold, and how a run ended is red or, of one that runs, cyan.
    """
    table = [tuple(map(tr, _HEAD)), *map(_cells, runs)]
    styles = [colours.HEAD, *map(_style, runs)]
    widths = [max(map(columns, column)) for column in zip(*table)]
    for cells, style in zip(table, styles):
        row = [padded(cell, width) for cell, width in zip(cells, widths)]
        line = "  ".join(row).rstrip()
        line = line if width_of_terminal is None else cut(line, width_of_terminal)
        if style == colours.HEAD:
            yield colours.shown(line, style, coloured)
        else:
            begin = sum(len(cell) + 2 for cell in row[:_EXIT])
            end = begin + len(cells[_EXIT])
            yield line[:begin] + colours.shown(line[begin:end], style, coloured and end <= len(line)) + line[end:]


def _style(run: Run) -> str:
    """How its end is shown."""
    if run.state == RUNNING:
        return colours.FACT
    return colours.FAILURE if run.failed else ""


def _cells(run: Run) -> Cells:
    return (
        one_line(os.path.basename(run.folder)),
        _ranks(run),
        "" if run.seconds is None else str(timedelta(seconds=run.seconds)),
        _end(run),
        _figure(run.progress.get("loss")),
        _measured(run),
        _shortened(one_line(run.program or "")),
        one_line(clauses(*filter(None, (run.cause, _restarts(run))))),
    )


def _restarts(run: Run) -> str:
    """How many there were, and how many of them made no progress; nothing for a run without."""
    if not run.restarts or not run.attempts:
        return ""
    vain = sum(bool(one.counted) for one in run.attempts)
    return tr("{restarts}, {number} without progress", restarts=count(run.restarts, "restart"), number=vain)


def _ranks(run: Run) -> str:
    if run.ranks is None:
        return "?"
    return f"{run.ranks}" if (run.hosts or 1) < 2 else tr("{ranks} on {hosts} hosts", ranks=run.ranks, hosts=run.hosts)


def _end(run: Run) -> str:
    if run.state == RUNNING:
        return tr("runs")
    if run.state == LOST:
        return tr("killed")
    return "?" if run.exit is None else str(run.exit)


def _figure(value: float | str | None) -> str:
    return "" if value is None else f"{value:.5g}"


def _measured(run: Run) -> str:
    """A measurement on held-out data, such as "accuracy 97.21%"."""
    name, percent = run.progress.get("metric", ""), run.progress.get("percent")
    text = _figure(run.progress.get("value")) if percent is None else f"{percent:.4g}%"
    return one_line(f"{name} {text}".strip()) if text else ""


def _shortened(path: str) -> str:
    """The end of a long path is what tells it from others."""
    return path if len(path) <= _MOST_NAME else "…" + path[1 - _MOST_NAME :]


def as_json(runs: Sequence[Run]) -> str:
    """A list of objects."""
    every = [{**run.as_dict(), "attempts": [one._asdict() for one in run.attempts]} for run in runs]
    return documents.json_text(every)
