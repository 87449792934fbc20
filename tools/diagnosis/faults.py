"""Finds the known faults in the logs of a job, the most informative first."""

from __future__ import annotations

import re
from bisect import bisect_right

from hccl_tools.common.record import Record
from tools.diagnosis import deaths
from tools.diagnosis.processes import Job, Process
from tools.logs import aftermath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tools.diagnosis.verdict import Verdict
    from tools.logs.known_failures import KnownFailure
    from tools.logs.scan import Findings, Hit, Seen


_GENERAL = re.compile(r"ERRCODE_Custom|inner-error|E[A-Z0-9]9999")  # codes of a whole class of failures
_CRASH = re.compile(aftermath.CRASH)  # others crash, too, when their peer is gone
_WARNING = re.compile(r"\[WARN(?:ING)?\]|\bWARNING\b|^\s*(?:\[rank\d+\]:)?\[?W\d{4}\b")
_MESSAGE = 24  # lines of an exception's message, with the sections that MindSpore and CANN add


class Fault(Record):
    """A known failure in a log, and how often it is there."""

    entry: KnownFailure
    process: Process | None  # None: it is the log of a host
    path: str
    seen: Seen
    count: int
    general: bool  # it is of a whole class of failures, or its line only states what failed, in addition to a wait
    waited: bool  # its line only states that a wait ended, or what is torn down after a failure
    warning: bool  # its line is a warning
    raised: bool  # its line is of the exception that ended the program
    time: float | None  # of its line, otherwise of the last line before it that has one

    @property
    def rank(self) -> int | None:
        """The rank of the process, if it is known."""
        return self.process.rank if self.process else None


def faults_of(entries: list[KnownFailure], findings: list[Findings], job: Job, verdict: Verdict | None) -> list[Fault]:
    """One Fault for each code, the best explanation first.

    What only follows comes later: from another failure, from a wait for a rank that failed by itself, from what is
    told before it.  Then the special before the general, errors before warnings, root ranks before others, what an
    exception says before what came earlier, and the first in time.  Where a rank failed by itself, what others say of
    their waits explains nothing, and is left out.
    """
    found = all_of(entries, findings, job)
    follows = _follows(found)
    roots = {id(one) for one in verdict.roots} if verdict else set()
    failed = verdict is not None and bool(roots) and verdict.kind in ("error", "killed", "missing")
    places = {id(entry): place for place, entry in enumerate(entries)}

    def weight(fault: Fault) -> tuple[Any, ...]:
        here = id(fault.process) in roots
        return (
            failed and fault.waited and not here,
            fault.entry.vague,
            fault.entry.code in follows,
            fault.general,
            fault.warning,
            fault.waited,
            not here,
            not (fault.raised and (here or not roots)),
            fault.time is None,
            fault.time or 0.0,
            fault.seen.row if fault.process else 0,
            places[id(fault.entry)],
        )

    first: dict[str, Fault] = {}
    for fault in sorted(found, key=weight):
        if verdict and verdict.kind == "error" and roots and _is_beside(fault, id(fault.process) in roots):
            continue
        first.setdefault(fault.entry.code, fault)
    return list(first.values())


def _is_beside(fault: Fault, here: bool) -> bool:
    """Whether it explains nothing where a rank failed by itself: the waits of others, and noise of healthy ranks."""
    if here:
        return fault.warning and fault.entry.vague
    return fault.waited or fault.warning or bool(_CRASH.search(fault.seen.text))


def all_of(entries: list[KnownFailure], findings: list[Findings], job: Job) -> list[Fault]:
    """A Fault for each known failure in each log of the job, of its hosts, and of what started its ranks."""
    process_of = {id(one): process for process in [*job.processes, *job.witnesses] for one in process.findings}
    death = deaths.first(job)
    found = []
    for one in findings:
        if id(one) in process_of or one.kind == "host":
            times, waits = _times(one), any(event.kind == "waited" for event in one.events)
            process = process_of.get(id(one))
            for hit in one.hits:
                if not process or not all(_is_an_end(seen, one, process, death) for seen in hit.seen):
                    found.append(_fault(entries[hit.entry], process, one, hit, times, waits))
    return found


def _is_an_end(seen: Seen, one: Findings, process: Process, death: deaths.Death | None) -> bool:
    """Whether a line states how something was ended after a rank had failed."""
    return deaths.is_beside(seen.text, process) or deaths.is_later(seen, one, death)


def _fault(
    entry: KnownFailure, process: Process | None, one: Findings, hit: Hit, times: list[tuple[int, float]], waits: bool
) -> Fault:
    """The Fault of a hit, with the line that states most: an exception's, then an error's, then the first."""
    seen = min(hit.seen, key=lambda line: (not _is_raised(one, line), _is_warning(line), line.row))
    waited = aftermath.follows(seen.text)
    return Fault(
        entry=entry,
        process=process,
        path=one.path,
        seen=seen,
        count=hit.times,
        general=bool(_GENERAL.search(entry.code)) or (waits and not waited and aftermath.wraps(seen.text)),
        waited=waited,
        warning=_is_warning(seen),
        raised=_is_raised(one, seen),
        time=_time(one, seen, times),
    )


def _is_raised(one: Findings, line: Seen) -> bool:
    return one.exception is not None and 0 <= line.row - 1 - one.exception.row < _MESSAGE


def _is_warning(line: Seen) -> bool:
    return bool(_WARNING.search(line.text[:200]))


def _times(one: Findings) -> list[tuple[int, float]]:
    """(row, time) of the lines of a log that are known and have a time, by row."""
    rows = [(event.row, event.time) for event in one.events]
    rows += [(seen.row, seen.time) for hit in one.hits for seen in hit.seen]
    rows += [(seen.row, seen.time) for seen in (one.error, one.wrapper) if seen]
    return sorted((row, time) for row, time in rows if time is not None)


def _time(one: Findings, seen: Seen, times: list[tuple[int, float]]) -> float | None:
    if seen.time is not None:
        return seen.time
    place = bisect_right(times, (seen.row, float("inf")))
    return times[place - 1][1] if place else one.first


def _follows(found: list[Fault]) -> set[str]:
    """The codes that others of those found lead to; without those that lead to each other."""
    present = {fault.entry.code: fault.entry for fault in found}
    leads = {code: set(entry.leads_to) & present.keys() for code, entry in present.items()}
    return {later for code, all_later in leads.items() for later in all_later if code not in leads.get(later, ())}
