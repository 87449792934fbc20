"""Reads the keys that a person presses, and the size of the terminal.

The terminal is read only while this program is in its foreground: otherwise the kernel would stop it.
"""

from __future__ import annotations

import os
import select
import signal
import termios
import tty

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

UP, DOWN, PAGE_UP, PAGE_DOWN, ENTER, BACK, QUIT, PROBLEMS, CLOSED = (
    "up",
    "down",
    "page up",
    "page down",
    "enter",
    "back",
    "quit",
    "problems",
    "closed",  # no key: the control pipe has ended
)
_NAMES = {
    b"\x1b[A": UP,
    b"k": UP,
    b"\x1b[B": DOWN,
    b"j": DOWN,
    b"\x1b[5~": PAGE_UP,
    b"\x1b[6~": PAGE_DOWN,
    b"\r": ENTER,
    b"\n": ENTER,
    b"l": ENTER,
    b"\x1b": BACK,
    b"\x7f": BACK,
    b"q": QUIT,
    b"p": PROBLEMS,
}
_LONGEST = max(map(len, _NAMES))


class Keys:
    """A terminal that hands over each key at once, without showing it; use it as a context.

    ``with Keys(fd) as keys: key = keys.wait(2.0)``.  Where `fd` is not a terminal, or another program has its
    foreground, no key ever comes.
    """

    def __init__(self, fd: int | None, control: int | None = None) -> None:
        """fd: a terminal; control: a pipe whose end counts as the key CLOSED."""
        self._fd, self._control = fd, control
        self._before: list[int | list[bytes | int]] | None = None
        self._wake: tuple[int, int] | None = None
        self._old_handler: object = None
        self._pending = b""

    def __enter__(self) -> Keys:
        read, write = os.pipe()
        os.set_blocking(read, False)
        os.set_blocking(write, False)
        self._wake = read, write
        self._old_handler = signal.signal(signal.SIGWINCH, self._resized)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        if self._has_foreground():
            assert self._fd is not None
            self._before = termios.tcgetattr(self._fd)
            tty.setcbreak(self._fd)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None and self._fd is not None and self._has_foreground():
            termios.tcsetattr(self._fd, termios.TCSADRAIN, self._before)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGWINCH, self._old_handler or signal.SIG_DFL)  # type: ignore[arg-type]
        for end in self._wake or ():
            os.close(end)

    def _resized(self, _number: int, _frame: FrameType | None) -> None:
        """Only wakes wait()."""

    def _has_foreground(self) -> bool:
        try:
            return self._fd is not None and os.tcgetpgrp(self._fd) == os.getpgrp()
        except OSError:
            return False

    def wait(self, seconds: float) -> str | None:
        """The next key that means something; None after the time, or when the terminal has another size."""
        if key := self._take():
            return key
        assert self._wake is not None
        ends = [self._wake[0], *([] if self._control is None else [self._control])]
        if self._before is not None and self._fd is not None and self._has_foreground():
            ends.append(self._fd)
        ready, _, _ = select.select(ends, [], [], max(0.0, seconds))
        if self._wake[0] in ready:
            os.read(self._wake[0], 4096)
        if self._control in ready:
            return CLOSED
        if self._fd in ready and self._fd is not None:
            self._read()
        return self._take()

    def _read(self) -> None:
        try:
            data = os.read(self._fd, 256) if self._fd is not None else b""
        except OSError:
            data = b""
        if not data:  # the terminal is gone
            self._before = None
        self._pending += data

    def _take(self) -> str | None:
        """The first known key among what was read; other bytes are left out."""
        while self._pending:
            for length in range(min(_LONGEST, len(self._pending)), 0, -1):
                name = _NAMES.get(self._pending[:length])
                if name:
                    self._pending = self._pending[length:]
                    return name
            self._pending = self._pending[1:]
        return None
