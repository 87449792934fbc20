"""Determines the failure of each process itself, and whether it only waited for others that did not come.

Errors are of three kinds, see tools/logs/aftermath.py: those of the process itself, those that follow from a wait or a
tear-down, and wrappers. A wrapper counts for the process itself only if nothing shows that it waited.

Times in logs are local, and hosts differ by seconds, or by hours if a zone is wrong.  All ranks of a communicator learn
at the same moment that it is ready ("HcclCommInitRootInfo success").  So these lines show how far clocks differ.  Order
within a host is trusted; across hosts only beyond the remaining difference.
"""

from __future__ import annotations

import re
from statistics import median

from hccl_tools.common.record import Record
from tools.diagnosis.processes import Job, Process
from tools.logs import aftermath, plog
from tools.logs.scan import Seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from tools.logs.events import Event
    from tools.logs.scan import Findings

CLEAR, UNCLEAR, WEAK = 0, 1, 2  # how surely an error is of the process itself
_DETAILS = 16  # lines after an exception, or after an error, that may be the text that it wraps
_LAST = 200  # lines at the end of a log: an exception before them may not have ended the program
_WAITS = frozenset(("link", "transport", "p2p", "notify", "aicpu", "root", "no_answer", "waited", "not_built"))
_MAY_WRAP = re.compile(
    r"(?:\w+\.)*(?:RuntimeError|Exception|SystemError|OSError|TimeoutError|Dist\w*Error|\w*Exception"
    r"|EOFError|Broken\w+|Connection\w*Error|AssertionError|Empty|CancelledError)\b"
)
_CRASH = re.compile(aftermath.CRASH)
_CODE = re.compile(aftermath.CODE)
_NUMBERS = re.compile(r"0x[0-9a-fA-F]+|\d+")
_PLACES = re.compile(r"^.*?\]:? ?(?=\w)|(?<=')(?:/[^'/]{1,255})+(?=')|(?:/[\w.-]+)+/")
MOMENT = 2.0  # seconds: lines of one process about one failure
_UNKNOWN = 5.0  # seconds that clocks may differ where no line tells
_KNOWN = 1.0


class Failure(Record):
    """The first error of a process that is its own."""

    process: Process
    seen: Seen
    path: str  # of the log that has it
    clear: int  # CLEAR; UNCLEAR: it may follow from a wait; WEAK: a wrapper, and no line states about what
    raised: bool  # an exception of Python
    may_go_on: bool  # a program may catch it, or go on after it: it has not ended this one for sure
    known: bool  # what it is, is known: a failure of configs/, a code of CANN, an exception that wraps no other

    @property
    def alike(self) -> str:
        """The text without numbers, folders and quoted paths: equal for ranks with the same failure."""
        text = self.seen.text.partition("\n")[0][-600:]
        return _NUMBERS.sub("#", _PLACES.sub("", text))[:200]


def waited(process: Process) -> bool:
    """Whether the process waited for others that did not come, or lost them."""
    if any(_is_wait(event) for event in process.events):
        return True
    texts = (one.exception.text for one in process.findings if one.exception is not None)
    return any(aftermath.follows(text) and not aftermath.STOPPED.search(text) for text in texts)


def is_quiet(process: Process) -> bool:
    """Whether its logs have no sign of trouble at all."""
    if process.errors or any(one.exception is not None for one in process.findings):
        return False
    return not waited(process) and failure_of(process) is None


def failure_of(process: Process) -> Failure | None:
    """Its own first error; None: it has none, or all follow from waits."""
    waits = [event for event in process.events if _is_wait(event)]
    times = [event.time for event in waits if event.time is not None]
    first_wait = min(times) if times else None
    found: list[tuple[int, bool, float, int, Failure]] = []
    for one in process.findings:
        rows = sorted(event.row for event in one.events if _is_wait(event))
        details = {event.row for event in one.events if event.kind == "waited" and not plog.parse(event.text)}
        own = {event.row for event in one.events if event.kind == "own"}
        known = {seen.row for hit in one.hits for seen in hit.seen}
        end = one.rows - _LAST
        for seen, raised, weak in _errors(one):
            clear = _how_clear(seen, raised, weak, rows, details, first_wait, bool(waits))
            if clear is not None:
                made = Failure(
                    process=process,
                    seen=seen,
                    path=one.path,
                    clear=clear,
                    raised=raised,
                    may_go_on=seen.row in own and not raised,
                    known=(not raised or seen.row > end) and _is_known(seen, raised, known),
                )
                found.append((clear, seen.time is None, seen.time or 0.0, seen.row, made))
    return min(found, key=lambda row: row[:4])[4] if found else None


def _is_wait(event: Event) -> bool:
    return event.kind in _WAITS and not (event.kind == "link" and event.values["status"].strip() == "connected")


def _errors(one: Findings) -> Iterator[tuple[Seen, bool, bool]]:
    """(line, whether it is an exception of Python, whether it is a wrapper) for each error that may be its own."""
    if one.error:
        yield one.error, False, False
    if one.wrapper:
        yield one.wrapper, False, True
    raised = one.exception
    if raised is not None and not aftermath.follows(raised.text):
        yield Seen(raised.time, raised.row + 1, raised.text), True, aftermath.wraps(raised.text)
    for event in one.events:
        if event.kind in ("code", "crash", "own") and not aftermath.follows(event.text):
            yield Seen(event.time, event.row, event.text), False, False


def _is_known(seen: Seen, raised: bool, known: set[int]) -> bool:
    if raised and not _MAY_WRAP.match(seen.text):
        return True
    if _CRASH.search(seen.text):
        return False  # others crash, too, when their peer is gone
    return seen.row in known or bool(_CODE.search(seen.text))


def _how_clear(
    seen: Seen, raised: bool, weak: bool, rows: list[int], details: set[int], first_wait: float | None, waits: bool
) -> int | None:
    """How surely an error is the process's own; None: it follows from a wait, or wraps one."""
    if any(seen.row < row <= seen.row + _DETAILS for row in details) and (not raised or _MAY_WRAP.match(seen.text)):
        return None
    if weak:
        return None if waits else WEAK
    if seen.time is not None and first_wait is not None:
        return CLEAR if seen.time < first_wait - MOMENT else None
    if rows and (rows[0] < seen.row) and not raised:
        return None
    return UNCLEAR if waits else CLEAR  # without a time, nothing tells which of the two was first


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


def said_time(event: Event) -> float | None:
    """The time that an event's own text gives, otherwise that of its line."""
    time = plog.seconds(event.values.get("when", ""))
    return event.time if time is None else time
