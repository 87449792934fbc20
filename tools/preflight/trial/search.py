"""Finds the hosts with which a job fails, by halving, and by pairing whether one host is the cause or two together.

Nothing here starts a job: `run` does.  One bad host of n costs about 2 log2(n) jobs.  Two hosts that fail only together
cost about 4 log2(n).  No set of hosts is tried twice.
"""

from __future__ import annotations

import time

from hccl_tools.common.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

_COMMON = 3  # faults without one job that passes: the cause is common
_MOST_FAULTS = 16


class Outcome(Record):
    """How a job has ended.

    why:      what was seen, for people; suspects: hosts that the job's own end points at; log: where it is told.
    figures:  what each rank measured, as judge.py takes it.
    """

    passed: bool
    why: str = ""
    suspects: Sequence[str] = ()
    log: str = ""
    figures: Sequence[Any] = ()


class Fault(Record):
    """One host, or hosts that fail only together, and what was seen.

    paired: for one host: the good host with which it failed, too; empty: there was none, or it passed with that.
    """

    hosts: tuple[str, ...]
    outcome: Outcome
    paired: str = ""


class Found(Record):
    """The result.

    left:    hosts of which a job has passed in the end; none: it was given up before.
    common:  no job on several hosts has passed, so the cause is probably not one host's.
    unknown: hosts among which more faults may be, when the limit of jobs or of time came.
    """

    faults: Sequence[Fault]
    left: Sequence[str]
    outcome: Outcome
    jobs: int
    common: bool = False
    unknown: Sequence[str] = ()


class Limit(Record):
    """The limits: the number of jobs, and the latest time."""

    jobs: int
    until: float
    clock: Callable[[], float] = time.monotonic


class OutOfBounds(Exception):
    """The limit of jobs or of time has come."""


def most_jobs(hosts: int) -> int:
    """A limit that lets two or three single faults be found, whatever the number of hosts."""
    return 4 + 8 * max(1, hosts - 1).bit_length()


class _Jobs:
    """Runs jobs, each set of hosts once, and remembers."""

    def __init__(self, hosts: Sequence[str], run: Callable[[Sequence[str]], Outcome], limit: Limit) -> None:
        self._order = {host: at for at, host in enumerate(hosts)}
        self._run, self._limit = run, limit
        self.done: dict[frozenset[str], Outcome] = {}

    def outcome(self, hosts: Sequence[str]) -> Outcome:
        """The outcome of a job on these hosts.  Raises OutOfBounds."""
        key = frozenset(hosts)
        if key not in self.done:
            if len(self.done) >= self._limit.jobs or self._limit.clock() >= self._limit.until:
                raise OutOfBounds
            self.done[key] = self._run(sorted(key, key=self._order.__getitem__))
        return self.done[key]

    def fails(self, hosts: Sequence[str]) -> bool:
        """Whether a job on these does."""
        return not self.outcome(hosts).passed

    def nothing_passed(self) -> bool:
        """Whether no job on several hosts has passed; where there is one host alone, none on it."""
        several = min(2, len(self._order))
        return not any(outcome.passed for hosts, outcome in self.done.items() if len(hosts) >= several)

    def good(self, but: Sequence[str]) -> str:
        """A host from a job that has passed, and not one of these; empty: there is none."""
        passed = [hosts for hosts, outcome in self.done.items() if outcome.passed]
        found = {host for hosts in passed for host in hosts}.difference(but)
        return min(found, key=self._order.__getitem__, default="")


def find(hosts: Sequence[str], run: Callable[[Sequence[str]], Outcome], limit: Limit) -> Found:
    """Runs jobs until one passes on all hosts that are not named."""
    jobs = _Jobs(hosts, run, limit)
    left, faults = list(hosts), list[Fault]()
    last = Outcome(passed=False)
    try:
        while left:
            last = jobs.outcome(left)
            if last.passed or _is_common(jobs, faults, left):
                break
            fault = _fault(jobs, left, last)
            faults.append(fault)
            gone = fault.hosts[-1:] if len(fault.hosts) > 1 else fault.hosts
            left = [host for host in left if host not in gone]
        faults = [_beside_good(jobs, fault) for fault in faults]
    except OutOfBounds:
        return _found(jobs, faults, left, last, unknown=left)
    return _found(jobs, faults, left, last, unknown=() if last.passed else left)


def _found(jobs: _Jobs, faults: Sequence[Fault], left: Sequence[str], last: Outcome, unknown: Sequence[str]) -> Found:
    return Found(
        faults=faults,
        left=left if last.passed else (),
        outcome=last,
        jobs=len(jobs.done),
        common=jobs.nothing_passed() and (len(faults) > 1 or not faults),
        unknown=unknown,
    )


def _is_common(jobs: _Jobs, faults: Sequence[Fault], left: Sequence[str]) -> bool:
    """Whether to give up: nothing has passed, or there are too many faults to name."""
    if len(faults) >= _MOST_FAULTS:
        return True
    return len(faults) >= _COMMON and len(left) > 1 and jobs.nothing_passed()


def _fault(jobs: _Jobs, hosts: list[str], failed: Outcome) -> Fault:
    """What makes a job on these hosts fail."""
    suspects = [host for host in hosts if host in failed.suspects]
    if suspects and len(suspects) < len(hosts) and jobs.fails(suspects):
        hosts = suspects
    least = _least(jobs, hosts, [])
    outcome = jobs.outcome(least)
    if len(least) == 1:
        return Fault(hosts=tuple(least), outcome=outcome)
    paired = {host: _confirmed(jobs, host, least) for host in least}
    guilty = [host for host in least if paired[host]][-1:]
    return Fault(hosts=tuple(guilty or least), outcome=outcome, paired=paired[guilty[0]] if guilty else "")


def _beside_good(jobs: _Jobs, fault: Fault) -> Fault:
    """The fault; one of a host alone with the good host with which it fails, too."""
    is_alone = len(fault.hosts) == 1 and not fault.paired
    return fault.replace(paired=_confirmed(jobs, fault.hosts[0])) if is_alone else fault


def _confirmed(jobs: _Jobs, host: str, others: Sequence[str] = ()) -> str:
    """The good host with which this one fails, too; empty if it does not, or if there is none."""
    good = jobs.good([host, *others])
    return good if good and jobs.fails([host, good]) else ""


def _least(jobs: _Jobs, hosts: list[str], beside: list[str]) -> list[str]:
    """The fewest of these hosts with which, and those beside them, a job still fails: delta debugging."""
    if len(hosts) == 1:
        return hosts
    left, right = hosts[: len(hosts) // 2], hosts[len(hosts) // 2 :]
    for half in (left, right):
        if jobs.fails([*beside, *half]):
            return _least(jobs, half, beside)
    first = _least(jobs, left, [*beside, *right])
    return [*first, *_least(jobs, right, [*beside, *first])]
