"""Shows the progress of a long operation in one terminal line, which is redrawn in place and removed at the end.

A command opens `showing`.  Code below it that may take long describes its work with `doing`, and counts with `more`.
If no command has opened it, or stderr is not a terminal, both do nothing.  So code that counts need not check.  A
thread draws a few times per second, so counting costs one addition.  In the first 2 seconds there is no line.
"""

from __future__ import annotations

import contextlib
import os
import select
import sys
import time

from hccl_tools.common.language import tr
from hccl_tools.common.words import one_line, size_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import IO, Any

AFTER, EVERY = 2.0, 0.2  # seconds until the line comes, and between two drawings
_WITHOUT_SIZE = 80  # columns of a terminal that does not tell them
_CLEAR = "\r\x1b[K"


class Work:
    """A long operation: what it does, how much is done, and the whole; the whole is 0 if it is unknown."""

    def __init__(self, what: str, whole: int = 0, in_bytes: bool = False) -> None:
        self.what, self.whole, self.done, self.in_bytes = what, whole, 0, in_bytes
        self.about = ""  # what it is at now, such as the name of a file
        self.counter: Callable[[], int] | None = None  # asked for `done` before each drawing

    def text(self) -> str:
        """The line."""
        if self.counter:
            self.done = self.counter()
        shown = size_of if self.in_bytes else str
        text = self.what
        if self.whole:
            done, whole = shown(min(self.done, self.whole)), shown(self.whole)
            text = tr("{what}: {done} of {whole}", what=text, done=done, whole=whole)
        return tr("{what}, {about}", what=text, about=self.about) if self.about else text


class Terminal:
    """The terminal with the line: while it is blocked it gets nothing, and does not delay the command."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)

    def columns(self) -> int:
        """The width of the terminal now."""
        try:
            return os.get_terminal_size(self._descriptor).columns or _WITHOUT_SIZE
        except OSError:
            return _WITHOUT_SIZE

    def write(self, text: str) -> bool:
        """Writes the text; returns whether the terminal took it.  A command in the background has no line."""
        try:
            if not self._poll.poll(0) or not self._is_ours():
                return False
            os.write(self._descriptor, text.encode(getattr(sys.stderr, "encoding", None) or "utf-8", "replace"))
        except OSError:  # it is gone
            return False
        return True

    def _is_ours(self) -> bool:
        """Whether this process is in the foreground."""
        try:
            return os.tcgetpgrp(self._descriptor) == os.getpgrp()
        except OSError:  # it is the terminal of another session
            return True


class Screen:
    """The line of a command: it shows the innermost of the works that run inside each other."""

    def __init__(self, terminal: Terminal, clock: Callable[[], float] = time.monotonic) -> None:
        import threading  # only where there is a terminal

        self._terminal, self._clock = terminal, clock
        self._from = clock() + AFTER
        self._drawn = False
        self._lock = threading.RLock()  # a signal may come while we have it
        self._end = threading.Event()
        self._thread: threading.Thread | None = None
        self.works: list[Work] = []

    def begin(self, work: Work) -> None:
        """Makes the work the innermost from now on."""
        self.works.append(work)
        if self._thread is None:
            import threading

            self._thread = threading.Thread(target=self._draw_often, daemon=True)
            self._thread.start()

    def end(self, work: Work) -> None:
        """Ends the work, which is done or given up."""
        self.works.remove(work)
        self.clear()

    def close(self) -> None:
        """Stops drawing."""
        self._end.set()
        if self._thread:
            self._thread.join()
        self.clear()

    def draw(self) -> None:
        """Draws the line, if it is time for it."""
        from hccl_tools.common.colours import cut  # a launch, which imports this module, draws nothing

        with self._lock:
            works = self.works[-1:]
            if works and self._clock() >= self._from and not self._end.is_set():
                text = cut(one_line(works[0].text()), max(0, self._terminal.columns() - 1))
                self._drawn = self._terminal.write(f"\r{text}\x1b[K") or self._drawn

    def clear(self) -> None:
        """Leaves an empty line for the next output."""
        with self._lock:
            if self._drawn:
                self._terminal.write(_CLEAR)
            self._drawn = False

    def _draw_often(self) -> None:
        wait = AFTER
        while not self._end.wait(wait):
            self.draw()
            wait = EVERY


_screens: list[Screen] = []  # of this process; empty if the progress is not shown
_totals: list[Any] = []  # in a worker process: what it shares with the one that draws


@contextlib.contextmanager
def showing(screen: Screen | None = None) -> Iterator[None]:
    """For a command: shows the progress of everything inside on this screen, or on stderr if that is a terminal."""
    screen = screen or (Screen(Terminal(2)) if not _screens and _is_terminal() else None)
    if screen is None:
        yield
        return
    _screens.append(screen)
    try:
        yield
    finally:
        _screens.pop().close()


def _is_terminal() -> bool:
    """Whether stderr is a terminal that can move its cursor."""
    return sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM", "") not in ("", "dumb")


@contextlib.contextmanager
def doing(what: str, whole: int = 0, in_bytes: bool = False) -> Iterator[Work]:
    """Shows a work while it runs; takes the arguments of its constructor."""
    work = Work(what, whole, in_bytes)
    screen = _screens[-1] if _screens else None
    if screen is None:
        yield work
        return
    screen.begin(work)
    try:
        yield work
    finally:
        screen.end(work)


def more(number: int = 1) -> None:
    """Adds this amount to the innermost work."""
    if _totals:
        with _totals[0].get_lock():
            _totals[0].value += number
    elif _screens and _screens[-1].works:
        _screens[-1].works[-1].done += number


def bytes_of(path: str) -> int:
    """The size of a file that will be read; 0 if it is unknown: reading the file reports the reason."""
    try:
        return os.path.getsize(path)
    except (OSError, ValueError):  # ValueError: a name that cannot be one
        return 0


def clear() -> None:
    """Clears the line, before something else is printed on the terminal."""
    if _screens:
        _screens[-1].clear()


def is_shown() -> bool:
    """Whether the line is shown: if not, worker processes need not report their progress."""
    return bool(_screens)


def tell(total: Any) -> None:
    """For a worker process: `more` adds to this multiprocessing.Value, which a work's counter reads; None: nowhere."""
    _screens.clear()
    _totals[:] = [] if total is None else [total]


def counted(file: IO[bytes]) -> Any:
    """The file; if the progress is shown, what is read of it is counted, in bytes."""
    return _Counted(file) if _screens or _totals else file


class _Counted:
    """A file that counts how far it was read: a second reading counts nothing."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._place, self._most = file, 0, 0

    def read(self, size: int = -1) -> bytes:
        """Reads like the file."""
        data = self._file.read(size)
        self._place += len(data)
        if self._place > self._most:
            more(self._place - self._most)
            self._most = self._place
        return data

    def seek(self, place: int, whence: int = os.SEEK_SET) -> int:
        """Seeks like the file."""
        self._place = self._file.seek(place, whence)
        return self._place

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)
