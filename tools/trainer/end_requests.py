"""Receives a request to end in this rank: SIGTERM, or SIGUSR1 of a batch system.

MindSpore sends SIGTERM to its own process when it loses the job, and our launcher sends it to all ranks after a
failure.  Then nothing can be saved together, and the rank ends at once.  So under our launcher SIGTERM is a request
only if a file states it.  The launcher or the rank's agent has written this file before
(tools/trainer/request_file.py).

A rank may wait inside MindSpore for others that are gone.  Python runs no handler of a signal then, but the kernel
writes the signal's number into a pipe, and a thread reads it.  Nothing here imports MindSpore.
"""

from __future__ import annotations

import os
import signal
import threading
import time

from tools.trainer import request_file

PATIENCE = 2.0  # seconds: a batch system may signal a rank before its launcher, which then writes the file
LOOK_EVERY = 0.02
_ASKING = (signal.SIGTERM, signal.SIGUSR1)


class Requests:
    """asked: this rank's end was requested.  file: the launcher's; empty: without a launcher each signal counts."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.asked = False
        self._wakes = -1

    def heed(self) -> None:
        """Makes these signals requests; called in the main thread, and again: MindSpore may have replaced us."""
        if self._wakes < 0:
            reads, self._wakes = os.pipe()
            os.set_blocking(self._wakes, False)
            os.register_at_fork(after_in_child=self._forget)
            threading.Thread(target=self._listen, args=(reads,), name="requests", daemon=True).start()
        for number in _ASKING:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, _nothing)
        signal.set_wakeup_fd(self._wakes, warn_on_full_buffer=False)

    @staticmethod
    def _forget() -> None:
        """In a worker of the data loader: a signal ends it, and does not concern its parent."""
        signal.set_wakeup_fd(-1)
        for number in _ASKING:
            if signal.getsignal(number) is _nothing:
                signal.signal(number, signal.SIG_DFL)

    def _listen(self, reads: int) -> None:
        while numbers := os.read(reads, 64):
            for number in numbers:
                if number in _ASKING and not self.asked:
                    self._take(number)

    def _take(self, number: int) -> None:
        if number == signal.SIGUSR1 or not self.file or self._asks():
            self.asked = True
        else:
            os._exit(128 + number)  # as without a handler

    def _asks(self) -> bool:
        """Whether SIGTERM is a request, as the file states."""
        end = time.monotonic() + PATIENCE
        while (found := request_file.read(self.file)) is None and time.monotonic() < end:
            time.sleep(LOOK_EVERY)
        return bool(found)


def of_this_rank() -> Requests:
    """The requests of the launcher that has started this process, if one has."""
    folder = os.environ.get("LOG_DIR", "") if "LAUNCH_JOB" in os.environ else ""
    return Requests(request_file.path(folder) if folder else "")


def _nothing(*_: object) -> None:
    """A handler: the number of the signal is in the pipe."""
