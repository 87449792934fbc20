"""Removes the line of Python's faulthandler that lists all extension modules from the shown parts of logs.

The line is a kilobyte long and does not explain why a rank ended.  The logs keep it.
"""

from __future__ import annotations

import re

_START = b"Extension modules: "
_LINE = re.compile(rb"Extension modules: .* \(total: \d{1,6}\)\s*")
_LONGEST = 65536  # bytes of such a line that wait for its end


def is_one(line: bytes) -> bool:
    """Whether the line is the one that names the modules."""
    return line.startswith(_START) and _LINE.fullmatch(line) is not None


class Without:
    """The bytes of a log as they come, without that line."""

    def __init__(self) -> None:
        self._held = b""  # what may be its beginning
        self._in_line = False  # what comes next goes on a line that was passed on

    def take(self, data: bytes) -> bytes:
        """The part of the log that is shown, once `data` has arrived."""
        text, self._held = self._held + data, b""
        if _START[:1] not in text:
            self._in_line = not text.endswith(b"\n") if text else self._in_line
            return text
        *whole, rest = text.split(b"\n")
        shown = [
            line + b"\n" for number, line in enumerate(whole) if (number == 0 and self._in_line) or not is_one(line)
        ]
        in_line = self._in_line and not whole
        if rest and not in_line and (_START.startswith(rest) or rest.startswith(_START)) and len(rest) < _LONGEST:
            self._held, rest = rest, b""
        self._in_line = bool(rest) or in_line
        return b"".join([*shown, rest])

    def rest(self) -> bytes:
        """The remaining part at the end of the log."""
        text, self._held = self._held, b""
        return b"" if is_one(text) else text
