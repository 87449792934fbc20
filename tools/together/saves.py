"""Detects which processes write the weights: the kernel reports when a file is opened in a folder that has some.

/proc then shows which process has it open. Small weights are written within milliseconds, so occasional looks would
hardly ever see it.
"""

from __future__ import annotations

import ctypes
import os
import select
import time
from collections import deque

from tools.together import files, findings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tools.together.findings import Row

ENOUGH = 20  # saves that are watched: on a busy machine small ones are often over before we look
_CREATED, _OPENED, _WRITTEN = 0x100, 0x20, 0x8  # inotify(7): IN_CREATE, IN_OPEN, IN_CLOSE_WRITE
_DEPTH, _MOST_ENTRIES, _MOST_FOLDERS = 3, 2000, 16
_EVENTS = 1 << 16  # bytes of them
_PROCESSES = 10.0  # seconds, after which the ranks' processes are looked for again


def folders(top: str, without: str, since: float) -> list[str]:
    """Folders below `top` in which weights were written since then, of the first entries that are found.

    without: a folder that is left out; since: seconds since 1970.
    """
    found: list[str] = []
    waiting, entries = deque([(top, 0)]), 0
    while waiting and entries < _MOST_ENTRIES and len(found) < _MOST_FOLDERS:
        folder, depth = waiting.popleft()
        try:
            with os.scandir(folder) as names:
                for entry in names:
                    entries += 1
                    if entry.is_dir(follow_symlinks=False):
                        if depth < _DEPTH and os.path.abspath(entry.path) != without:
                            waiting.append((entry.path, depth + 1))
                    elif entry.name.endswith(files.ENDS) and folder not in found and _written_at(entry) >= since:
                        found.append(folder)
                    if entries >= _MOST_ENTRIES:
                        break
        except OSError:
            continue  # it cannot be read, or is gone
    return found


def _written_at(entry: os.DirEntry[str]) -> float:
    """Seconds since 1970; 0 for a link that leads nowhere, and for a file that is gone."""
    try:
        return entry.stat().st_mtime
    except OSError:
        return 0.0


def watch(places: Sequence[str], job: str, seconds: float, lifeline: int = -1) -> Iterator[Row | int]:
    """Files that two ranks write in these folders; at last how many were saved meanwhile, by whomever.

    It takes so many seconds, or until there were enough saves, or until the pipe `lifeline` ends.
    job: LAUNCH_JOB of the ranks' processes.
    """
    events = _Events(places, lifeline)
    writers: dict[str, set[int]] = {}
    told: set[str] = set()
    saves, end, ranks_at = 0, time.monotonic() + seconds, -_PROCESSES
    ranks: list[tuple[str, int]] = []
    while saves < ENOUGH and not events.over and (left := end - time.monotonic()) > 0:
        is_new = time.monotonic() >= ranks_at + _PROCESSES
        if is_new:
            ranks, ranks_at = list(files.processes(job)), time.monotonic()
            if not ranks:
                break  # the job has ended
        touched, number = events.wait(min(left, _PROCESSES))
        saves += number
        for pid, rank in ranks if touched or is_new else ():
            for path in files.written(pid):
                writers.setdefault(path, set()).add(rank)
        for path, who in writers.items():
            if len(who) > 1 and path not in told:
                told.add(path)
                yield findings.row("one-file", who, path=path)
    events.close()
    yield saves


class _Events:
    """What the kernel reports of the folders.  Raises OSError where it tells nothing.

    over: what is seen is not waited for any more
    """

    def __init__(self, places: Sequence[str], lifeline: int) -> None:
        self.over = False
        libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        if self._descriptor < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        for place in places:
            libc.inotify_add_watch(self._descriptor, os.fsencode(place), _CREATED | _OPENED | _WRITTEN)
        self._poll = select.poll()
        self._poll.register(self._descriptor, select.POLLIN)
        if lifeline >= 0:
            self._poll.register(lifeline, 0)  # its end is reported anyway

    def wait(self, seconds: float) -> tuple[bool, int]:
        """Waits for one event, for at most this long.

        Returns whether a file of weights was opened or made, and how many were written to their end.
        """
        ready = [descriptor for descriptor, _ in self._poll.poll(seconds * 1000)]
        self.over = any(descriptor != self._descriptor for descriptor in ready)
        if self._descriptor not in ready:
            return False, 0
        data, at, saves, touched = os.read(self._descriptor, _EVENTS), 0, 0, False
        while at + 16 <= len(data):
            mask = int.from_bytes(data[at + 4 : at + 8], "little")
            length = int.from_bytes(data[at + 12 : at + 16], "little")
            name = os.fsdecode(data[at + 16 : at + 16 + length].rstrip(b"\0"))
            is_weights = name.endswith(files.ENDS)
            touched |= is_weights
            saves += bool(mask & _WRITTEN) and is_weights
            at += 16 + length
        return touched, saves

    def close(self) -> None:
        os.close(self._descriptor)
