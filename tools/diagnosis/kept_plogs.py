"""Decides which of CANN's own logs, the plogs, stay when a run has ended and its failure is explained.

Only the folders plog/rank_N of a run's attempts are changed, which the launch has made.  Links in them are not
followed, because another process may have planted them.  CANN can write gigabytes, so the logs of a failure are cut.  A
long file keeps its beginning and its end, and of many files the newest stay.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress

from hccl_tools.common.language import strerror, tr
from hccl_tools.common.words import count, one_line
from tools.launch.plogs import FOLDER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_MIB = 1 << 20
_MOST_OF_FILE = 8 * _MIB
_MOST_OF_RANK = 64 * _MIB
# A reader of plogs passes over the line, because it has no level.  Its length is less than 200 bytes.
_LEFT_OUT = b"--- %d bytes are left out here; --keep_plogs all keeps everything ---\n"
_ROOM = 200

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Tally:
    """What was left out, and the first problem."""

    def __init__(self) -> None:
        self.bytes = self.ranks = 0
        self.trouble = ""

    def failed(self, path: str, error: OSError) -> None:
        """An operation has failed on the folder of a rank."""
        self.trouble = self.trouble or tr(
            "{path}: not all of its plogs can be cut or removed: {reason}", path=one_line(path), reason=strerror(error)
        )

    def lines(self) -> list[str]:
        """What the report states about it."""
        said = [self.trouble] if self.trouble else []
        if self.bytes:
            text = tr(
                "the kept plogs are cut: {size} from {ranks} are left out; --keep_plogs all keeps everything",
                size=f"{self.bytes / _MIB:.1f} MiB",
                ranks=count(self.ranks, "rank"),
            )
            said.append(text)
        return said


def settle(run_dir: str, attempts: list[dict[str, Any]], keep: str) -> list[str]:
    """Removes and cuts plogs according to `keep`: failed, all or none; returns the report's lines about it."""
    tally = Tally()
    for attempt in attempts:
        failed = attempt["exit"] != 0 or attempt["first_failure"] is not None
        stays = keep == "all" or (keep == "failed" and failed)
        logs = os.path.normpath(attempt["logs"])
        names = [] if logs == os.curdir else logs.split(os.sep)
        with suppress(OSError), _Folder(run_dir, *names, FOLDER) as folder:  # there may be none, or it is a link
            for rank in _ranks(folder):
                _settle_rank(folder, rank, os.path.join(run_dir, *names, FOLDER, rank), stays, keep, tally)
        with suppress(OSError), _Folder(run_dir, *names) as folder:
            os.rmdir(FOLDER, dir_fd=folder)
    return tally.lines()


def _settle_rank(folder: int, name: str, path: str, stays: bool, keep: str, tally: Tally) -> None:
    """What to do with the folder `name`, which a message calls `path`."""
    try:
        if not stays:
            _remove(folder, name)
            return
        if keep != "all":
            left_out = _cut_rank(folder, name)
            tally.bytes += left_out
            tally.ranks += left_out > 0
        _remove_empty(folder, name)
    except OSError as error:
        tally.failed(path, error)


class _Folder:
    """A folder below `top`, open: a descriptor.  No link on the way is followed.  Raises OSError."""

    def __init__(self, top: str | int, *names: str) -> None:
        self.fd = os.dup(top) if isinstance(top, int) else os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for name in names:
            above = self.fd
            try:
                if name in ("", os.pardir):
                    raise NotADirectoryError
                self.fd = os.open(name, _FOLDER, dir_fd=above)
            finally:
                os.close(above)

    def __enter__(self) -> int:
        return self.fd

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)


def _ranks(folder: int) -> list[str]:
    with os.scandir(folder) as entries:
        found = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    return [name for name in found if name.startswith("rank_") and name[len("rank_") :].isdecimal()]


def _remove(folder: int, name: str) -> None:
    """Removes the folder `name` with all that is in it.  Raises OSError."""
    for _, folders, files, here in os.fwalk(name, topdown=False, dir_fd=folder):
        for file in files:
            os.unlink(file, dir_fd=here)
        for inner in folders:
            try:
                os.rmdir(inner, dir_fd=here)
            except NotADirectoryError:  # a link to a folder
                os.unlink(inner, dir_fd=here)
    os.rmdir(name, dir_fd=folder)


def _remove_empty(folder: int, name: str) -> None:
    """Removes the folders without a file in and below the folder `name`, and that itself."""
    for _, folders, _, here in os.fwalk(name, topdown=False, dir_fd=folder):
        for inner in folders:
            _remove_if_empty(here, inner)
    _remove_if_empty(folder, name)


def _remove_if_empty(folder: int, name: str) -> None:
    with suppress(OSError):  # it has files, or is a link
        os.rmdir(name, dir_fd=folder)


# --- sizes ------------------------------------------------------------------------------------------------------------


def _cut_rank(folder: int, rank: str) -> int:
    """Cuts what the rank has too much; returns how many bytes are left out.  Raises OSError."""
    room, left_out = _MOST_OF_RANK, 0
    for _, path, size in sorted(_files(folder, rank), reverse=True):  # the newest first
        head, name = os.path.split(path)
        with _Folder(folder, *head.split(os.sep)) as here:
            room -= min(size, _MOST_OF_FILE)
            if room < 0:
                os.unlink(name, dir_fd=here)
                left_out += size
                room = -1  # older files go, too
            elif size > _MOST_OF_FILE:
                left_out += _cut_file(here, name, size)
    return left_out


def _files(folder: int, rank: str) -> Iterator[tuple[int, str, int]]:
    """(when it was written last, its path from the folder, its size) of every file that has no other name elsewhere."""
    for path, _, files, here in os.fwalk(rank, dir_fd=folder):
        for name in files:
            found = os.stat(name, dir_fd=here, follow_symlinks=False)
            if stat.S_ISREG(found.st_mode) and found.st_nlink == 1:
                yield found.st_mtime_ns, os.path.join(path, name), found.st_size


def _cut_file(folder: int, name: str, size: int) -> int:
    """Cuts the middle out of the file itself: a full disk has no room for a copy.  Returns how many bytes."""
    half = _MOST_OF_FILE // 2
    file = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        times = os.fstat(file)
        head = os.pread(file, half - _ROOM, 0)
        head = head[: head.rfind(b"\n") + 1] or head
        tail = os.pread(file, half, size - half)
        tail = tail[tail.find(b"\n", 0, half - 1) + 1 :]
        left_out = size - len(head) - len(tail)
        end = b"" if head.endswith(b"\n") else b"\n"
        data, at = end + _LEFT_OUT % left_out + tail, len(head)
        while data:
            written = os.pwrite(file, data, at)
            data, at = data[written:], at + written
        os.ftruncate(file, at)
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    finally:
        os.close(file)
    return left_out
