"""Compares the clocks of hosts: times in logs are local, and hosts differ by seconds, or by hours if a zone is wrong.

All ranks of a communicator learn at the same moment that it is ready ("HcclCommInitRootInfo success").  So these lines
show how far clocks differ.  Order within a host is trusted; across hosts only beyond the remaining difference.
"""

from __future__ import annotations

from statistics import median

from hccl_tools.common.record import Record
from tools.diagnosis.processes import Job, Process
from tools.logs import plog

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.logs.events import Event

MOMENT = 2.0  # seconds: lines of one process about one failure
_UNKNOWN = 5.0  # seconds that clocks may differ where no line tells
_KNOWN = 1.0


class Offsets(Record):
    """What to subtract from a host's times, in seconds, and how far the results can be trusted."""

    by_host: dict[str, float]
    tolerance: float

    def common(self, process: Process, time: float | None) -> float | None:
        """The time on the first host's clock."""
        return None if time is None else time - self.by_host.get(process.host or "", 0.0)


def offsets(job: Job) -> Offsets:
    """The offsets of all hosts against the one with most lines; hosts without such lines have none."""
    marks: dict[str, dict[str, float]] = {}  # by group, then by host
    for process in job.processes:
        for event in process.events:
            if event.kind == "together" and event.time is not None:
                hosts = marks.setdefault(event.values.get("group", ""), {})
                host = process.host or ""
                hosts[host] = max(hosts.get(host, event.time), event.time)
    counts: dict[str, int] = {}
    for hosts in marks.values():
        for host in hosts:
            counts[host] = counts.get(host, 0) + 1
    if len(counts) < 2:
        return Offsets(by_host={}, tolerance=_UNKNOWN if len(job.hosts()) > 1 else 0.0)
    first = max(counts, key=lambda host: (counts[host], host))
    found = {}
    for host in counts:
        differences = [hosts[host] - hosts[first] for hosts in marks.values() if host in hosts and first in hosts]
        if differences:
            found[host] = median(differences)
    return Offsets(by_host=found, tolerance=_KNOWN)


def said(event: Event) -> float | None:
    """The time that an event's own text gives, otherwise that of its line."""
    time = plog.seconds(event.values.get("when", ""))
    return event.time if time is None else time
