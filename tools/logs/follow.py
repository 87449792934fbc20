"""Follows plogs that grow: finds new ones, and reads only what was appended to them, as whole lines.

A process is not notified when a file grows on another host, so this module polls the sizes.  Links are not followed,
because another process may have planted them.  A file that was replaced or cut is read from its beginning.
"""

from __future__ import annotations

import os
import stat
import time

from tools.logs import owners

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MOST = 8 << 20  # bytes of one look
PIECE = 256 << 10  # bytes that are read at once, and the longest line
BEHIND = 64 << 20  # what is further behind is left out: its reader would never come to the end
MOST_FILES = 1 << 16
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_KINDS = ("debug", "run")  # where CANN has plogs, below the folder of a process


class _File:
    """How far a plog is read."""

    def __init__(self, path: str, rank: int, status: os.stat_result, old: bool) -> None:
        self.path, self.rank = path, rank
        self.key = (status.st_dev, status.st_ino)
        self.offset = status.st_size if old else 0
        self.seen = self.offset  # its size when there was nothing more to read
        self.inside = False  # the middle of a line that is left out

    def grown(self) -> bool:
        """Whether there is something to read.  Raises OSError: it is gone."""
        status = os.lstat(self.path)
        if (status.st_dev, status.st_ino) != self.key or status.st_size < self.offset:
            self.key, self.offset, self.seen, self.inside = (status.st_dev, status.st_ino), 0, 0, False
        return status.st_size != self.seen

    def read(self) -> tuple[bytes, int]:
        """(whole lines, how many bytes were read); raises OSError."""
        file = os.open(self.path, _OPEN)
        try:
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode) or (status.st_dev, status.st_ino) != self.key:
                return b"", 0
            if status.st_size - self.offset > BEHIND:
                self.offset, self.inside = status.st_size - PIECE, True
            data = os.pread(file, PIECE, self.offset)
        finally:
            os.close(file)
        begin, end = 0, data.rfind(b"\n") + 1
        if self.inside:
            begin = data.find(b"\n") + 1
            self.inside = not begin
        if self.inside or (not end and len(data) == PIECE):
            begin, end, self.inside = len(data), len(data), True
        if len(data) < PIECE:
            self.seen = self.offset + len(data)
        self.offset += end
        return data[begin:end], len(data)


class _Folder:
    """A folder with plogs of one rank, which may not be there yet."""

    def __init__(self, rank: int, above: str, path: str) -> None:
        self.rank, self.path = rank, path
        self._parents = [above]  # all of them must be folders, not links
        for name in os.path.relpath(path, above).split(os.sep):
            self._parents.append(os.path.join(self._parents[-1], name))
        self._seen: tuple[int, int, int] | None = None
        self._again = False
        self.files: dict[str, _File] = {}

    def update(self, since: float, room: int) -> None:
        """Finds new plogs.  A change is looked at twice: a second one may have come in the same tick of the clock."""
        try:
            status = os.lstat(self.path)
        except OSError:
            self._seen, self.files = None, {}
            return
        seen = (status.st_dev, status.st_ino, status.st_mtime_ns)
        if seen == self._seen and not self._again:
            return
        self._again = seen != self._seen
        self._seen = seen
        try:
            self._list(since, room)
        except OSError:
            self._seen, self.files = None, {}

    def _list(self, since: float, room: int) -> None:
        there: dict[str, _File] = {}
        if all(stat.S_ISDIR(os.lstat(parent).st_mode) for parent in self._parents[1:]):
            with os.scandir(self.path) as entries:
                for entry in entries:
                    known = self.files.get(entry.name)
                    if known:
                        there[entry.name] = known
                    elif len(there) < room and _is_plog(entry):
                        status = entry.stat(follow_symlinks=False)
                        there[entry.name] = _File(entry.path, self.rank, status, status.st_mtime < since)
        self.files = there


def _is_plog(entry: os.DirEntry[str]) -> bool:
    named = entry.name.endswith(".log") and owners.kind_of(entry.name, b"") == owners.PLOG
    return named and entry.is_file(follow_symlinks=False)


class Follower:
    """The plogs of the ranks, and how far each is read."""

    def __init__(self, folders: dict[int, str], above: str, since: float = 0.0) -> None:
        """folders: of the ranks, all below `above`; since: of files written before, only what is appended is read."""
        self._folders = [
            _Folder(rank, above, os.path.join(path, kind, "plog")) for rank, path in folders.items() for kind in _KINDS
        ]
        self._since = since
        self._behind: list[_File] = []
        self.cost = 0.0  # seconds of a processor that the last look took to ask for sizes

    def look(self) -> Iterator[tuple[int, bytes]]:
        """(rank, whole lines) of what was appended; what is more than MOST, or not taken, comes with the next look."""
        begun = time.process_time()
        waiting = self._grown()
        self.cost = time.process_time() - begun
        self._behind = waiting
        budget = MOST
        while waiting and budget > 0:
            file = waiting.pop(0)
            try:
                lines, size = file.read()
            except OSError:
                continue
            budget -= max(size, 1)
            if size == PIECE:
                waiting.append(file)
            if lines:
                yield file.rank, lines

    def _grown(self) -> list[_File]:
        """The files with something to read: first those that the last look has not come to."""
        found, number = [], 0
        for folder in self._folders:
            folder.update(self._since, max(0, MOST_FILES - number))
            number += len(folder.files)
            for file in folder.files.values():
                try:
                    if file.grown():
                        found.append(file)
                except OSError:
                    continue  # gone; the folder's time has changed with it
        behind = {id(file) for file in self._behind}
        return sorted(found, key=lambda file: id(file) not in behind) if behind else found
