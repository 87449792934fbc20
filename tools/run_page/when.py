"""At which second of a run a step ended, where its logs have times; of one rank's clock, for no two are alike."""

from __future__ import annotations

from bisect import bisect_left

from hccl_tools.common.record import Record
from tools.progress.counting import axis_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.progress.counting import Axis
    from tools.progress.series import Series
    from tools.run_page.reading import RunData


class Clock(Record):
    """The seconds of some steps, since the first of them; both in order."""

    steps: list[int]
    seconds: list[float]

    def at(self, step: int) -> float:
        """The second of a step; between those that are known on the line that joins them."""
        after = bisect_left(self.steps, step)
        if after == 0:
            return self.seconds[0]
        if after == len(self.steps):
            return self.seconds[-1]
        first, last = self.steps[after - 1], self.steps[after]
        share = (step - first) / (last - first)
        return self.seconds[after - 1] + share * (self.seconds[after] - self.seconds[after - 1])


def clock_of(data: RunData) -> Clock | None:
    """The clock of the lowest rank whose logs have times; None without any, or where all of them are the same."""
    axis = axis_of(log.counted for logs in data.logs.values() for log in logs)
    for _, logs in sorted(data.logs.items()):
        there = _times(logs, axis)
        seconds = [0.0]
        for (_, earlier), (_, moment) in zip(there, there[1:]):
            seconds.append(seconds[-1] + max(0.0, moment - earlier))  # a clock may be set back
        if seconds[-1] > 0:
            return Clock(steps=[step for step, _ in there], seconds=seconds)
    return None


def _times(logs: list[Series], axis: Axis) -> list[tuple[int, float]]:
    """(step, its time) in order; what an attempt did again counts as it was done last."""
    found: list[tuple[int, float]] = []
    for log in logs:
        times = sorted((axis.at(place), moment) for place, moment in log.times)
        found = [pair for pair in found if not times or pair[0] < times[0][0]] + times
    return found


def restarts(data: RunData) -> dict[int, int]:
    """{which restart: its first step}, of those that had a step, where the logs of all attempts are here."""
    axis = axis_of(log.counted for logs in data.logs.values() for log in logs)
    found: dict[int, int] = {}
    for logs in data.logs.values():
        if len(logs) == len(data.attempts):
            for number, log in enumerate(logs[1:], 1):
                _note(found, number, log, axis)
    return dict(sorted(found.items()))


def _note(found: dict[int, int], number: int, log: Series, axis: Axis) -> None:
    if log.places:
        step = axis.at(log.places[0])
        found[number] = min(step, found.get(number, step))
