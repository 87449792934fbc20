"""Finds the lines of large logs in which any of thousands of texts may stand.

`Fast` uses hyperscan, whose automaton takes about 1 GB a second, however many texts there are.  `Shapes` needs nothing
that is not in Python.  Both may find too much, never too little: the caller looks at the line.
"""

from __future__ import annotations

import re

from tools.logs.shapes import Shapes
from tools.logs.wanted import LONGEST, MOST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.logs.wanted import Want

__all__ = ["LONGEST", "MOST", "Fast", "Shapes", "installed", "matcher_of"]


class Fast:
    """All texts at once."""

    def __init__(self, wanted: list[Want]) -> None:
        import hyperscan

        expressions = [_expression(want) for want in wanted]
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
        """As that of `Shapes`.  The place is the last byte of what was found."""
        self._hits = []
        self._machine.scan(block, match_event_handler=self._take)
        return sorted(self._hits)

    def _take(self, number: int, _start: int, end: int, _flags: int, _context: object) -> None:
        self.found[number] += 1
        if self.found[number] <= MOST:
            self._hits.append((end - 1, number))


def _expression(want: Want) -> bytes:
    """For bytes, where a class of two Chinese characters would be one of six bytes: there the texts must do."""
    if isinstance(want, bytes):
        return re.escape(want)
    if want.source.isascii() or not want.texts:
        return want.source.encode()
    return b"|".join(re.escape(text.encode()) for text in want.texts)


def installed() -> bool:
    """Whether `Fast` can be used."""
    import importlib.util  # not at the top: in Python 3.9 it imports typing

    return importlib.util.find_spec("hyperscan") is not None


def matcher_of(wanted: list[Want], fast: bool) -> Fast | Shapes:
    """The fast one where it is wanted, unless one of the expressions is beyond it."""
    if fast:
        import hyperscan

        try:
            return Fast(wanted)
        except hyperscan.HyperscanError:
            return Shapes(wanted)
    return Shapes(wanted)
