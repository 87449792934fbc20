"""The known faults in the logs of a job, what explains most first."""

from __future__ import annotations

from hccl_tools.common.record import Record
from tools.diagnosis.processes import Job, Process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tools.diagnosis.verdict import Verdict
    from tools.logs.known_failures import KnownFailure
    from tools.logs.scan import Findings, Seen


class Fault(Record):
    """A known failure in a log, and how often it is there."""

    entry: KnownFailure
    process: Process | None  # None: it is the log of a host
    path: str
    seen: Seen
    count: int

    @property
    def rank(self) -> int | None:
        """Of the process, as far as it is known."""
        return self.process.rank if self.process else None


def faults_of(entries: list[KnownFailure], findings: list[Findings], job: Job, verdict: Verdict | None) -> list[Fault]:
    """One Fault for each code: that of a root rank, else the earliest; what follows from another one comes later."""
    found = all_of(entries, findings, job)
    follows = _follows(found)
    roots = {id(one) for one in verdict.roots} if verdict else set()
    places = {id(entry): place for place, entry in enumerate(entries)}

    def weight(fault: Fault) -> tuple[Any, ...]:
        time = fault.seen.time
        here = id(fault.process) in roots
        return (
            fault.entry.vague,
            fault.entry.code in follows,
            not here,
            time is None,
            time or 0.0,
            places[id(fault.entry)],
        )

    first: dict[str, Fault] = {}
    for fault in sorted(found, key=weight):
        first.setdefault(fault.entry.code, fault)
    return list(first.values())


def all_of(entries: list[KnownFailure], findings: list[Findings], job: Job) -> list[Fault]:
    """A Fault for each known failure in each log."""
    process_of = {id(one): process for process in job.processes for one in process.findings}
    kept = set(process_of)
    found = []
    for one in findings:
        if id(one) in kept or one.kind == "host":
            for hit in one.hits:
                fault = Fault(
                    entry=entries[hit.entry],
                    process=process_of.get(id(one)),
                    path=one.path,
                    seen=hit.seen[0],
                    count=hit.times,
                )
                found.append(fault)
    return found


def _follows(found: list[Fault]) -> set[str]:
    """The codes that others of those found lead to; without those that lead to each other."""
    present = {fault.entry.code: fault.entry for fault in found}
    leads = {code: set(entry.leads_to) & present.keys() for code, entry in present.items()}
    return {later for code, all_later in leads.items() for later in all_later if code not in leads.get(later, ())}
