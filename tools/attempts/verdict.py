"""What becomes of an attempt of a job whose hosts have a launcher each: decided at one place, for all of them.

An attempt begins when every host is ready for it.  It fails with the first rank that fails on any host, and the job
ends when all ranks of all hosts have ended with 0, when no restart is left, or when a host is lost.
"""

from __future__ import annotations

import time

from hccl_tools.common.language import tr
from hccl_tools.common.words import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Tell = Callable[[list[Any]], None]

NOT_STARTED, LOST = 78, 255  # exit codes
TOLD_AFTER = 10  # seconds until hosts that wait are told for which others


class Attempts:
    """The attempts of one job.  `tell` sends a message to every host; `hosts` are their names, by number.

    late: the exit code where a host is not ready for the first attempt within `wait` seconds.
    """

    def __init__(self, hosts: list[str], restarts: int, wait: float, tell: Tell, late: int = NOT_STARTED) -> None:
        self.hosts, self.restarts, self.wait, self.tell, self.late = hosts, restarts, wait, tell, late
        self.number = 0  # of the attempt that runs, or that hosts get ready for
        self.begun = self.ended = self.told = False
        self.come: set[int] = set()  # hosts that are ready for the attempt; once it has begun, those that are done
        self.since = time.monotonic()  # when the first of them was to come

    def ready(self, host: int, number: int) -> None:
        """All that an earlier attempt started on `host` has ended, and it can begin this one."""
        if number == self.number and not self.begun and not self.ended and self._all_have_come(host):
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
        """A rank of `host` has failed, with that exit code.  The first failure of an attempt counts."""
        if number != self.number or not self.begun or self.ended:
            return
        if number >= self.restarts:
            self.end(status, host, text)
            return
        self.number += 1
        self._next(begun=False)
        self.tell(["again", number, status, self.hosts[host], text])

    def end(self, status: int, host: int, text: str) -> None:
        """The job ends on all hosts, with that exit code.  The first end counts."""
        if not self.ended:
            self.ended = True
            self.tell(["end", self.number, status, self.hosts[host], text])

    def left(self, host: int, text: str) -> None:
        """The launcher of `host` is gone, or nobody reaches it any more."""
        self.end(LOST, host, text)

    def waits(self) -> bool:
        """Whether some hosts wait for others."""
        return not self.ended and (not self.begun or bool(self.come))

    def check_time(self) -> None:
        """Tells hosts that wait for whom, and ends the job when hosts are not ready in time."""
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
