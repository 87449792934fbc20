"""Three ways to show a log: its bytes, its bytes without old states of progress bars, or whole lines."""

from __future__ import annotations

import os
import select
from collections.abc import Callable

from tools.output import lines

BLOCK = 1 << 16  # bytes that are read at a time
LONGEST = 16384  # bytes of an unfinished line that wait for its end


class Stdout:
    """Where the logs are shown.  half: it ends with an unfinished line."""

    def __init__(self, number: int, before: Callable[[], None] = lambda: None) -> None:
        """before: is called before something is written."""
        self.number, self.half, self._before = number, False, before

    def write(self, text: bytes) -> None:
        """Writes to stdout.  Raises OSError if it is not read, or the disk is full."""
        if not text:
            return
        self._before()
        self.half = not text.endswith(b"\n")
        rest = memoryview(text)
        while rest:
            try:
                rest = rest[os.write(self.number, rest) :]
            except BlockingIOError:  # ssh sets O_NONBLOCK on its files, for every process that shares them
                free = select.poll()
                free.register(self.number, select.POLLOUT)
                free.poll()

    def end(self) -> None:
        """The last line may have no newline."""
        if self.half:
            self.write(b"\n")
        self._before()


class Way:
    """One way, for one log."""

    def __init__(self, out: Stdout) -> None:
        self._out = out

    def show(self, text: bytes, now: float) -> None:
        """Shows the next text of the log."""
        self._out.write(text)

    def show_state_at(self, now: float) -> None:
        """Shows the state of an unfinished line, if it is new and has waited long enough."""

    def end(self) -> None:
        """The log is at its end."""


class Bytes(Way):
    """The bytes as they come: for a terminal."""


class States(Way):
    """Bytes, but of a line that is drawn more than once only states."""

    prefix = b""  # goes before a line

    def __init__(self, out: Stdout, every: float) -> None:
        """every: seconds between two states of a line without end."""
        super().__init__(out)
        self._every = every
        self._rest = b""  # the unfinished line, as far as it is not on stdout
        self._since: float | None = None  # a state waits
        self._told = b""  # the state that was shown

    def show(self, text: bytes, now: float) -> None:
        text = self._rest + text
        if lines.is_redrawn(text):
            self._show_redrawn(text, now)
        else:
            self._since = None
            self._show_plain(text)

    def _show_plain(self, text: bytes) -> None:
        """Shows text without redrawn lines."""
        self._rest = b""
        if text.endswith(b"\r"):  # half of a line's end, or a state's end
            self._rest, text = b"\r", text[:-1]
        self._out.write(text)

    def _show_redrawn(self, text: bytes, now: float) -> None:
        found, rest = lines.split(text)
        first = found[0] if found else b""
        waits = b"\r" in rest[:-1]
        if self._out.half and (not text.startswith(first) or (not first and waits)):
            self._out.write(b"\n")  # what is on stdout is an old state
        if found:
            if self._told and first == self._told:
                del found[0]
            if found:
                self._write_lines(found)
            self._told, self._since = b"", None
        self._rest = b""
        if waits:
            self._wait(rest, now)
        elif rest:
            self.show(rest, now)

    def _write_lines(self, found: list[bytes]) -> None:
        self._out.write(self.prefix + (b"\n" + self.prefix).join(found) + b"\n")

    def _wait(self, line: bytes, now: float) -> None:
        """Keeps the state of an unfinished line, unless it is too long to wait."""
        state = lines.state(line)
        if len(state) >= LONGEST:
            self._rest, self._since = b"", None
            self._write_start(state)
            return
        self._rest = b"\r" + state + (b"\r" if line.endswith(b"\r") else b"")  # the next state begins at once
        if self._since is None:
            self._since = now

    def _write_start(self, text: bytes) -> None:
        """Shows the start of a line that is too long."""
        self._out.write(text + b" ...\n... ")

    def show_state_at(self, now: float) -> None:
        if self._since is not None and now - self._since >= self._every:
            self._since = now
            self._show_state()

    def _show_state(self) -> None:
        state = lines.state(self._rest)
        if state != self._told:
            self._told = state
            self._write_lines([state])

    def end(self) -> None:
        if self._since is not None:
            self._show_state()


class Lines(States):
    """Whole lines, each with its rank: for several logs."""

    def __init__(self, out: Stdout, every: float, prefix: bytes) -> None:
        super().__init__(out, every)
        self.prefix = prefix

    def _show_plain(self, text: bytes) -> None:
        whole, newline, self._rest = text.rpartition(b"\n")
        if newline:
            self._out.write(self.prefix + whole.replace(b"\n", b"\n" + self.prefix) + b"\n")
        while len(self._rest) > LONGEST:
            start = lines.cut(self._rest, LONGEST)
            self._out.write(self.prefix + start + b" ...\n")
            self._rest = b"... " + self._rest[len(start) :]

    def _write_start(self, text: bytes) -> None:
        self._out.write(self.prefix + text + b" ...\n")
        self._rest = b"... "

    def end(self) -> None:
        if self._since is None and self._rest:
            self._out.write(self.prefix + self._rest + b"\n")
        super().end()
