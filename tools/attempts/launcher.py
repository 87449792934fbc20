"""The connection to the launcher that started this process: orders arrive on stdin, events for it go to stdout."""

from __future__ import annotations

import json
import os
import select
import time

from hccl_tools.common.words import one_line
from hccl_tools.machine import programs
from tools.attempts.wire import FROM_HOSTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Left(Exception):
    """The launcher leaves the job, or has ended."""


class Launcher:
    """tools/features/hosts_attempts.py writes a line of JSON with the facts of the job, then an order a line."""

    def __init__(self) -> None:
        self._rest = b""
        self._facts = b""
        self.orders: list[list[Any]] = []  # that nobody has taken yet, in the form of a message
        while not self._facts:
            self._read()

    def facts(self) -> dict[str, Any]:
        """What the plan states about the job and its hosts (tools/launch/hosts/launchers.py)."""
        facts: dict[str, Any] = json.loads(self._facts)
        return facts

    def end_with_it(self, pid: int) -> None:
        """Makes SIGKILL of the launcher end this process, too, so that the other hosts notice."""
        programs.end_with_parent()
        if os.getppid() != pid:
            raise Left

    def take(self) -> list[list[Any]]:
        """The orders that wait, or that can be read now.  Raises Left at their end."""
        if not self.orders:
            self._read()
        taken, self.orders = self.orders, []
        return taken

    def wait(self, plug: int | None, event: int, seconds: float) -> bool:
        """Whether the file `plug` is ready for the event within `seconds`; orders that come meanwhile wait in `orders`.

        Raises Left, also when the job is to end: who waits has met no other host yet.
        """
        end = time.monotonic() + seconds
        poll = select.poll()
        poll.register(0, select.POLLIN)
        if plug is not None:
            poll.register(plug, event)
        while (left := end - time.monotonic()) > 0:
            ready = dict(poll.poll(left * 1000))
            if 0 in ready:
                self._read()
                if any(order[0] in ("stop", "leave") for order in self.orders):
                    raise Left
            elif ready:
                return True
        return False

    def say(self, word: str, *values: object) -> None:
        """Sends one event to the launcher, in one write."""
        line = f"{word} {' '.join(map(str, values))}"
        os.write(1, os.fsencode(one_line(line)) + b"\n")

    def _read(self) -> None:
        data = os.read(0, 1 << 16)
        if not data:
            raise Left
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if self._facts:
                self.orders.append(order(os.fsdecode(line)))
            else:
                self._facts = line


def order(line: str) -> list[Any]:
    """A line of the launcher as a message: ``failed 0 7 TEXT``."""
    kinds = FROM_HOSTS[line.partition(" ")[0]]
    word, *values = line.split(" ", len(kinds)) if kinds else [line]
    return [word, *(kind(value) for kind, value in zip(kinds, values))]
