"""Decides the outcome of an attempt for all hosts of a job whose hosts have a launcher each.

An attempt begins when every host is ready for it.  It fails with the first rank that fails on any host.  When all hosts
have reported how far it came, another attempt begins or the job ends: see count.py.  The job also ends when all ranks
of all hosts have ended with 0, or when a host is lost.
"""

from __future__ import annotations

import time

from hccl_tools.common.language import tr
from hccl_tools.common.words import count, one_line
from tools.attempts.count import Count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Tell = Callable[[list[Any]], None]

NOT_STARTED, LOST = 78, 255  # exit codes
TOLD_AFTER = 10  # seconds until hosts that wait are told for which others


class Attempts:
    """The attempts of one job.  `tell` sends a message to every host; `hosts` are their names, by number.

    restarts, limit: see Count; late: the exit code where a host is not ready for the first attempt within `wait`
    seconds.
    """

    def __init__(
        self, hosts: list[str], restarts: int, limit: int, wait: float, tell: Tell, late: int = NOT_STARTED
    ) -> None:
        self.hosts, self.wait, self.tell, self.late = hosts, wait, tell, late
        self.count = Count(restarts, limit)  # with the number of the attempt that runs, or that hosts get ready for
        self.begun = self.ended = self.told = False
        self.failing = False  # it has failed, and not all hosts have told how far they came
        self._came: dict[int, tuple[int, int, int, str]] = {}
        self.come: set[int] = set()  # hosts that are ready for the attempt; once it has begun, those that are done
        self.since = time.monotonic()  # when the first of them was to come

    def ready(self, host: int, number: int) -> None:
        """Everything that an earlier attempt started on `host` has ended, and the host can begin this attempt."""
        waits = not self.begun and not self.ended and not self.failing
        if number == self.number and waits and self._all_have_come(host):
            self._next(begun=True)
            self.tell(["begin", number])

    def done(self, host: int, number: int) -> None:
        """All ranks of `host` have ended with 0."""
        if number != self.number or not self.begun or self.ended:
            return
        if not self.come:
            self.since = time.monotonic()
        if self._all_have_come(host):
            self.end(0, host, "")

    def failed(self, host: int, number: int, status: int, text: str) -> None:
        """A rank of `host` has failed, with this exit code.  The first failure of an attempt counts."""
        if number != self.number or not self.begun or self.ended:
            return
        if not self.count.restarts:
            self.end(status, host, text)
            return
        self.failing, self._came = True, {}
        self._next(begun=False)
        self.tell(["again", number, status, self.hosts[host], text])

    def came(self, host: int, number: int, reached: int, before: int, saved: int, text: str) -> None:
        """How far the attempt that has failed came on `host`: see Feature.how_far."""
        if number != self.number or not self.failing or self.ended:
            return
        self._came[host] = reached, before, saved, text
        if self._all_have_come(host):
            self._decide()

    def _decide(self) -> None:
        """All hosts have told it: begins the next attempt, or ends the job."""
        told = self._came.values()
        further = max(one[0] for one in told) > max(one[1] for one in told) or any(one[2] for one in told)
        self.failing = False
        self.count.failed(further)
        why = next((text for _, _, _, text in told if text), "") or exhausted(self.count)
        if why:
            self.ended = True
            self.tell(["over", self.number, self.count.vain, why])
            return
        self._next(begun=False)
        self.count.again()
        self.tell(["restart", self.number, self.count.vain])

    def end(self, status: int, host: int, text: str) -> None:
        """The job ends on all hosts, with that exit code.  The first end counts."""
        if not self.ended:
            self.ended = True
            self.tell(["end", self.number, status, self.hosts[host], text])

    @property
    def number(self) -> int:
        """The number of the attempt."""
        return self.count.number

    def left(self, host: int, text: str) -> None:
        """The launcher of `host` is gone, or it cannot be reached any more."""
        self.end(LOST, host, text)

    def waits(self) -> bool:
        """Whether some hosts wait for others."""
        return not self.ended and (not self.begun or bool(self.come))

    def check_time(self) -> None:
        """Reports to hosts which others they wait for, and ends the job when hosts are not ready in time."""
        waited = time.monotonic() - self.since
        if not self.waits():
            return
        if not self.begun and waited >= self.wait:
            status = self.late if self.number == 0 else LOST
            self.end(
                status,
                self._missing()[0],
                tr(
                    "is not ready after {seconds:.0f} s ({missing})",
                    seconds=self.wait,
                    missing=self._missing_words(),
                ),
            )
        elif waited >= TOLD_AFTER and not self.told:
            self.told = True
            self.tell(["say", tr("waiting for {missing}", missing=self._missing_words())])

    def _all_have_come(self, host: int) -> bool:
        self.come.add(host)
        return len(self.come) == len(self.hosts)

    def _next(self, begun: bool) -> None:
        self.begun, self.come, self.told, self.since = begun, set(), False, time.monotonic()

    def _missing(self) -> list[int]:
        return [number for number in range(len(self.hosts)) if number not in self.come]

    def _missing_words(self) -> str:
        """``10.77.0.2: 1 of 2 hosts``"""
        missing = self._missing()
        names = ", ".join(one_line(self.hosts[number]) for number in missing[:4]) + (", ..." if missing[4:] else "")
        return tr("{names}: {number} of {hosts} hosts", names=names, number=len(missing), hosts=len(self.hosts))


def exhausted(count_of: Count) -> str:
    """Why there is no other restart; "" if there is one."""
    if count_of.may_restart:
        return ""
    if count_of.at_limit:
        restarts = count(count_of.number, "restart")
        return tr("the job has had {restarts}, the most that --restart_limit allows", restarts=restarts)
    restarts = count(count_of.vain, "restart")
    return tr("no further step after {restarts}, the most that --max_restarts allows", restarts=restarts)
