"""Reads the logs of a run: loss and step time of every rank, as tools/trainer/progress.py prints them.

Lines of MindSpore's LossMonitor and TimeMonitor and of MindOCR are understood too.
"""

from __future__ import annotations

import os
import re
import statistics
from collections.abc import Iterable

from hccl_tools.common import documents
from hccl_tools.common.language import tr
from hccl_tools.common.record import Row
from hccl_tools.common.refusal import USAGE, Refusal
from hccl_tools.common.words import one_line

_NUMBER = r"([-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|nan|inf))"
_PLACE = r"epoch: \[?(\d{1,10})(?:/\d+\])?,? step: \[?(\d{1,10})(?:/\d+\])?"
_LOSS = re.compile(rf"{_PLACE}, loss(?: is|:) {_NUMBER}(?:,.* per step time: {_NUMBER} ms)?")
_TIME = re.compile(rf"{_PLACE}, step time is {_NUMBER} ms(?:, {_NUMBER} ms of it for data)?")
_EPOCH_TIME = re.compile(rf"epoch time: {_NUMBER} ms, per step time: {_NUMBER} ms")


class Point(Row):
    """A step of one rank; times in milliseconds, None where the log does not say."""

    step: int  # from the start of the run
    loss: float | None = None
    step_time: float | None = None
    data_time: float | None = None


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
    found = {}
    for name in os.listdir(folder):
        match = re.fullmatch(r"rank_(\d+)\.log", name)
        if match:
            found[int(match[1])] = _read_file(os.path.join(folder, name))
    if not found:
        text = tr("{folder}: has no file rank_0.log; name a run's folder, such as logs/latest", folder=one_line(folder))
        raise Refusal(USAGE, text)
    return dict(sorted(found.items()))


def _read_file(path: str) -> list[Point]:
    try:
        documents.refuse_special(path)
        with open(path, encoding="utf-8", errors="replace") as file:
            return read_log(file)
    except OSError as error:
        text = tr("{path} cannot be read: {reason}", path=one_line(path), reason=error.strerror)
        raise Refusal(USAGE, text) from error


def read_log(lines: Iterable[str]) -> list[Point]:
    """The Points of one rank's log, each step at most once, in the order of the steps."""
    places: dict[tuple[int, int], dict[str, float]] = {}
    last = None
    for line in lines:
        loss, time = _LOSS.search(line), _TIME.search(line)
        step = loss or time
        if step:
            last = int(step[1]), int(step[2])
            values = places.setdefault(last, {})
        if loss:
            values["loss"] = float(loss[3])
            if loss[4]:
                values["step_time"] = float(loss[4])
        elif time:
            values["step_time"] = float(time[3])
            if time[4]:
                values["data_time"] = float(time[4])
        elif last and (epoch := _EPOCH_TIME.search(line)):  # TimeMonitor's, after the epoch's last loss
            places[last].setdefault("step_time", float(epoch[2]))
    in_epoch = max((step for _, step in places), default=0)
    return [Point((epoch - 1) * in_epoch + step, **places[epoch, step]) for epoch, step in sorted(places)]


def typical(points: list[Point], field: str) -> float | None:
    """The median of a field; the first of several points is left out: its step compiled the network."""
    values = [getattr(point, field) for point in points]
    values = [value for value in values if value is not None]
    return statistics.median(values[1:] or values) if values else None


def laggards(ranks: dict[int, list[Point]]) -> list[Laggard]:
    """The ranks that are behind the others.

    Ranks that wait for each other in every step all take the time of the slowest, so that its step time
    does not show who that is; the time for data does, because it has no wait for other ranks.  A rank is behind if
    its time is longer than that of the middle rank by a twentieth of the step.
    """
    found = []
    steps = [time for time in (typical(points, "step_time") for points in ranks.values()) if time is not None]
    for field in ("step_time", "data_time"):
        medians = {rank: typical(points, field) for rank, points in ranks.items()}
        times = {rank: time for rank, time in medians.items() if time is not None}
        if len(times) < 2:
            continue
        middle = statistics.median_low(times.values())
        limit = middle + statistics.median(steps) / 20
        found += [Laggard(rank, field, time, middle) for rank, time in times.items() if time > limit]
    return found
