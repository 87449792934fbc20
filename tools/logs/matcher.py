"""Finds the lines of large logs in which any of thousands of texts may stand.

`Fast` uses hyperscan, whose automaton takes about 1 GB a second, however many texts there are.  `Slow` needs nothing
that is not in Python: 5 to 20 MB a second.  Both may find too much, never too little: the caller looks at the line.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Union

    Want = Union[bytes, "re.Pattern[str]"]  # a text, or a regular expression

_PIECE, _LONG_LINE = 256 << 10, 16 << 10
MOST = 200  # finds of one text in one file: what comes a million times says nothing new


class Slow:
    """A search for each text, one after the other."""

    def __init__(self, wanted: list[Want]) -> None:
        self._texts = [(number, want) for number, want in enumerate(wanted) if isinstance(want, bytes)]
        self._patterns = [
            (number, re.compile(want.pattern.encode(), re.MULTILINE))
            for number, want in enumerate(wanted)
            if not isinstance(want, bytes)
        ]
        self.found = [0] * len(wanted)

    def restart(self) -> None:
        """A new file begins."""
        self.found = [0] * len(self.found)

    def find(self, block: bytes) -> list[tuple[int, int]]:
        """[(place, number of what is wanted)] in the block, sorted; at most MOST of each in a file."""
        hits: list[tuple[int, int]] = []
        for number, text in self._texts:
            place = block.find(text)
            while place >= 0:
                if not self._counts(number):
                    self.found[number] += block.count(text, place) - 1
                    break
                hits.append((place, number))
                place = block.find(text, _line_end(block, place))
        for start, end in _pieces(block):
            for number, pattern in self._patterns:
                found = pattern.search(block, start, end)
                while found and self._counts(number):
                    hits.append((found.start(), number))
                    found = pattern.search(block, _line_end(block, found.start()) + 1, end)
        return sorted(hits)

    def _counts(self, number: int) -> bool:
        self.found[number] += 1
        return self.found[number] <= MOST


def _pieces(block: bytes) -> Iterator[tuple[int, int]]:
    """Parts of at most 256 KiB, cut at line ends: what an expression costs may grow with the square of a line."""
    start = 0
    while start < len(block):
        end = min(len(block), start + _PIECE)
        end = block.rfind(b"\n", start, end) + 1 or min(end, start + _LONG_LINE)
        yield start, end
        start = end


def _line_end(block: bytes, place: int) -> int:
    end = block.find(b"\n", place)
    return len(block) if end < 0 else end


class Fast:
    """All texts at once."""

    def __init__(self, wanted: list[Want]) -> None:
        import hyperscan

        expressions = [re.escape(want) if isinstance(want, bytes) else want.pattern.encode() for want in wanted]
        flags = [hyperscan.HS_FLAG_MULTILINE | hyperscan.HS_FLAG_PREFILTER] * len(wanted)
        for number, want in enumerate(wanted):
            if isinstance(want, bytes):
                flags[number] = 0
        self._machine = hyperscan.Database()
        self._machine.compile(expressions=expressions, ids=list(range(len(wanted))), elements=len(wanted), flags=flags)
        self.found = [0] * len(wanted)
        self._hits: list[tuple[int, int]] = []

    def restart(self) -> None:
        """A new file begins."""
        self.found = [0] * len(self.found)

    def find(self, block: bytes) -> list[tuple[int, int]]:
        """As above.  The place is the last byte of what was found."""
        self._hits = []
        self._machine.scan(block, match_event_handler=self._take)
        return sorted(self._hits)

    def _take(self, number: int, _start: int, end: int, _flags: int, _context: object) -> None:
        self.found[number] += 1
        if self.found[number] <= MOST:
            self._hits.append((end - 1, number))


def installed() -> bool:
    """Whether `Fast` can be used."""
    import importlib.util  # not at the top: in Python 3.9 it imports typing

    return importlib.util.find_spec("hyperscan") is not None


def matcher_of(wanted: list[Want], fast: bool) -> Fast | Slow:
    """The fast one where it is wanted, unless one of the expressions is beyond it."""
    if fast:
        import hyperscan

        try:
            return Fast(wanted)
        except hyperscan.HyperscanError:
            return Slow(wanted)
    return Slow(wanted)
