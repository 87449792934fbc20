"""Splits the output of ranks into lines; of a progress bar, redrawn after each \\r, only the last state counts.

The console, the report and the agents use it.  All of it is bytes.
"""

from __future__ import annotations

import os
import re
import stat

from tools.output import modules_line

TAIL_LINES = 15
TAIL_BYTES = 16384
TAIL_COLUMNS = 400  # bytes of a line

_REDRAWN = re.compile(rb"\r[^\n]")
# Bytes that no text and no progress bar has.  NUL is not one of them: a log that was cut while its writer went on
# begins with a hole.
_BINARY = re.compile(rb"[\x01-\x06\x0e-\x1a\x1c-\x1f]")
_COLOUR = re.compile(rb"\x1b\[[0-9;:]*m")


def is_redrawn(text: bytes) -> bool:
    """Whether it has a line that is drawn more than once.

    ``\\r\\n`` is a plain end of a line, and what begins as binary has no lines.
    """
    return b"\r" in text and _REDRAWN.search(text) is not None and _BINARY.search(text, 0, 256) is None


def split(text: bytes) -> tuple[list[bytes], bytes]:
    """(its whole lines, a redrawn line as its last state; what follows the last newline).

    Among redrawn lines ``\\r\\n`` becomes ``\\n``.
    """
    *lines, rest = text.split(b"\n")
    return ([_settled(line) if b"\r" in line else line for line in lines] if b"\r" in text else lines), rest


def _settled(line: bytes) -> bytes:
    line = line[line.startswith(b"\r") :]  # at the start of a line it means nothing
    return state(line) if b"\r" in line else line


def state(line: bytes) -> bytes:
    """What the last drawing shows.  A drawing of blanks only erases the one before it."""
    line = line.lstrip(b"\r")
    end = len(line.rstrip(b" \r"))
    start = line.rfind(b"\r", 0, end) + 1
    stop = line.find(b"\r", end)
    return line[start:] if stop < 0 else line[start:stop]


def cut(text: bytes, most: int) -> bytes:
    """The first `most` bytes of the text, or up to 3 less, so that no character is cut."""
    end = most
    if len(text) > most:
        while end > most - 3 and text[end] & 0xC0 == 0x80:
            end -= 1
    return text[:end]


def tail(path: str) -> list[bytes]:
    """The last lines of a log, as short as messages need them: as their last states, without colours.

    What is cut off shows as ``...``.  Empty where there is no such file, or where it is none, such as a FIFO.
    """
    try:
        text, whole = _end_of(path)
    except OSError:
        return []
    text = text.replace(b"\0", b"")
    lines, rest = split(text if whole else b"... " + text)
    if rest:
        lines.append(state(rest))
    return [_short(line) for line in [line for line in lines if not modules_line.is_one(line)][-TAIL_LINES:]]


def _end_of(path: str) -> tuple[bytes, bool]:
    """(the last TAIL_BYTES of a regular file; whether that is all of it).  Raises OSError."""
    number = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        found = os.fstat(number)
        if not stat.S_ISREG(found.st_mode):
            return b"", True
        start = max(0, found.st_size - TAIL_BYTES)
        return os.pread(number, TAIL_BYTES, start), start == 0
    finally:
        os.close(number)


def _short(line: bytes) -> bytes:
    """Without colours, cut at TAIL_COLUMNS."""
    text, found = line[: 4 * TAIL_COLUMNS], 1  # enough for a line of many colours
    while found:  # what is left around a colour may be another one
        text, found = _COLOUR.subn(b"", text)
    start = cut(text, TAIL_COLUMNS)
    return start if len(start) == len(text) and len(line) <= 4 * TAIL_COLUMNS else start + b" ..."
