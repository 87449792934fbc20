"""Determines whether steps count from the start of the run or again in each epoch, and a step's place in the run.

Logs do not state it.  A log may have lines of every tenth step, be cut, or have only one epoch.  Ranks and attempts may
have different parts of a run.  So what all logs of a run show is combined, in this order:

  per epoch    a log has in one epoch a step that is not higher than one of an epoch before
  of the run   a step is higher than the number of steps that its own line has for the epoch
  of the run   in one log the next epoch continues where the one before it ended
  of the run   all logs fit epochs of one length, and no line has a number of steps that contradicts it
  per epoch    in all other cases
"""

from __future__ import annotations

from hccl_tools.common.record import Record, Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from tools.progress.lines import Values

    Place = tuple[int, int]  # epoch and step, from 0 or from 1
    Ranges = dict[int, tuple[int, int]]


class Counted(Record):
    """The counting that one log shows."""

    epochs: Ranges  # of each epoch the lowest and the highest step
    named: bool  # by lines that name the epoch; otherwise by bars that begin again, and by lines for a whole epoch
    in_epoch: int  # the highest step, or number of steps
    stride: int  # the least distance of two lines, in steps; 0: there were no two in one epoch
    steps: int  # the highest number of steps that a line has for an epoch, or for the run; 0: none has one
    all_epochs: int  # how many epochs the run has; 0: no line states it
    over: bool  # a line had a higher step than its number of steps


class Axis(Row):
    """Where places are in a run, in steps from its start."""

    first_epoch: int  # trainers count from 0 or from 1
    in_epoch: int
    counts_on: bool  # steps do not begin again with the next epoch

    def at(self, place: Place) -> int:
        """The number of the step in the run."""
        epoch, step = place
        return step if self.counts_on else (epoch - self.first_epoch) * self.in_epoch + step


class Counting:
    """Takes the places of one log, in the order of its lines."""

    def __init__(self) -> None:
        self._named: Ranges = {}  # by lines that have an epoch; lines without it may be of an evaluation
        self._implied: Ranges = {}
        self._last: Place | None = None
        self._stride = 0
        self._in_epoch = 0
        self._steps = 0
        self._all_epochs = 0
        self._over = False

    def cut(self) -> None:
        """Notes that some lines were left out here."""
        self._last = None

    def take(self, place: Place, said: Values) -> None:
        """Takes the next line with a place, and all of its values."""
        epoch, step = place
        named = "epoch" in said and "step" in said
        ranges = self._named if named else self._implied
        low, high = ranges.get(epoch, (step, step))
        ranges[epoch] = min(low, step), max(high, step)
        steps = int(said.get("steps", 0))
        self._in_epoch = max(self._in_epoch, step, steps)
        if named and steps:
            self._steps = max(self._steps, steps)
            self._over = self._over or step > steps
        self._all_epochs = max(self._all_epochs, int(said.get("epochs", 0)))
        before, self._last = self._last, place
        if before and before[0] == epoch and step > before[1]:
            distance = step - before[1]
            self._stride = min(self._stride or distance, distance)

    def said(self) -> Counted:
        """The result of all lines."""
        return Counted(
            epochs=self._named or self._implied,
            named=bool(self._named),
            in_epoch=self._in_epoch,
            stride=self._stride,
            steps=self._steps,
            all_epochs=self._all_epochs,
            over=self._over,
        )


def axis_of(every: Iterable[Counted]) -> Axis:
    """The Axis of all logs of one run."""
    all_logs = [one for one in every if one.epochs]
    known = [one for one in all_logs if one.named] or all_logs
    union: Ranges = {}
    for one in known:
        for epoch, (low, high) in one.epochs.items():
            lowest, highest = union.get(epoch, (low, high))
            union[epoch] = min(lowest, low), max(highest, high)
    first = min((epoch for one in all_logs for epoch in (1, *one.epochs)), default=1)
    from_zero = any(low == 0 for epoch, (low, _) in union.items() if epoch > first)
    highest_step = max((high for _, high in union.values()), default=0)
    return Axis(
        first_epoch=first,
        in_epoch=max([highest_step + from_zero, *(one.in_epoch for one in all_logs)]),
        counts_on=not any(_begins_anew(one.epochs) for one in known)
        and (any(one.over or _goes_on(one) for one in known) or _fits(known, union, first)),
    )


def _begins_anew(epochs: Ranges) -> bool:
    highest = -1
    for epoch in sorted(epochs):
        low, high = epochs[epoch]
        if low <= highest:
            return True
        highest = high
    return False


def _goes_on(one: Counted) -> bool:
    """Whether the step from one epoch to the next is as small as those within an epoch.

    If steps begin again in each epoch, a log would have to leave out a whole epoch there.
    """
    pairs = ((one.epochs[epoch], one.epochs[epoch + 1]) for epoch in one.epochs if epoch + 1 in one.epochs)
    return any(0 < low - high <= 2 * one.stride for (_, high), (low, _) in pairs)


def _fits(known: list[Counted], union: Ranges, first: int) -> bool:
    """Whether steps of the run, in epochs of one length, can be where the logs have them."""
    base = 0 if any(low == 0 for low, _ in union.values()) else 1
    least, most = 1, None
    for epoch, (low, high) in union.items():
        before = epoch - first  # so many epochs ended
        least = max(least, -(-(high - base + 1) // (before + 1)))
        if before:
            longest = (low - base) // before
            most = longest if most is None else min(most, longest)
    if most is None or least > most:
        return False
    steps = max(one.steps for one in known)
    epochs = max(one.all_epochs for one in known)
    return not steps or (epochs > 0 and least <= steps / epochs <= most)
