"""What the logs of a run say: loss and step time of every rank, as tools/trainer/progress.py prints them.

Lines of MindSpore's LossMonitor and TimeMonitor and of MindOCR are understood too.
"""

import os
import re
import statistics
from collections import namedtuple

# step: from the start of the run; loss None where a line has none; times in milliseconds, None likewise
Point = namedtuple("Point", "step loss step_time data_time", defaults=(None, None, None))

_NUMBER = r"([-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|nan|inf))"
_PLACE = r"epoch: \[?(\d+)(?:/\d+\])?,? step: \[?(\d+)(?:/\d+\])?"
_LOSS = re.compile(rf"{_PLACE}, loss(?: is|:) {_NUMBER}(?:,.* per step time: {_NUMBER} ms)?")
_TIME = re.compile(rf"{_PLACE}, step time is {_NUMBER} ms(?:, {_NUMBER} ms of it for data)?")
_EPOCH_TIME = re.compile(rf"epoch time: {_NUMBER} ms, per step time: {_NUMBER} ms")


class NoLog(Exception):
    """The folder has no log of a rank: the text says what was looked for."""


def read_run(folder):
    """{rank: [Point]} of all logs rank_N.log of a run's folder, in rank order.  Raises NoLog."""
    if not os.path.isdir(folder):
        raise NoLog("no such folder; a run's folder is wanted, such as logs/latest")
    found = {}
    for name in os.listdir(folder):
        match = re.fullmatch(r"rank_(\d+)\.log", name)
        if match:
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                found[int(match[1])] = read_log(file)
    if not found:
        raise NoLog("has no file rank_0.log; a run's folder is wanted, such as logs/latest")
    return dict(sorted(found.items()))


def read_log(lines):
    """The Points of one rank's log, a step at most once, in the order of the steps."""
    places, last = {}, None
    for line in lines:
        loss, time = _LOSS.search(line), _TIME.search(line)
        if loss or time:
            last = tuple(map(int, (loss or time).group(1, 2)))
            values = places.setdefault(last, {})
        if loss:
            values["loss"] = float(loss[3])
            if loss[4]:
                values["step_time"] = float(loss[4])
        elif time:
            values["step_time"] = float(time[3])
            values["data_time"] = float(time[4]) if time[4] else None
        elif last and (epoch := _EPOCH_TIME.search(line)):  # TimeMonitor's, after the epoch's last loss
            places[last].setdefault("step_time", float(epoch[2]))
    in_epoch = max((step for _, step in places), default=0)
    return [Point((epoch - 1) * in_epoch + step, **places[epoch, step]) for epoch, step in sorted(places)]


def typical(points, field):
    """The median of a field, or None; the first of several points is left out: its step compiled the network."""
    values = [getattr(point, field) for point in points]
    values = [value for value in values if value is not None]
    return statistics.median(values[1:] or values) if values else None


def laggards(ranks):
    """[(rank, field, milliseconds, milliseconds of the middle rank)] where a rank is behind the others.

    Ranks that wait for each other in every step all take the time of the slowest, so that its step time
    does not show who that is; the time for data does, of which a rank waits for nobody.  Behind is: a
    twentieth of the step more than the middle rank.
    """
    found = []
    steps = [time for time in (typical(points, "step_time") for points in ranks.values()) if time is not None]
    for field in ("step_time", "data_time"):
        times = {rank: typical(points, field) for rank, points in ranks.items()}
        times = {rank: time for rank, time in times.items() if time is not None}
        if len(times) < 2:
            continue
        middle = statistics.median_low(times.values())
        found += [
            (rank, field, time, middle) for rank, time in times.items() if time - middle > statistics.median(steps) / 20
        ]
    return found
