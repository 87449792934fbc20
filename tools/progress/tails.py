"""Reads the newest lines of many logs that grow; of each only the end is read, so their sizes do not matter.

A log may grow by megabytes between two looks.  Its last few kilobytes have its newest numbers.
"""

from __future__ import annotations

import os
import stat

from tools.logs import log_tail
from tools.progress import phases
from tools.progress.lines import Kinds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.progress.lines import Values
    from tools.progress.phases import Mark

NEWEST = 4 << 10  # bytes of a look
FIRST = 64 << 10  # bytes of the first look, and of one in which the newest have no numbers
_OPEN = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


class Patterns(Kinds):
    """The table of lines, for all logs."""


class Tail:
    """How far one log was read."""

    __slots__ = ("_empty", "_looks", "_read", "losses", "marks", "path", "since", "size", "there", "written")

    def __init__(self, path: str) -> None:
        self.path = path
        self.size = 0
        self.there = False  # whether there is a log
        self.losses: list[float] = []  # of the first look, which sees what there was before
        self.written = 0.0  # when it was written last, seconds since 1970 by the clock of its file system
        self.marks: list[Mark] = []  # of the last look: the phases of the training that its lines name
        self.since: float | None = None  # when the last of them was written, by the same clock; None: unknown
        self._read = 0  # where the first line begins that was not read
        self._looks = 0
        self._empty = 0  # looks in a row that found no number

    def look(self, patterns: Patterns) -> Values | None:
        """The newest numbers among what was appended since the last look; None if nothing was."""
        try:
            found = os.stat(self.path)
        except (OSError, ValueError):
            self.there = False
            return None
        self.there, size = True, found.st_size
        if size == self.size:
            return None
        if size < self.size:  # cut, or another file
            self._read = 0
        self._looks += 1
        # A log that prints much between two lines with numbers gets a longer look, and fewer of them.
        longer = self._looks == 1 or (self._empty > 0 and self._empty & (self._empty - 1) == 0)
        text = self._text(size, FIRST if longer else NEWEST)
        self.size, self.written = size, found.st_mtime
        if self._looks == 1:
            self.losses = patterns.losses_of(text)
        values = patterns.last_of(text)
        self._see_phases(text, values, patterns)
        self._empty = 0 if values else self._empty + 1
        return values

    def _see_phases(self, text: str, values: Values, patterns: Patterns) -> None:
        """Looks for numbers again only where other lines name a phase, and only among the newest lines."""
        block = text.encode("utf-8", "replace")
        self.marks = phases.marks(block)
        if self.marks:
            newest = block.rfind(b"\n", 0, max(0, len(block) - NEWEST)) + 1
            self.marks = [*phases.marks(block[:newest]), *phases.marks(block[newest:], patterns)]
        elif values:
            self.marks = phases.of_values(values)
        self.since = self.written if self._looks > 1 else self._begun(block)

    def _begun(self, block: bytes) -> float | None:
        """Since when, at the first look: by the times of the lines, or because the last line tells it."""
        before, _, last = block.rstrip().rpartition(b"\n")
        if phases.after(self.marks) in (None, phases.STEPS):  # the first step may have been before what was read
            return None
        at, begun = phases.time_of(last), self.marks[-1].at
        if at is not None and begun is not None and at >= begun:
            return self.written - (at - begun)
        now, earlier = phases.marks(last)[-1:], phases.marks(before)[-1:]
        return self.written if now and now[0].phase not in {mark.phase for mark in earlier} else None

    def _text(self, size: int, most: int) -> str:
        """The whole lines among the last bytes, as text without colours."""
        begin = max(self._read, size - most)
        data = self._bytes(size - begin, begin)
        end = end_of_lines(data)
        text = plain(data[:end], begin > self._read)
        self._read = begin + end if data else self._read
        return text

    def beginning(self, most: int) -> bytes:
        """The first bytes of the log."""
        return self._bytes(most, 0)

    def _bytes(self, most: int, begin: int) -> bytes:
        """Nothing of a file that cannot be read, or is none."""
        try:
            file = os.open(self.path, _OPEN)
        except (OSError, ValueError):
            return b""
        try:
            return os.pread(file, most, begin) if stat.S_ISREG(os.fstat(file).st_mode) else b""
        except OSError:
            return b""
        finally:
            os.close(file)


def end_of_lines(data: bytes) -> int:
    """Where the unfinished line begins.  A progress bar has no end of line: its last drawing counts as a line."""
    end = data.rfind(b"\n") + 1
    return len(data) if b"\r" in data[end:] else end


def plain(data: bytes, cut: bool) -> str:
    """Lines as text without colours; cut: the first one may lack its beginning."""
    data = data[data.find(b"\n") + 1 if cut else 0 :]
    if b"\r" in data or b"\x1b" in data:
        return "\n".join(log_tail.lines_of(data))
    return data.decode("utf-8", errors="replace")
