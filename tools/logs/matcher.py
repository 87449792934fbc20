"""Finds the lines of large logs that may contain any of thousands of texts.

`Fast` uses hyperscan, whose automaton reads about 1 GB a second, however many texts there are.  `Shapes` needs only
Python.  Both find the same lines; if an expression has no text, `Shapes` may find too many.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate

from tools.logs import literals
from tools.logs.shapes import Shapes
from tools.logs.wanted import LONGEST, MOST, decoded, line_end, texts_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tools.logs.wanted import Expression, Want

__all__ = ["LONGEST", "MOST", "Fast", "Shapes", "installed", "matcher_of"]
_LARGE = 400  # characters: an automaton of such an expression takes more than a second
_ESCAPES = re.compile(r"\\[uUN]|\(\?[a-zA-Z]*u")  # which bytes do not have


class Fast:
    """All texts at once; Python decides on the lines in which hyperscan finds something.

    Expressions for bytes take other lines than those for characters: of lines that are not ASCII only texts count.
    """

    def __init__(self, wanted: list[Want]) -> None:
        self._wanted = wanted
        each = list(enumerate(wanted))
        whole = [(number, want) for number, want in each if not isinstance(want, bytes) and _is_easy(want)]
        rest = [(number, want) for number, want in each if isinstance(want, bytes) or not _is_easy(want)]
        self._others: list[tuple[int, Want]] = [(number, want) for number, want in whole if want.texts]
        self._odd = [number for number, want in whole if not want.texts]  # in lines that are not ASCII
        self._by_line = [number for number, want in rest if not texts_of(want)]
        self._machine = _database([(number, want) for number, want in rest if texts_of(want)], whole)
        self._of_others: Any = None  # made when it is needed: most logs are ASCII
        self.found = [0] * len(wanted)
        self._block = b""
        self._ends: list[int] = []  # by number: where the line ends in which it was found last
        self._room: list[int] = []  # by number: how many lines are still wanted
        self._lines: set[tuple[int, int]] = set()  # where lines begin, and what they have

    def restart(self) -> None:
        """A new file begins."""
        self.found = [0] * len(self.found)

    def find(self, block: bytes) -> list[tuple[int, int]]:
        """Finds like `Shapes`."""
        self._room = [MOST - times for times in self.found]
        lines = self._scan(self._machine, block)
        if self._by_line or not block.isascii():
            lines |= self._one_by_one(block)
        for _, number in lines:
            self.found[number] += 1
        return sorted(lines)

    def _one_by_one(self, block: bytes) -> set[tuple[int, int]]:
        """What hyperscan cannot find in this block."""
        found, strange, starts, place = set(), [], [], 0
        for line in block.split(b"\n"):
            numbers = self._by_line
            if not line.isascii():
                strange.append(line)
                starts.append(place)
                numbers = numbers + self._odd
            found |= {(place, number) for number in numbers if self._counts(number, line)}
            place += len(line) + 1
        if strange and self._others:
            self._of_others = self._of_others or _database(self._others, [])
            ends = list(accumulate(len(line) + 1 for line in strange))
            more = self._scan(self._of_others, b"\n".join(strange))
            found |= {(starts[bisect_right(ends, begin)], number) for begin, number in more}
        return found

    def _scan(self, machine: Any, block: bytes) -> set[tuple[int, int]]:
        self._block, self._lines = block, set()
        self._ends = [0] * len(self._wanted)
        if machine is not None:
            machine.scan(block, match_event_handler=self._take)
        return self._lines

    def _take(self, number: int, _start: int, end: int, _flags: int, _context: object) -> None:
        if end <= self._ends[number]:
            return
        if self._room[number] <= 0:  # beyond MOST lines only texts are counted
            self.found[number] += isinstance(self._wanted[number], bytes)
            return
        begin = self._block.rfind(b"\n", 0, end - 1) + 1
        self._ends[number] = line_end(self._block, end - 1)
        if self._counts(number, self._block[begin : min(self._ends[number], begin + LONGEST)]):
            self._lines.add((begin, number))

    def _counts(self, number: int, line: bytes) -> bool:
        """Whether the line has it, which is known of texts."""
        want = self._wanted[number]
        if not isinstance(want, bytes) and not (self._room[number] > 0 and want.pattern.search(decoded(line))):
            return False
        self._room[number] -= 1
        return True


def _is_easy(want: Expression) -> bool:
    """Whether hyperscan finds at least what Python finds in lines that are ASCII, and its automaton is made soon."""
    if want.texts and len(want.source) > _LARGE:  # its texts lead to the same lines
        return False
    if not want.source.isascii() or _ESCAPES.search(want.source):
        return False
    return literals.is_for_blocks(want.source, ("ASSERT", "ASSERT_NOT"))


def _database(texts: list[tuple[int, Want]], whole: list[tuple[int, Expression]]) -> Any:
    """An automaton for the texts of some, and for others themselves; None: for nothing.

    Raises hyperscan.HyperscanError.
    """
    import hyperscan

    rows = []
    for number, want in texts:
        flag = 0 if isinstance(want, bytes) or not want.caseless else hyperscan.HS_FLAG_CASELESS
        rows.append((b"|".join(map(re.escape, texts_of(want))), number, flag))
    flags = hyperscan.HS_FLAG_MULTILINE | hyperscan.HS_FLAG_PREFILTER
    rows += [(want.source.encode(), number, flags) for number, want in whole]
    if not rows:
        return None
    expressions, numbers, each = map(list, zip(*rows))
    found = hyperscan.Database()
    found.compile(expressions=expressions, ids=numbers, elements=len(rows), flags=each)
    return found


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
