"""What this process says on stderr.  A terminal that takes nothing, or nobody who reads, does not hold it up."""

from __future__ import annotations

import os
import select
import sys
from collections import deque
from contextlib import suppress

from hccl_tools.common.words import one_line

_WAITING = 100  # lines
_LONGEST = 1000  # characters


class Voice:
    """Lines, each in one write."""

    def __init__(self, name: str, before: str, descriptor: int = 2) -> None:
        """name: the script's; before: what goes before a line on a terminal."""
        self._name, self._before, self._descriptor = name, before, descriptor
        self._encoding = sys.stderr.encoding if sys.stderr else "utf-8"
        self._waiting: deque[str] = deque(maxlen=_WAITING)
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)

    def say(self, text: str) -> None:
        """Says it, or later, when somebody reads."""
        self._waiting.append(text)
        self.flush()

    def flush(self) -> None:
        """Says what waits.  Where there is no stderr any more, it is forgotten."""
        with suppress(OSError):
            while self._waiting and self._poll.poll(0):
                text = one_line(f"{self._name}: {self._waiting.popleft()}")[:_LONGEST]
                os.write(self._descriptor, f"{self._before}{text}\n".encode(self._encoding, "backslashreplace"))
