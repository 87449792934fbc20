"""Reads this host's logs when an attempt has ended: how far it came, and the cause of a rank's death."""

from __future__ import annotations

import os

from hccl_tools.common.language import tr
from hccl_tools.common.record import Record
from hccl_tools.common.words import short
from tools.attempts.count import BIGGEST_STEP
from tools.logs import aftermath, line_heads, log_tail, loud
from tools.progress.counting import axis_of
from tools.progress.series import Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.attempts.saves import Saves
    from tools.progress.counting import Axis, Counted, Place
    from tools.progress.lines import Pattern

MOST_LOGS = 64  # of one attempt; of more, that of the rank that failed, and others at even distances
MOST_BYTES = 512 << 10  # of a log
_LONGEST = 300  # characters of an error


class Asked(Record):
    """An attempt that has ended."""

    logs: str  # the folder
    ranks: Sequence[int]  # of this host
    failed: int | None = None  # the rank that failed first; None: none of this host did
    status: int = 0  # its exit code


class Came(Record):
    """What its logs state.  A step is numbered from the start of the run; 0: no log has one."""

    reached: int  # the furthest step
    before: int  # the furthest of the attempts before
    steps: int | None  # that it made; None: no log has one
    saved: str = ""  # a checkpoint that is further than all before; "": there is none
    place: str = ""  # where the rank died: "at step 12 of epoch 3"; "": no log states it
    error: str = ""  # of what it died
    alike: Sequence[int] = ()  # the attempts in which it died there of the same, from 1 on, with this one

    @property
    def further(self) -> bool:
        """Whether it came further than those before."""
        return self.reached > self.before or bool(self.saved)


class Looks:
    """All attempts of one job.  They share one axis of steps; each log may add to what is known about it."""

    def __init__(self, patterns: list[Pattern], saves: Saves) -> None:
        self._reader, self._saves = Reader(patterns), saves
        self._counted: list[Counted] = []
        self._furthest: list[Place | None] = []  # of each attempt
        self._deaths: dict[tuple[int, Place | None, str], list[int]] = {}

    def look(self, asked: Asked) -> Came:
        """Examines the next attempt, which has ended."""
        ends: dict[int, tuple[Place, Place, int]] = {}  # rank: its first place and its last one, and its stride
        for rank in chosen(asked.ranks, asked.failed):
            try:
                log = self._reader.read(log_of(asked.logs, rank), MOST_BYTES)
            except (OSError, ValueError):  # there is none, or it is not a file: nothing is known of this rank
                continue
            if log.places:
                self._counted.append(log.counted)
                ends[rank] = log.places[0], log.places[-1], log.counted.stride
        axis = axis_of(self._counted)
        before = max((axis.at(place) for place in self._furthest if place), default=0)
        furthest = max((last for _, last, _ in ends.values()), key=axis.at, default=None)
        self._furthest.append(furthest)
        came = Came(
            reached=min(BIGGEST_STEP, axis.at(furthest)) if furthest else 0,
            before=min(BIGGEST_STEP, before),
            steps=max((_made(axis, *each) for each in ends.values()), default=0 if self._counted else None),
            saved=self._saves.new(),
        )
        return came if asked.failed is None else self._died(came, asked, ends, furthest)

    def _died(
        self, came: Came, asked: Asked, ends: dict[int, tuple[Place, Place, int]], furthest: Place | None
    ) -> Came:
        """Of what the rank died, and how often it has died so.

        If its own log has no step, it died at that of the others; where no log of this attempt has one, before its
        first step.  Where no log of the job has one, it is unknown whether it was the same step.
        """
        rank = asked.failed or 0
        error = error_of(log_of(asked.logs, rank))
        if not self._counted:
            return came.replace(error=error)
        place = ends[rank][1] if rank in ends else furthest
        key = rank, place, f"{asked.status} {line_heads.pattern_of(error)}"
        attempts = self._deaths.setdefault(key, [])
        attempts.append(len(self._furthest))
        has_epochs = any(one.named for one in self._counted)
        return came.replace(error=error, place=place_words(place, has_epochs), alike=tuple(attempts))


def log_of(folder: str, rank: int) -> str:
    """The log of a rank."""
    return os.path.join(folder, f"rank_{rank}.log")


def chosen(ranks: Sequence[int], failed: int | None) -> list[int]:
    """The ranks whose logs are read."""
    if len(ranks) <= MOST_LOGS:
        return list(ranks)
    stride = len(ranks) / (MOST_LOGS - 2)
    even = [ranks[int(number * stride)] for number in range(MOST_LOGS - 2)]
    return sorted({*even, ranks[-1], *([] if failed is None else [failed])})


def _made(axis: Axis, first: Place, last: Place, stride: int) -> int:
    """Steps from its start: its first line may be of a later step, if only each tenth has one."""
    begin, end = axis.at(first), axis.at(last)
    return max(0, end - begin) + max(1, min(stride, begin))


def place_words(place: Place | None, has_epochs: bool) -> str:
    """The step for a message, None: it made none; has_epochs: the logs name epochs."""
    if place is None:
        return tr("before its first step")
    if has_epochs:
        return tr("at step {step} of epoch {epoch}", step=place[1], epoch=place[0])
    return tr("at step {step}", step=place[1])


# ---- errors ----------------------------------------------------------------------------------------------------------


def error_of(path: str) -> str:
    """The exception that ended the rank, otherwise the last line of its log that sounds like an error; "": neither."""
    try:
        log = log_tail.read(path)
    except (OSError, ValueError):
        return ""
    raised = log_tail.last_exception(log.lines)
    if raised is not None:
        return short(raised.text, _LONGEST)
    text = "\n".join(log.lines).encode("utf-8", "replace")[-loud.MOST_BYTES :]
    found = loud.of_log(text, text, text.count(b"\n"), whole=True)
    lines = [line.decode("utf-8", "replace").strip() for _, line in found]
    own = [line for line in lines if not aftermath.follows(line)]
    return short((own or lines or [""])[-1], _LONGEST)
