"""Runs the collectors of a host's facts, each in a process of its own, and waits for none longer than its limit.

A file server that is gone holds up a process in the kernel, where no signal ends it.  So each collector gets a child.
Nobody waits for a child that does not end; it has none of our pipes.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import selectors
import signal
import time

from hccl_tools.common.language import tr
from hccl_tools.common.record import Row
from hccl_tools.machine import programs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from tools.preflight.difference import Value

_MOST_BYTES = 1 << 20  # of the facts of one collector
_LAST = 0.2  # seconds that a killed child has to end
_OPEN = (0, 1, 2)  # what a child must not keep


class Collector(Row):
    """A function that gives facts, and how long it may take."""

    collect: Callable[[], Mapping[str, Any]]
    seconds: float


class _Child:
    """A collector that runs."""

    def __init__(self, collector: Collector, process: int, pipe: int) -> None:
        self.process, self.pipe, self.seconds = process, pipe, collector.seconds
        self.deadline = time.monotonic() + collector.seconds
        self.said = bytearray()
        self.is_late = False


def run(collectors: Mapping[str, Collector]) -> tuple[dict[str, Value], dict[str, str]]:
    """(the facts of all, {collector: why it has given none}).  A fact has the first value that is known."""
    children = {name: _begin(collector) for name, collector in collectors.items()}
    _read(list(children.values()))
    facts: dict[str, Value] = {}
    failed: dict[str, str] = {}
    for name, child in children.items():
        found, why = _result(child)
        if why:
            failed[name] = why
        facts.update({key: value for key, value in found.items() if facts.get(key) is None})
    return facts, failed


def _begin(collector: Collector) -> _Child:
    import ctypes  # noqa: F401 - once, and not in every child

    ours, its = os.pipe()
    process = os.fork()
    if process:
        os.close(its)
        os.set_blocking(ours, False)
        return _Child(collector, process, ours)
    status = 1
    try:
        programs.end_with_parent()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in _OPEN:
            os.dup2(nowhere, descriptor)
        _write(its, _collected(collector))
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


def _read(children: list[_Child]) -> None:
    """Reads what the children say until each has ended, or its time is over."""
    with selectors.DefaultSelector() as selector:
        for child in children:
            selector.register(child.pipe, selectors.EVENT_READ, child)
        while selector.get_map():
            waiting = [key.data for key in selector.get_map().values()]
            left = min(child.deadline for child in waiting) - time.monotonic()
            for key, _ in selector.select(max(0, left)):
                if not _more(key.data):
                    selector.unregister(key.fd)
            for child in waiting:
                if child.deadline <= time.monotonic() and child.pipe in selector.get_map():
                    selector.unregister(child.pipe)
                    child.is_late = True


def _more(child: _Child) -> bool:
    """Takes what the child has said; False: it has ended."""
    data = os.read(child.pipe, 1 << 16)
    child.said += data
    return bool(data) and len(child.said) <= _MOST_BYTES


def _result(child: _Child) -> tuple[Mapping[str, Value], str]:
    """(its facts, why there are none).  The child is gone afterwards, unless the kernel keeps it."""
    os.close(child.pipe)
    with contextlib.suppress(ProcessLookupError):
        os.kill(child.process, signal.SIGKILL)
    _reap(child)
    if child.is_late:
        return {}, tr("no answer within {seconds} s", seconds=child.seconds)
    try:
        told = json.loads(child.said.decode())
    except ValueError:
        return {}, tr("it ended without an answer")
    return told.get("facts", {}), told.get("error", "")


def _reap(child: _Child) -> None:
    """Waits for the end of a child that was killed, but not for long: the kernel may keep it."""
    if child.is_late:
        with contextlib.suppress(OSError):  # an old kernel has none
            handle = os.pidfd_open(child.process)
            select.select([handle], [], [], _LAST)
            os.close(handle)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(child.process, os.WNOHANG if child.is_late else 0)
