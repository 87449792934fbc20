"""Runs on every host of a check, by hosts/ask.py: answers with the facts of the catalogue, and changes nothing there.

A launch of many hosts waits for it, so it imports little.  A collector itself imports the modules that few hosts need.

An unreachable file server blocks a process in the kernel, where no signal ends it.  So no collector runs in this
process.  A fork takes as long as many facts.  So one child runs the collectors that should take no time, one after the
other.  If one of them hangs or ends that child, those after it get a child each.  A child that does not end is left
behind; it has none of our pipes.
"""

from __future__ import annotations

import gc
import os
import sys

if not __package__:  # run as a file: import the packages hccl_tools and tools from the project
    gc.disable()  # it lives for milliseconds, and looking for garbage takes some of them
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

import contextlib
import functools
import json
import select
import signal
import time

from hccl_tools.common.language import tr
from hccl_tools.common.record import Row
from hccl_tools.hosts import answering
from hccl_tools.machine import programs
from tools.preflight import question
from tools.preflight.facts import files, network, npus, system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from tools.preflight.difference import Value
    from tools.preflight.question import Question

QUICK, SLOW = 5.0, 30.0  # seconds for what reads files, and for what asks the driver
SECONDS = 40  # for all of it, with the start of Python on a busy host

# {collector: (its function, its limit)}; catalog/rows.py states what it means if one gives up.
COLLECTORS: Mapping[str, tuple[Callable[[Question], Mapping[str, Value]], float]] = {
    "software": (system.collect_software, QUICK),
    "bytecode": (system.collect_bytecode, QUICK),
    "system": (system.collect, QUICK),
    "limits": (system.collect_limits, QUICK),
    "clock": (system.collect_clock, QUICK),
    "disk": (files.collect_disk, QUICK),
    "log_folder": (files.collect_log_folder, QUICK),
    "files": (files.collect, QUICK),
    "data": (files.collect_data, QUICK),
    "environment": (files.collect_environment, QUICK),
    "network": (network.collect, QUICK),
    "npus": (npus.collect, SLOW),
    "gpus": (npus.collect_gpus, SLOW),
    "table": (npus.collect_table, SLOW),
}
_MOST_BYTES = 1 << 20  # of the facts of one collector
_LAST = 0.2  # seconds that a killed child has to end
_OPEN = (0, 1, 2)  # what a child must not keep


def facts(asked: Question) -> dict[str, Any]:
    """The facts of this host, and {collector: why it has given none}."""
    collectors = {
        name: Collector(functools.partial(collect, asked), seconds, alone=seconds == SLOW and not asked.quick)
        for name, (collect, seconds) in COLLECTORS.items()
    }
    wanted = asked.links
    if wanted is not None:
        from tools.preflight import links  # a quick check has none

        collect = functools.partial(links.listen_and_connect, wanted)
        collectors["links"] = Collector(lambda: {"links": collect()}, wanted["seconds"] + QUICK, alone=True)
    found, failed = run_collectors(collectors)
    return {"links": found.pop("links", None), "facts": found, "failed": failed}


def main() -> int:
    """Answers the host that asks."""
    return answering.answer(lambda _host, asked, _tell: facts(question.read(asked)))


class Collector(Row):
    """A function that gives facts, and how long it may take.  alone: it takes long, and gets a child of its own."""

    collect: Callable[[], Mapping[str, Any]]
    seconds: float
    alone: bool = False


class _Child:
    """A process that runs collectors.  `said` has the line of each that has ended; `left` are the others."""

    def __init__(self, collectors: Mapping[str, Collector]) -> None:
        self.left = list(collectors.items())
        self.process, self.pipe = _begin([collector for _, collector in self.left])
        self.said: dict[str, bytes] = {}
        self.has_ended = False
        self._rest = bytearray()
        self.deadline = time.monotonic() + self.left[0][1].seconds

    def take(self) -> None:
        """The next bytes that it writes."""
        data = os.read(self.pipe, 1 << 16)
        *lines, rest = (self._rest + data).split(b"\n")
        for line in lines:
            name, _ = self.left.pop(0)
            self.said[name] = bytes(line)
        self._rest = bytearray(rest)
        self.has_ended = not data or not self.left or len(rest) > _MOST_BYTES
        if lines and self.left:
            self.deadline = time.monotonic() + self.left[0][1].seconds

    @property
    def is_late(self) -> bool:
        """Whether the collector that runs has had its time."""
        return not self.has_ended and self.deadline <= time.monotonic()


def run_collectors(collectors: Mapping[str, Collector]) -> tuple[dict[str, Value], dict[str, str]]:
    """(the facts of all, {collector: why it has given none}).  A fact has the first value that is known."""
    together = {name: collector for name, collector in collectors.items() if not collector.alone}
    groups = [{name: collector} for name, collector in collectors.items() if collector.alone]
    told = dict(_told([*([together] if together else []), *groups]))
    facts: dict[str, Value] = {}
    failed: dict[str, str] = {}
    for name in collectors:
        found, why = _result(told[name])
        if why:
            failed[name] = why
        facts.update({key: value for key, value in found.items() if facts.get(key) is None})
    return facts, failed


def _told(groups: Sequence[Mapping[str, Collector]]) -> Iterator[tuple[str, bytes | str]]:
    """(collector, the line that it has said, or why there is none) of each, with a child for each group."""
    children = {child.pipe: child for child in map(_Child, groups)}
    poll = select.poll()
    for pipe in children:
        poll.register(pipe, select.POLLIN)
    while children:
        left = min(child.deadline for child in children.values()) - time.monotonic()
        for pipe, _ in poll.poll(max(0, left * 1000)):
            children[pipe].take()
        for child in [child for child in children.values() if child.has_ended or child.is_late]:
            poll.unregister(child.pipe)
            del children[child.pipe]
            yield from child.said.items()
            if child.left:
                name, collector = child.left[0]
                late = tr("no answer within {seconds} s", seconds=collector.seconds)
                yield name, late if child.is_late else tr("it ended without an answer")
            _end(child)
            for more in (_Child(dict([each])) for each in child.left[1:]):
                children[more.pipe] = more
                poll.register(more.pipe, select.POLLIN)


def _begin(collectors: Sequence[Collector]) -> tuple[int, int]:
    """(the process that runs these, the pipe on which it states a line for each)."""
    import ctypes  # noqa: F401 - once, and not in every child

    ours, its = os.pipe()
    process = os.fork()
    if process:
        os.close(its)
        return process, ours
    status = 1
    try:
        programs.end_with_parent()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in _OPEN:
            os.dup2(nowhere, descriptor)
        for collector in collectors:
            _write(its, _collected(collector) + b"\n")
        status = 0
    finally:
        os._exit(status)


def _collected(collector: Collector) -> bytes:
    """The facts as JSON; a mistake in one collector must not cost the facts of the others."""
    try:
        told: Any = {"facts": collector.collect()}
    except Exception as error:
        told = {"error": f"{type(error).__name__}: {error}"}
    return json.dumps(told, default=list).encode()


def _write(pipe: int, data: bytes) -> None:
    while data:
        data = data[os.write(pipe, data) :]


def _end(child: _Child) -> None:
    """The child is gone afterwards, unless the kernel keeps it."""
    late = child.is_late
    os.close(child.pipe)
    with contextlib.suppress(ProcessLookupError):
        os.kill(child.process, signal.SIGKILL)
    if late:
        with contextlib.suppress(AttributeError, OSError):  # an old kernel has none, nor has a Python built for such
            handle = os.pidfd_open(child.process)
            select.select([handle], [], [], _LAST)
            os.close(handle)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(child.process, os.WNOHANG if late else 0)


def _result(told: bytes | str) -> tuple[Mapping[str, Value], str]:
    """(the facts of a collector, why there are none)."""
    if isinstance(told, str):
        return {}, told
    found = json.loads(told)
    return found.get("facts", {}), found.get("error", "")


if __name__ == "__main__":
    os._exit(main())  # all is written; the end of Python would take longer than half of the facts
