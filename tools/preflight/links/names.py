"""The addresses of names, looked up in threads: a name server that does not answer stops nothing."""

from __future__ import annotations

import os
import threading

from hccl_tools.machine import addresses

_AT_ONCE = 16  # look-ups


class Names:
    """Look-ups of one check.  wakes: a descriptor that has something to read when one has ended."""

    def __init__(self) -> None:
        self.wakes, self._bell = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._found: dict[str, str | None] = {}
        self._asked: set[str] = set()
        self._turns = threading.BoundedSemaphore(_AT_ONCE)
        self._lock = threading.Lock()  # over the bell: a thread may end after the check

    def of(self, name: str) -> str | None:
        """The address of this name; None while it is not known.  A name without an address is asked again."""
        found = self._found.get(name)
        if found is None and name not in self._asked:
            self._asked.add(name)
            threading.Thread(target=self._look_up, args=[name], daemon=True).start()
        return found

    def _look_up(self, name: str) -> None:
        with self._turns:
            found = addresses.of([name])[name]
        with self._lock:
            self._found[name] = found
            if self._bell >= 0:
                os.write(self._bell, b"!")

    def take(self) -> None:
        """After `wakes` had something to read."""
        os.read(self.wakes, 1 << 12)

    def close(self) -> None:
        """Nobody waits for look-ups any more."""
        with self._lock:
            os.close(self._bell)
            os.close(self.wakes)
            self._bell = -1
