"""The process next to the launcher for --straggler and --metrics: it names slow ranks, and writes metrics.

  python tools/monitor/main.py LAUNCHER RUN MARK FACTOR FILE NAME BEFORE [SOCKET SECONDS]

tools/features/metrics.py starts it.  LAUNCHER is the launcher's process; this one ends with it.  RUN: the run's folder.
MARK: LAUNCH_JOB of the job's processes.  FACTOR and FILE: the values of the two options, or empty.  NAME and BEFORE:
the text before a message.  SOCKET and SECONDS are for --metrics :PORT: the descriptor of a listening socket, and
--stall_timeout.

Orders come on stdin, one per line:

  attempt N          an attempt begins; 0 is the first
  failed NAME STATUS a member of the job has failed
  again              a rank of this attempt is started again
  end STATUS         the job has ended: looks once more, then ends

It writes its lines to stderr itself, not through the launcher: a blocked terminal must not stop the launcher.
"""

from __future__ import annotations

import os
import select
import sys
from collections import deque
from contextlib import suppress

from hccl_tools.common.words import one_line

_WAITING = 100  # lines
_LONGEST = 1000  # characters


if not __package__:  # run as a file: see docs/architecture.md
    os.closerange(3, 256)  # pipes and locks of the launcher
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

import time

from hccl_tools.common.language import tr
from hccl_tools.machine import programs
from tools.monitor.formats import MetricsFile
from tools.monitor.monitor import Monitor
from tools.progress import lines
from tools.progress.tails import Patterns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from tools.monitor.served import Served

LEAST, MOST = 2.0, 600.0  # seconds between two looks
SHARE = 0.01  # of a processor


class Orders:
    """The orders that the launcher writes to the pipe `descriptor`."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._rest = descriptor, b""
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN)

    def wait(self, seconds: float) -> list[list[str]] | None:
        """The words of each order that has come, after this time at the latest; None: there will be no more."""
        if not self._poll.poll(seconds * 1000):
            return []
        data = os.read(self._descriptor, 4096)
        if not data:
            return None
        *whole, self._rest = (self._rest + data).split(b"\n")
        return [line.decode("utf-8", "replace").split() for line in whole if line.strip()]


def follow(monitor: Monitor, voice: Voice, launcher: int, orders: Orders) -> None:
    """Looks until the job has ended."""
    seconds = MOST
    while os.getppid() == launcher:
        new = orders.wait(seconds)
        if new is None:
            return
        begun = time.process_time()
        ended = list(obey(monitor, new))
        monitor.look(happened=bool(new), ended=ended[0] if ended else None)
        voice.flush()
        if ended:
            return
        seconds = min(MOST, max(LEAST, (time.process_time() - begun) / SHARE))


def obey(monitor: Monitor, orders: list[list[str]]) -> Iterator[int]:
    """Tells the monitor; yields the exit code if the job has ended."""
    for word, *values in orders:
        if word == "attempt":
            monitor.begin(int(values[0]))
        elif word == "failed":
            monitor.failed(values[0], int(values[1]))
        elif word == "again":
            monitor.started_again()
        elif word == "end":
            yield int(values[0])


def _served(run: str, descriptor: str, limit: str) -> Served:
    """The pages of --metrics :PORT."""
    import socket

    from tools.monitor.served import Served

    return Served(socket.socket(fileno=int(descriptor)), run, float(limit))


def main(arguments: list[str]) -> None:
    """Returns when the job has ended."""
    launcher, run_dir, mark, factor, path, name, before, *port = arguments
    programs.end_with_parent()
    with suppress(OSError):
        os.nice(5)  # the ranks come first
    voice = Voice(name, before)
    try:
        file = MetricsFile(path, os.path.basename(run_dir)) if path else None
        patterns = Patterns(lines.load())
        served = _served(os.path.basename(run_dir), *port) if port else None
        monitor = Monitor(run_dir, mark, patterns, voice.say, float(factor) if factor else None, file, served)
        follow(monitor, voice, int(launcher), Orders(0))
    except Exception as error:  # the job goes on
        reason = f"{type(error).__name__}: {one_line(error)}"
        voice.say(tr("--straggler and --metrics have ended: {reason}", reason=reason))


if __name__ == "__main__":
    main(sys.argv[1:])
    os._exit(0)


class Voice:
    """Lines on stderr, each in one write.  A terminal that takes nothing, or nobody who reads, does not hold it up."""

    def __init__(self, name: str, before: str, descriptor: int = 2) -> None:
        """name: the script's; before: what goes before a line on a terminal."""
        self._name, self._before, self._descriptor = name, before, descriptor
        self._encoding = sys.stderr.encoding if sys.stderr else "utf-8"
        self._waiting: deque[str] = deque(maxlen=_WAITING)
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)

    def say(self, text: str) -> None:
        """Prints it now, or later, when it is read."""
        self._waiting.append(text)
        self.flush()

    def flush(self) -> None:
        """Reports what waits.  Where there is no stderr any more, it is forgotten."""
        with suppress(OSError):
            while self._waiting and self._poll.poll(0):
                text = one_line(f"{self._name}: {self._waiting.popleft()}")[:_LONGEST]
                os.write(self._descriptor, f"{self._before}{text}\n".encode(self._encoding, "backslashreplace"))
