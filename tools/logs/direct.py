"""Finds texts that have no shape of their own, such as the code E30003; Python finds their first letter quickly."""

from __future__ import annotations

import re

from tools.logs.literals import shape_of
from tools.logs.wanted import LONGEST, MOST, Expression, decoded, line_end, texts_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from tools.logs.wanted import Want

_PIECE, _LONG_LINE = 256 << 10, 16 << 10
_LEAST = 4  # bytes: a shorter shape is in too many lines


class Directly:
    """A search in all lines, by first letters; `numbers`: of what is wanted, those that it finds."""

    def __init__(self, wanted: list[Want]) -> None:
        self._wanted = wanted
        self._of: dict[bytes, list[int]] = {}
        self._hard: list[tuple[int, list[re.Pattern[str]], bool]] = []  # the last: whether for many lines at once
        for number, want in enumerate(wanted):
            texts = texts_of(want)
            if isinstance(want, Expression) and (not texts or (want.caseless and _is_weak(texts))):
                each = [re.compile(one, re.MULTILINE) for one in variants(want.source)]
                self._hard.append((number, each, want.for_blocks))
            elif _is_weak(texts):
                for text in texts:
                    self._of.setdefault(text, []).append(number)
        self.numbers = {number for numbers in self._of.values() for number in numbers}
        self.numbers.update(number for number, *_ in self._hard)
        self._forms = [
            (first, re.compile(re.escape(first) + b"(?=(" + one_of({text[1:] for text in of_it}) + b"))"))
            for first in sorted({text[:1] for text in self._of})
            for of_it in [[text for text in self._of if text[:1] == first]]
        ]
        own = {text: list(numbers) for text, numbers in self._of.items()}
        for text, numbers in self._of.items():  # a form finds the longest of those that begin alike
            for size in range(1, len(text)):
                numbers += own.get(text[:size], ())

    def find(self, block: bytes, found: list[int], hits: list[tuple[int, int]]) -> None:
        """Adds to the hits and to what was found."""
        for first, form in self._forms:
            begin = end = 0
            tried: set[int] = set()  # with this line
            for match in form.finditer(block):
                if match.start() >= end:
                    begin, end = block.rfind(b"\n", 0, match.start()) + 1, line_end(block, match.end())
                    line = block[begin : min(end, begin + LONGEST)]
                    tried.clear()
                for number in self._of[first + match[1]]:
                    if number in tried:
                        continue
                    tried.add(number)
                    if self._counts(number, line, found):
                        found[number] += 1
                        if found[number] <= MOST:
                            hits.append((begin, number))
        if self._hard:
            for start, end in _pieces(block):
                self._search(_Piece(block, start, end), found, hits)

    def _counts(self, number: int, line: bytes, found: list[int]) -> bool:
        want = self._wanted[number]
        return isinstance(want, bytes) or (found[number] < MOST and bool(want.pattern.search(decoded(line))))

    def _search(self, piece: _Piece, found: list[int], hits: list[tuple[int, int]]) -> None:
        for number, patterns, for_blocks in self._hard:
            for pattern in patterns:
                for place in piece.places(pattern) if for_blocks else piece.places_by_line(pattern):
                    if found[number] >= MOST:
                        break
                    found[number] += 1
                    hits.append((place, number))


class _Piece:
    """Some lines as text, which expressions mean, and where in the block each begins."""

    def __init__(self, block: bytes, start: int, end: int) -> None:
        self._first = block.rfind(b"\n", 0, start) + 1
        self._start, self._piece = start, block[start:end]
        self._text = self._piece.decode("utf-8", "replace")
        self._same = len(self._text) == len(self._piece)  # each character is a byte

    def places(self, pattern: re.Pattern[str]) -> Iterator[int]:
        """The positions of the lines that contain what is searched in all of them at once."""
        match = pattern.search(self._text)
        while match:
            yield self._place(match.start())
            end = self._text.find("\n", match.start()) + 1
            match = pattern.search(self._text, end) if end else None

    def places_by_line(self, pattern: re.Pattern[str]) -> Iterator[int]:
        """The same, one line after the other."""
        place = 0
        for line in self._text[: -1 if self._text.endswith("\n") else None].split("\n"):
            if pattern.search(line[:LONGEST]):
                yield self._place(place)
            place += len(line) + 1

    def _place(self, place: int) -> int:
        if self._same:
            begin = self._piece.rfind(b"\n", 0, place) + 1
        else:
            begin = sum(map(len, self._piece.split(b"\n", self._text.count("\n", 0, place))[:-1]))
            begin += self._text.count("\n", 0, place)
        return self._start + begin if begin else self._first


def _is_weak(texts: list[bytes]) -> bool:
    return any(len(shape_of(text)) < _LEAST for text in texts)


def variants(source: str) -> list[str]:
    """An expression that begins with one of few letters, as one for each of them: Python finds a letter much faster."""
    begins = re.match(r"\[([A-Za-z]{2,4})\]", source)
    if not begins or "|" in source or source[begins.end() : begins.end() + 1] in ("*", "?", "{", "+"):
        return [source]
    return [letter + source[begins.end() :] for letter in begins[1]]


def one_of(texts: set[bytes]) -> bytes:
    """An expression for the longest of the texts; its time does not grow with their number."""
    rests: dict[bytes, set[bytes]] = {}
    for text in texts - {b""}:
        rests.setdefault(text[:1], set()).add(text[1:])
    each = [re.escape(first) + one_of(rest) for first, rest in sorted(rests.items())]
    if len(each) == 1 and b"" not in texts:
        return each[0]
    return b"(?:" + b"|".join(each) + b")" + b"?" * (b"" in texts) if each else b""


def _pieces(block: bytes) -> Iterator[tuple[int, int]]:
    """Parts of at most 256 KiB, cut at line ends: what an expression costs may grow with the square of a line."""
    start = 0
    while start < len(block):
        end = min(len(block), start + _PIECE)
        end = block.rfind(b"\n", start, end) + 1 or min(end, start + _LONG_LINE)
        yield start, end
        start = end
