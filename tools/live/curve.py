"""The loss of a whole job for its live screen: the values that a log already has, and those that are added."""

from __future__ import annotations

import math

from hccl_tools.common.record import Row
from tools.progress import counting, series

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.progress.counting import Axis
    from tools.progress.lines import Pattern
    from tools.progress.ranks import RankProgress

MOST = 1024  # points
_READ = 1 << 20  # bytes of the log that are read at the beginning


class Point(Row):
    """A loss."""

    step: float  # from the beginning of the run
    loss: float


class Curve:
    """The losses of one rank.  In a long job two neighbours become one point, repeatedly."""

    def __init__(self, one: RankProgress, patterns: list[Pattern]) -> None:
        """Reads what the rank's log has so far; a log that cannot be read has none."""
        self.rank, self.path = one.rank, one.tail.path
        self.points: list[Point] = []
        self._each = self._waits = 1  # losses in a point; the losses until the next one
        self._axis: Axis | None = None  # once the length of an epoch is known
        self._begin(patterns)
        self._before, self._offset = one.steps_done, self.points[-1].step if self.points else 0.0

    def _begin(self, patterns: list[Pattern]) -> None:
        try:
            found = series.Reader(patterns).read(self.path, _READ)
        except (OSError, ValueError):
            return
        axis = counting.axis_of([found.counted])
        if found.counted.in_epoch > max((step for _, step in found.places), default=0):
            self._axis = axis  # the log states how many steps an epoch has
        elif found.places and found.places[0][0] < found.places[-1][0]:
            self._axis = axis  # or has a whole one
        losses = found.columns.get("loss", [])
        for place, loss in zip(found.places, losses):
            if loss is not None:
                self._add(Point(float(axis.at(place)), loss))

    def take(self, one: RankProgress) -> None:
        """The newest loss of the rank, whose log has grown."""
        if one.losses and one.steps_done > self._before:
            self._add(Point(self._at(one), one.losses[-1]))

    def _at(self, one: RankProgress) -> float:
        """The step from the beginning of the run.  Two looks may be an epoch apart, and only the axis knows that."""
        counted = self._offset + one.steps_done - self._before
        if self._axis is None or one.epoch is None or one.step is None or one.step > self._axis.in_epoch:
            return counted
        return float(self._axis.at((one.epoch, one.step)))

    def _add(self, point: Point) -> None:
        if not math.isfinite(point.loss) or (self.points and point.step <= self.points[-1].step):
            return
        self._waits -= 1
        if self._waits:
            return
        self.points.append(point)
        if len(self.points) > MOST:
            self._each *= 2
            self.points = self.points[::2]
        self._waits = self._each


__all__ = ["MOST", "Curve", "Point"]
