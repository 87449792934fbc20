"""Reads the logs of a run: loss and step time of every rank, from the lines that configs/progress.yaml names."""

from __future__ import annotations

import os
import re
import statistics
import sys
from itertools import repeat

from hccl_tools.common import how_far
from hccl_tools.common.language import tr
from hccl_tools.common.record import Row
from hccl_tools.common.refusal import USAGE, Refusal
from hccl_tools.common.words import count, one_line
from tools.progress import lines
from tools.progress.counting import axis_of
from tools.progress.series import Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from tools.progress.lines import Pattern
    from tools.progress.series import Series


class Point(Row):
    """A step of one rank; times in milliseconds, None where the log does not say."""

    step: int  # from the start of the run
    loss: float | None = None
    step_time: float | None = None
    data_time: float | None = None
    before_time: float | None = None  # until the rank began to wait for others, its wait for data included


# of a Point: the name of the group
_FIELDS = {"loss": "loss", "step_time": "step_ms", "data_time": "data_ms", "before_time": "before_ms"}


class Laggard(Row):
    """A rank that is behind the others."""

    rank: int
    field: str  # of Point
    time: float
    middle: float  # the middle rank's time


def read_run(folder: str) -> dict[int, list[Point]]:
    """{rank: its Points} of all logs rank_N.log of a run's folder, in rank order.  Raises Refusal."""
    if not os.path.isdir(folder):
        text = tr("{folder}: no such folder; name a run's folder, such as logs/latest", folder=one_line(folder))
        raise Refusal(USAGE, text)
    names = (re.fullmatch(r"rank_(\d+)\.log", name) for name in os.listdir(folder))
    paths = {int(match[1]): os.path.join(folder, match[0]) for match in names if match}
    found, reader = {}, Reader(lines.load())
    whole = sum(map(how_far.bytes_of, paths.values()))
    with how_far.doing(tr("reading {logs}", logs=count(len(paths), "log")), whole, in_bytes=True) as work:
        for rank in sorted(paths):
            work.about = os.path.basename(paths[rank])
            found[rank] = _read_file(paths[rank], reader)
    if not found:
        text = tr("{folder}: has no file rank_0.log; name a run's folder, such as logs/latest", folder=one_line(folder))
        raise Refusal(USAGE, text)
    return found


def _read_file(path: str, reader: Reader) -> list[Point]:
    try:
        return _points(reader.read(path, sys.maxsize))
    except OSError as error:
        text = tr("{path} cannot be read: {reason}", path=one_line(path), reason=error.strerror)
        raise Refusal(USAGE, text) from error


def read_log(log: Iterable[str], patterns: list[Pattern]) -> list[Point]:
    """The Points of one rank's log, each step at most once, in the order of the steps."""
    return _points(Reader(patterns).of_lines(log))


def _points(log: Series) -> list[Point]:
    axis, columns = axis_of([log.counted]), {name: log.columns.get(key, repeat(None)) for name, key in _FIELDS.items()}
    rows = zip(log.places, *columns.values())
    return [Point(axis.at(place), **dict(zip(columns, values))) for place, *values in rows]


def typical(points: list[Point], field: str) -> float | None:
    """The median of a field; the first of several points is left out: its step compiled the network."""
    values = [getattr(point, field) for point in points]
    values = [value for value in values if value is not None]
    return statistics.median(values[1:] or values) if values else None


def laggards(ranks: dict[int, list[Point]]) -> list[Laggard]:
    """The ranks that are behind the others.

    Ranks that wait for each other in every step all take the time of the slowest, so that its step time
    does not show who that is; the time before the collective and that for data do, because they have no wait for
    other ranks.  Where logs have the time before the collective, the step time does not count.  A rank is behind if its
    time is longer than that of the middle rank by a twentieth of the step.
    """
    found = []
    compared = {field: _times(ranks, field) for field in ("step_time", "before_time", "data_time")}
    steps = compared["step_time"] or compared["before_time"]
    if len(compared["before_time"]) > 1:
        del compared["step_time"]
    for field, times in compared.items():
        if len(times) < 2:
            continue
        middle = statistics.median_low(times.values())
        limit = middle + statistics.median(steps.values()) / 20
        found += [Laggard(rank, field, time, middle) for rank, time in times.items() if time > limit]
    return found


def _times(ranks: dict[int, list[Point]], field: str) -> dict[int, float]:
    """{rank: its typical time}, of the ranks whose logs have it."""
    medians = {rank: typical(points, field) for rank, points in ranks.items()}
    return {rank: time for rank, time in medians.items() if time is not None}


def document(ranks: dict[int, list[Point]], run: str) -> dict[str, Any]:
    """The numbers of all ranks for a program, and who is slow; times are milliseconds.  run: its folder."""
    rows = [
        {
            "rank": rank,
            "median": {field: typical(points, field) for field in _FIELDS if field != "loss"},
            "points": [point._asdict() for point in points],
        }
        for rank, points in ranks.items()
    ]
    slow = [{"rank": one.rank, "kind": one.field, "time": one.time, "median": one.middle} for one in laggards(ranks)]
    return {"folder": run, "ranks": rows, "slow": slow}
