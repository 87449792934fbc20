"""Keeps the beginning and the end of a log: a few megabytes at most, with secrets masked even at the cut."""

from __future__ import annotations

import os
import stat
from collections import Counter

from hccl_tools.common.language import marked
from hccl_tools.common.record import Record, Row
from tools.diagnosis.bundle import masking
from tools.diagnosis.bundle.masking import LONGEST, Masker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gzip import GzipFile
    from typing import IO

HEAD, TAIL = 1 << 20, 4 << 20
MOST = HEAD + TAIL
MOST_UNPACKED = 4 << 30  # bytes: a small archive may hold any number of them
_BLOCK = 1 << 20
_NEAR = 512 << 10  # bytes from the place of a cut in which a line must end, otherwise the line itself is cut
_LEFT_OUT = b"--- %d bytes are left out here ---\n"
NOT_REGULAR = marked("it is not a regular file")
_REPLACED = marked("another file is there now")
_TOO_LONG = marked("it has too many bytes when it is unpacked")


class Windows(Row):
    """What was read of a log: all of it, or its two ends, each longer than what is kept."""

    head: bytes
    tail: bytes  # empty: the head is all of it
    size: int


class Cut(Record):
    """What goes into the bundle."""

    data: bytes
    counts: Counter[str]  # what was masked
    left_out: int  # bytes


class NotRead(Exception):
    """Why a file is not in the bundle."""


def open_regular(path: str, seen: os.stat_result | None = None) -> int:
    """A descriptor of the regular file; no link is followed, no pipe is waited for.  Raises OSError and NotRead.

    seen: the file that was there before; without it the path is the user's own word, and may be a link.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    file = os.open(path, flags | (os.O_NOFOLLOW if seen else 0))
    now = os.fstat(file)
    if stat.S_ISREG(now.st_mode) and (seen is None or os.path.samestat(now, seen)):
        return file
    os.close(file)
    raise NotRead(_REPLACED if stat.S_ISREG(now.st_mode) else NOT_REGULAR)


def of_file(file: IO[bytes]) -> Windows:
    """Reads a file in which one can seek."""
    head = file.read(MOST + 1)
    if len(head) <= MOST:
        return Windows(head, b"", len(head))
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - TAIL - LONGEST))
    return Windows(head[: HEAD + LONGEST], file.read(TAIL + LONGEST), size)


def of_stream(stream: IO[bytes] | GzipFile) -> Windows:
    """Reads what can be read once only.  Raises NotRead, and what the stream raises."""
    head = stream.read(MOST + 1)
    if len(head) <= MOST:
        return Windows(head, b"", len(head))
    head, tail, size = head[: HEAD + LONGEST], head[-TAIL - LONGEST :], len(head)
    while block := stream.read(_BLOCK):
        size += len(block)
        tail = (tail + block)[-TAIL - LONGEST :]
        if size > MOST_UNPACKED:
            raise NotRead(_TOO_LONG)
    return Windows(head, tail, size)


def masked(windows: Windows, masker: Masker) -> Cut:
    """The log as it goes into the bundle."""
    counts: Counter[str] = Counter()
    head, tail, size = windows
    spans = masker.spans(head)
    if not tail:
        return Cut(data=masking.applied(head, spans, counts), counts=counts, left_out=0)
    end = head.rfind(b"\n", HEAD - _NEAR, HEAD) + 1 or HEAD
    end = next((span.start for span in spans if span.start < end < span.end), end)
    first = masking.applied(head[:end], [span for span in spans if span.end <= end], counts)
    spans = masker.spans(tail)
    begin = tail.find(b"\n", LONGEST, LONGEST + _NEAR) + 1 or LONGEST
    begin = next((span.end for span in spans if span.start < begin < span.end), begin)
    moved = [span._replace(start=span.start - begin, end=span.end - begin) for span in spans if span.start >= begin]
    last = masking.applied(tail[begin:], moved, counts)
    left_out = size - end - (len(tail) - begin)
    between = (b"" if first.endswith(b"\n") else b"\n") + _LEFT_OUT % left_out
    return Cut(data=first + between + last, counts=counts, left_out=left_out)
