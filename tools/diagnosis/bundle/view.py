"""A searchable view of a log: without characters that hide a word, and with a mapping to the log's own bytes."""

from __future__ import annotations

import re
from bisect import bisect_right

from hccl_tools.common.record import Row

_ESCAPE = rb"\x1b\[[0-?]{0,64}[ -/]{0,16}[@-~]|\x1b\][^\x07\x1b\n]{0,256}(?:\x07|\x1b\\)|\x1b[@-Z\\^_]"
_CONTROL = rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"
_HIDING = re.compile(rb"(?:" + _ESCAPE + rb"|" + _CONTROL + rb")+")
_HIDING_OR_BLANK = re.compile(rb"(?:" + _ESCAPE + rb"|[\x00-\x20\x7f])+")
_ANY_CONTROL, _ANY_ESCAPE = re.compile(_CONTROL), re.compile(_ESCAPE)
_BLANKS = bytes([*range(0x21), 0x7F])


class Span(Row):
    """A part of a log that is masked, and what it is: the name of a variable, or a kind of secret."""

    start: int
    end: int
    what: str


def squeezed(data: bytes) -> bytes:
    """The bytes without terminal escapes, control characters, blanks and line ends."""
    if b"\x1b" in data:
        data = _ANY_ESCAPE.sub(b"", data)
    return data.translate(None, _BLANKS)


class View:
    """The bytes without terminal escapes and control characters; `joined`: also without blanks and line ends."""

    def __init__(self, data: bytes, joined: bool = False) -> None:
        self.data = data
        self._hiding = _HIDING_OR_BLANK if joined else _HIDING
        if joined:
            self.text = squeezed(data)
        else:
            self.text = _HIDING.sub(b"", data) if _ANY_CONTROL.search(data) else data
        self._places: list[int] = []  # in the text, where something was left out
        self._shifts: list[int] = []  # how much, up to there

    def span(self, start: int, end: int, what: str) -> Span:
        """The part of the log's own bytes that these places of the text are."""
        return Span(self._back(start), self._back(end - 1) + 1, what)

    def _back(self, place: int) -> int:
        if len(self.text) == len(self.data):
            return place
        if not self._places:
            gone = 0
            for found in self._hiding.finditer(self.data):
                self._places.append(found.start() - gone)
                gone += found.end() - found.start()
                self._shifts.append(gone)
        index = bisect_right(self._places, place)
        return place + (self._shifts[index - 1] if index else 0)
