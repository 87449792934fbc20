"""Runs preflight.sh without hosts in a pod of a job, and --preflight of run_pod.sh."""

from __future__ import annotations

import contextlib
import hashlib
import signal
import socket
import sys

from hccl_tools.common import typed
from hccl_tools.common.language import tr
from hccl_tools.common.refusal import REFUSED, Refusal
from hccl_tools.common.words import clauses, one_line, short
from hccl_tools.hosts import elsewhere
from tools.attempts.wire import Lost
from tools.preflight import check, document, reach
from tools.preflight.difference import BLOCKS
from tools.preflight.pods import asked, place, result, spoke
from tools.preflight.pods.hub import Hub

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tools.launch.planned import Plan
    from tools.preflight.pods.entrance import Alike
    from tools.preflight.pods.place import Place
    from tools.preflight.pods.result import Result
    from tools.preflight.words import Found

    Say = Callable[[str], None]


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
            return document.STATUS[document.verdict(found)]
        if here.is_hub:
            return document.STATUS[document.verdict(as_hub(here, job, options, say, tell))]
        result = as_spoke(here, job, options, say)
        tell_line(result.line)
        return document.STATUS[result.verdict]


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
    hub = Hub(place, alike(place, options), say)
    try:
        hub.meet()
        if hub.pods is None:
            text = tr("no pod has connected to port {port} within {seconds} s", port=place.port, seconds=place.wait)
            raise Refusal(REFUSED, clauses(text, tr("start the same command in all pods; see: kubectl get pods")))
        job = job.replace(ports=[place.scheduler] if place.scheduler else [])
        if place.number is not None:
            hub.join(*spoke.beside(asked.own(job, place)))
        names = hub.names()
        found = check.run(reach.Way(hosts=names, slots={}, ask=hub.ask, addresses=hub.addresses()), job)
        stops = any(each.level == BLOCKS for each in found.differences)
        found = found.replace(late=hub.is_late() and not stops)
        took(found)
        hub.tell(result.for_pods(found, hub.own_name()))
        return found
    finally:
        hub.close()


def as_spoke(place: Place, job: check.Job, options: Sequence[str], say: Say) -> Result:
    """The hub's findings, in each other pod.  Raises Refusal."""
    job = job.replace(ports=[place.scheduler] if place.scheduler else [])
    told = spoke.take_part(place, alike(place, options), asked.own(job, place), say)
    try:
        return result.read(told)
    except Lost as error:
        raise Refusal(REFUSED, tr("the result of the check cannot be read: {reason}", reason=error)) from error


def alike(place: Place, options: Sequence[str]) -> Alike:
    """(what it is, its digest, its words) of what must be the same in all pods."""
    version = elsewhere.own()
    found = [(tr("the version of this project"), " ".join(version.words()), version.shown())]
    if options:
        found.append((tr("the command"), " ".join(options), short(" ".join(map(one_line, options)), 200)))
    return [(label, _digest(text), shown) for label, text, shown in found]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


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
