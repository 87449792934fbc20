"""Runs preflight.sh without hosts in a pod of a job, and --preflight of run_pod.sh; what a pod receives of it."""

from __future__ import annotations

import contextlib
import signal
import socket
import sys

from hccl_tools.common import typed
from hccl_tools.common.language import tr
from hccl_tools.common.quoting import harmless
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import REFUSED, Refusal, refused
from hccl_tools.common.words import clauses, one_line, short
from hccl_tools.hosts import elsewhere
from tools.attempts.wire import Lost
from tools.launch.hosts.launchers import digest_of
from tools.launch.request import MAX_RANKS
from tools.preflight import check, reach, words
from tools.preflight.difference import BLOCKS, LEVELS
from tools.preflight.pods import asked, hub, place
from tools.preflight.pods.hub import Hub

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from tools.launch.planned import Plan
    from tools.preflight.pods.entrance import Alike
    from tools.preflight.pods.place import Place
    from tools.preflight.words import Found

    Say = Callable[[str], None]

_MOST_OWN = 4  # differences of a pod in its line
_LONGEST_LINE, _LONGEST_TEXT = 4000, 2000  # characters


def run(
    job: check.Job,
    options: Sequence[str],
    table: str | None,
    wait: int | None,
    say: Say,
    tell: Callable[[Found], None],
    tell_line: Say,
) -> int:
    """The exit code, which is the same in all pods.  Raises Refusal.

    options: what all pods must have typed alike.  table: the rank table that was named.  tell: prints the whole.
    tell_line: prints what the other pods report instead.
    """
    with heeding_the_kubelet():
        here = _place(table, wait, say)
        if here.pods == 1 and here.number is not None:
            found = check.run(reach.over_ssh(reach.this_host(), {}, None, say), job)
            tell(found)
            return words.STATUS[words.verdict(found)]
        if here.is_hub:
            return words.STATUS[words.verdict(as_hub(here, job, options, say, tell))]
        result = as_spoke(here, job, options, say)
        tell_line(result.line)
        return words.STATUS[result.verdict]


def _place(table: str | None, wait: int | None, say: Say) -> Place:
    """That of this pod.  Raises Refusal, and states how a pod is looked at that does not know its job."""
    try:
        return place.of_environment(table, wait, say)
    except Refusal as refusal:
        alone = typed.command("scripts/preflight.sh", "-H", socket.gethostname())
        text = tr("to look at this pod alone: {command}", command=alone)
        raise Refusal(refusal.status, *refusal.lines, text) from refusal


def before(plan: Plan, job: check.Job, say: Say) -> Found | Result | None:
    """The findings of a launch's pods, all of them in rank 0's pod; None: the pods do not meet.  Raises Refusal."""
    here = place.of_plan(plan)
    if here is None:
        return None
    if here.is_hub:
        return as_hub(here, job, (), say, lambda _found: None)
    return as_spoke(here, job, (), say)


# ---- The check of the pods of a job, from the meeting to the result, in each of them.


def as_hub(place: Place, job: check.Job, options: Sequence[str], say: Say, took: Callable[[Found], None]) -> Found:
    """The findings, in the pod to which the others connect.  Raises Refusal.

    options: of the command, which must be the same in all pods.  took: gets the result before the others do.
    """
    meeting = Hub(place, alike(options), say)
    try:
        meeting.meet()
        if meeting.pods is None:
            text = tr("no pod has connected to port {port} within {seconds} s", port=place.port, seconds=place.wait)
            raise Refusal(REFUSED, clauses(text, tr("start the same command in all pods; see: kubectl get pods")))
        job = job.replace(ports=[place.scheduler] if place.scheduler else [])
        if place.number is not None:
            meeting.join(*hub.beside(asked.own(job, place)))
        names = meeting.names()
        found = check.run(reach.Way(hosts=names, slots={}, ask=meeting.ask, addresses=meeting.addresses()), job)
        stops = any(each.level == BLOCKS for each in found.differences)
        found = found.replace(late=meeting.is_late() and not stops)
        took(found)
        meeting.tell(for_pods(found, meeting.own_name()))
        return found
    finally:
        meeting.close()


def as_spoke(place: Place, job: check.Job, options: Sequence[str], say: Say) -> Result:
    """The hub's findings, in each other pod.  Raises Refusal."""
    job = job.replace(ports=[place.scheduler] if place.scheduler else [])
    told = hub.take_part(place, alike(options), asked.own(job, place), say)
    try:
        return read(told)
    except Lost as error:
        raise refused("the result of the check cannot be read: {reason}", reason=error) from error


def alike(options: Sequence[str]) -> Alike:
    """(what it is, its digest, its words) of what must be the same in all pods."""
    version = elsewhere.own()
    found = [(tr("the version of this project"), " ".join(version.words()), version.shown())]
    if options:
        found.append((tr("the command"), " ".join(options), short(" ".join(map(one_line, options)), 200)))
    return [(label, digest_of(text), shown) for label, text, shown in found]


@contextlib.contextmanager
def heeding_the_kubelet() -> Iterator[None]:
    """Lets SIGTERM end this process inside, also as process 1 of a container, where it has no default effect."""

    def end(number: int, _frame: object) -> None:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class Result(Record):
    """The result that a pod has received. late: see Found."""

    verdict: str
    late: bool
    hosts: int
    line: str
    findings: list[dict[str, str]]


def for_pods(found: Found, hub: str) -> Callable[[str], dict[str, Any]]:
    """Makes the result for one pod, by its name.  hub: the pod whose log has everything."""
    total = words.summary(found)
    common = {
        "verdict": words.verdict(found),
        "late": found.late,
        "hosts": len(found.hosts),
        "findings": words.findings(found),
    }
    return lambda pod: {**common, "line": _line(found, pod, hub, total)}


def _line(found: Found, pod: str, hub: str, total: str) -> str:
    """What differs here, and where to read the rest."""
    if words.verdict(found) == words.GOOD:
        return total
    own = list(_own(found, pod))
    more = len(own) - _MOST_OWN
    told = [*own[:_MOST_OWN], *([tr("and {number} more", number=more)] if more > 0 else [])]
    elsewhere = tr("the log of {pod} has all: {total}", pod=hub, total=total)
    return clauses(*(told or [tr("{host}: nothing was found on it", host=pod)]), elsewhere)


def _own(found: Found, pod: str) -> list[str]:
    """The lines of differences that name the pod, with its name alone."""
    lines = []
    for each in found.differences:
        groups = [group.replace(hosts=[pod]) for group in each.groups if pod in group.hosts]
        if groups:
            lines.append(one_line(words.line(each.replace(groups=groups), [pod, pod])))
    return lines


def read(told: Any) -> Result:
    """The Result in what the hub has sent.  Raises Lost if it has another form."""
    try:
        verdict, hosts, line, listed = (told[name] for name in ("verdict", "hosts", "line", "findings"))
        if (
            verdict not in words.STATUS
            or type(hosts) is not int
            or not 1 <= hosts <= MAX_RANKS
            or len(listed) > words.MOST_KEPT
        ):
            raise ValueError(verdict)
        return Result(
            verdict=verdict,
            late=told["late"] is True,
            hosts=hosts,
            line=_text(line, _LONGEST_LINE),
            findings=[_finding(each) for each in listed],
        )
    except (ValueError, TypeError, KeyError) as error:
        raise Lost(tr("it sent an unknown message")) from error


def _finding(each: Any) -> dict[str, str]:
    level, text, remedy = each["level"], each["text"], each["remedy"]
    if level not in LEVELS:
        raise ValueError(level)
    return {"level": level, "text": _text(text, _LONGEST_TEXT), "remedy": _text(remedy, _LONGEST_TEXT)}


def _text(text: Any, longest: int) -> str:
    if not isinstance(text, str):
        raise TypeError(text)
    return short(harmless(text), longest)
