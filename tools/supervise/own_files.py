"""Copies into a rank's log what the processes that it left write to files of their own.

A start script may run ``python train.py > log.txt 2>&1 &``.  Without the copy, the launcher, its report and everything
else that reads the rank's log would see nothing of the training.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable

MOST = 4 << 20  # bytes of a file at one look; of more than that only the end is copied
FILES = 8  # of one rank


class Outputs:
    """Files that are copied into one log."""

    def __init__(self, log: str) -> None:
        self._log = log
        self._files: dict[tuple[int, int], list[int]] = {}  # (device, inode) -> [descriptor, bytes that were copied]
        self._names: dict[tuple[int, int], str] = {}
        self._of_process: dict[int, list[tuple[int, int]]] = {}
        self._last: tuple[int, int] | None = None  # the file whose text is the last in the log

    def follow(self, pids: Iterable[int]) -> None:
        """Follows also the files to which the stdout and stderr of these processes lead."""
        for pid in pids:
            for stream in (1, 2):
                if len(self._files) < FILES:
                    self._follow(pid, f"/proc/{pid}/fd/{stream}", f"/proc/{pid}/fdinfo/{stream}")

    def _follow(self, pid: int, path: str, info: str) -> None:
        try:
            about, own = os.stat(path), os.stat(self._log)
            key = about.st_dev, about.st_ino
            if not stat.S_ISREG(about.st_mode) or key in self._files or key == (own.st_dev, own.st_ino):
                return
            begin = about.st_size if _adds(info) else 0
            self._names[key] = os.readlink(path)
            self._files[key] = [os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), begin]
            self._of_process.setdefault(pid, []).append(key)
        except OSError:
            return  # the process or the log is gone, or the file may not be read

    def copy(self) -> None:
        """Copies what has come since the last look."""
        if not self._files:
            return
        try:
            log = os.open(self._log, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        except OSError:
            return  # it was moved or removed
        try:
            for key, file in self._files.items():
                self._copy(log, key, file)
        except OSError:
            return  # the disk is full: the launch states this of its logs
        finally:
            os.close(log)

    def _copy(self, log: int, key: tuple[int, int], file: list[int]) -> None:
        """Before the text of a file is its name, unless more of the same file is there already."""
        descriptor, done = file
        size = os.fstat(descriptor).st_size
        if size < done:
            done = 0  # it was cut
        if size > done and key != self._last:
            os.write(log, os.fsencode(f"(what follows is from {self._names[key]})\n"))
            self._last = key
        if size - done > MOST:
            os.write(log, b"(%d bytes are left out here)\n" % (size - done - MOST))
            done = size - MOST
        while done < size:
            block = os.pread(descriptor, min(size - done, 1 << 20), done)
            if not block:
                break
            os.write(log, block)
            done += len(block)
        file[1] = done

    def close(self, failed: int | None = None) -> None:
        """Copies the rest, that of the failed process last: readers look at the end of a log."""
        for key in self._of_process.get(failed or 0, ()):
            self._files[key] = self._files.pop(key)
        self.copy()
        for descriptor, _ in self._files.values():
            os.close(descriptor)
        self._files.clear()


def _adds(info: str) -> bool:
    """Whether the file was opened for adding: then what is in it may be of an earlier run."""
    with open(info, "rb") as file:
        flags = next((line.split()[1] for line in file if line.startswith(b"flags:")), b"0")
    return bool(int(flags, 8) & os.O_APPEND)
