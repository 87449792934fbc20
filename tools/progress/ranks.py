"""Reads the progress of each rank from the newest lines of its log: step, loss, step time, and its last output."""

from __future__ import annotations

import math
from collections import deque

from tools.progress import phases
from tools.progress.tails import Tail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from tools.progress.lines import Values
    from tools.progress.tails import Patterns

_CURVE = 120  # losses that are kept
_WINDOW = 30.0  # seconds over which steps are counted, where a trainer prints no step time


class RankProgress:
    """One rank.  Step times are milliseconds; None: its log does not state it."""

    __slots__ = (
        "_begins_anew",
        "_counted",
        "epoch",
        "first_epoch",
        "grown",
        "losses",
        "phase",
        "phase_since",
        "rank",
        "step",
        "steps_done",
        "tail",
        "values",
    )

    def __init__(self, rank: int, log: str) -> None:
        self.rank, self.tail = rank, Tail(log)
        self.values: Values = {}  # the last of each kind, see lines.GROUPS
        self.grown: float | None = None  # when its log grew last, in the seconds of those who looked
        self.epoch: int | None = None
        self.first_epoch = 1  # or 0, once it was seen
        self.step: int | None = None
        self.steps_done = 0  # since it is watched
        self.losses: deque[float] = deque(maxlen=_CURVE)
        self.phase: str | None = None  # of phases.PHASES
        self.phase_since: float | None = None  # seconds since 1970 by the clock of the log's file system
        self._begins_anew = False  # its steps went back in another epoch, so they do not count on
        self._counted: deque[tuple[float, int]] = deque()  # (when it wrote, steps_done) of the last _WINDOW

    def look(self, patterns: Patterns, now: float) -> bool:
        """Reads what is new; returns whether its log has grown."""
        values = self.tail.look(patterns)
        if values is None:
            return False
        if self.grown is None:
            self.losses.extend(self.tail.losses[:-1])
        self.grown = now
        self._see_phase()
        self.take(values, self.tail.written)  # not `now`: between two looks a rank may do 1 step or 2
        return True

    def _see_phase(self) -> None:
        phase = phases.after(self.tail.marks, self.phase)
        if self.tail.marks and phase != self.phase:
            self.phase, self.phase_since = phase, self.tail.since

    def take(self, values: Values, moment: float) -> None:
        """Takes the newest numbers of its log, as lines.last_of finds them; moment: when it wrote them, in seconds."""
        self.values.update(values)
        if values.get("epoch") == 0:
            self.first_epoch = 0
        if "loss" in values:
            self.losses.append(float(values["loss"]))
        if "step" in values:
            self._count(values, moment)

    def _count(self, values: Values, moment: float) -> None:
        epoch, step = int(values["epoch"]) if "epoch" in values else self.epoch, int(values["step"])
        self.steps_done += self._done(epoch, step, values)
        self.epoch, self.step = epoch, step
        if self._counted and moment < self._counted[-1][0]:  # the clock was set back
            self._counted.clear()
        self._counted.append((moment, self.steps_done))
        while len(self._counted) > 2 and moment - self._counted[1][0] >= _WINDOW:
            self._counted.popleft()

    def _done(self, epoch: int | None, step: int, values: Values) -> int:
        """The steps from the last place to this one."""
        if self.step is None:
            return 0
        if epoch is None or self.epoch is None or epoch <= self.epoch:  # less is a restart
            return step - self.step if step > self.step or (step == self.step and epoch == self.epoch) else step
        self._begins_anew = self._begins_anew or step <= self.step
        steps = int(values.get("steps", 0))
        if steps >= max(1, step, self.step) and (self._begins_anew or not self._are_of_run(epoch, step, values)):
            return (epoch - self.epoch) * steps - self.step + step
        return step if self._begins_anew else step - self.step  # some trainers' steps count on

    def _are_of_run(self, epoch: int, step: int, values: Values) -> bool:
        """Whether `steps` can be those of all epochs: both places then have the share that their epochs have."""
        share = int(values.get("epochs", 0)) / int(values["steps"])
        places = ((self.epoch or 0, self.step or 0), (epoch, step))
        return all(0 <= number * share - (of - self.first_epoch) <= 1 for of, number in places)

    @property
    def step_ms(self) -> float | None:
        """The time of a step: as it printed it, otherwise counted."""
        printed = [
            found
            for found in (
                _positive(self.values.get("step_ms")),
                _positive(self.values.get("step_s"), 1e3),
                _reciprocal(self.values.get("steps_per_s")),
            )
            if found is not None
        ]
        return printed[0] if printed else self._counted_ms()

    def _counted_ms(self) -> float | None:
        if len(self._counted) < 2:
            return None
        (begun, first), (now, last) = self._counted[0], self._counted[-1]
        return (now - begun) / (last - first) * 1e3 if last > first else None

    @property
    def before_ms(self) -> float | None:
        """The time of a step before the rank waits for others."""
        return _positive(self.values.get("before_ms"))

    @property
    def data_ms(self) -> float | None:
        """The time of a step that it waits for data; it may be 0."""
        value = self.values.get("data_ms")
        return float(value) if value is not None and math.isfinite(float(value)) else None

    def number(self, name: str) -> float | None:
        """The last number of a kind, see lines.GROUPS; it may be nan."""
        value = self.values.get(name)
        return None if value is None else float(value)


def _positive(value: float | str | None, factor: float = 1.0) -> float | None:
    number = float("nan") if value is None else float(value) * factor
    return number if 0 < number < math.inf else None


def _reciprocal(value: float | str | None) -> float | None:
    number = _positive(value)
    return None if number is None else 1e3 / number


class Ranks:
    """All ranks whose logs are followed."""

    def __init__(self, logs: Iterable[tuple[int, str]], patterns: Patterns) -> None:
        """logs: (rank, path of its log)."""
        self.by_rank = {rank: RankProgress(rank, path) for rank, path in logs}
        self._patterns = patterns

    def look(self, now: float) -> list[RankProgress]:
        """The ranks whose logs have grown since the last look.  The cost: one query to the file system per rank."""
        return [one for one in self.by_rank.values() if one.look(self._patterns, now)]
