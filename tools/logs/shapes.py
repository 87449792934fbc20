"""Finds the lines that may contain any of thousands of texts, in pure Python, because logs repeat themselves.

A line's shape is the line without numbers and addresses; a log of gigabytes has some thousands of shapes.  Each shape
is searched once.  Only lines whose shape may contain a text are examined one by one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from itertools import accumulate

from tools.logs.direct import Directly
from tools.logs.literals import shape_of
from tools.logs.wanted import MOST, check_of, decoded, line_end, texts_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.logs.wanted import Want

_PIECE = 512 << 10
_POPULAR = 400  # lines of a piece
_MOST_SHAPES, _MOST_BYTES = 100_000, 16 << 20
_MOST_WORDS, _LONG_WORD = 200_000, 40
_SPECIAL = frozenset(b".^$*+?{}[]\\|()")  # in expressions
_SPACES = bytes(byte if byte > 127 or bytes((byte,)).isalpha() else 32 for byte in range(256))


class Shapes:
    """A search that knows the shapes it has seen, and which texts may be in each."""

    def __init__(self, wanted: list[Want]) -> None:
        self._wanted = wanted
        self._checks = list(map(check_of, wanted))
        self.found = [0] * len(wanted)
        self._quiet: set[bytes] = set()  # shapes without a text
        self._loud: dict[bytes, tuple[int, ...]] = {}  # shapes, and what may be in their lines
        self._held = 0  # bytes of both
        self._words: set[bytes] = set()  # seen in shapes
        self._numbers: dict[bytes, list[int]] = {}  # by the shape of a text
        self._missing: dict[bytes, int] = {}  # by this shape: how many of its words were not seen yet
        self._asleep: dict[bytes, list[bytes]] = {}  # by each of those words: the shapes
        self._awake: list[bytes] = []  # shapes of which all words were seen
        self._directly = Directly(wanted)
        for number, want in enumerate(wanted):
            if number not in self._directly.numbers:
                for text in texts_of(want):
                    self._await(shape_of(text), number)

    def _await(self, shape: bytes, number: int) -> None:
        self._numbers.setdefault(shape, []).append(number)
        if len(self._numbers[shape]) == 1:
            words = _words_of(shape)
            self._missing[shape] = len(words)
            for word in words:
                self._asleep.setdefault(word, []).append(shape)
            if not words:
                self._awake.append(shape)

    def restart(self) -> None:
        """A new file begins."""
        self.found = [0] * len(self.found)

    def find(self, block: bytes) -> list[tuple[int, int]]:
        """[(where in a line, number of what is wanted)] in the block, sorted; at most MOST of each in a file.

        What is found in a line twice may come twice.  `found` counts texts beyond MOST, too.
        """
        hits: list[tuple[int, int]] = []
        end = 0
        while end < len(block):
            start, end = end, _whole_lines(block, end)
            self._find(block[start:end], start, hits)
        self._directly.find(block, self.found, hits)
        return sorted(hits)

    def _find(self, piece: bytes, place: int, hits: list[tuple[int, int]]) -> None:
        shapes = shape_of(piece).split(b"\n")
        each = set(shapes)
        fresh = self._fresh(each)
        if fresh:
            self._learn(sorted(fresh))
        if not any(map(self._loud.__contains__, each)):
            return
        popular = self._popular(shapes, piece.isascii())
        for number in popular:
            self._throughout(number, piece, place, hits)
        for line, shape in zip(piece.split(b"\n"), shapes):
            for number in self._loud.get(shape, ()):
                if number not in popular and self._is_in(number, line):
                    self._count(number, place, hits)
            place += len(line) + 1

    def _fresh(self, shapes: set[bytes]) -> set[bytes]:
        """Those that are not known.  Where these become too many, all are forgotten: it costs time, not lines."""
        fresh = shapes.difference(self._quiet).difference(self._loud)
        size = sum(map(len, fresh))
        if len(self._quiet) + len(self._loud) + len(fresh) > _MOST_SHAPES or self._held + size > _MOST_BYTES:
            self._quiet.clear()
            self._loud.clear()
            self._held, fresh, size = 0, shapes, sum(map(len, shapes))
        self._held += size
        return fresh

    def _popular(self, shapes: list[bytes], plain: bool) -> set[int]:
        """What may be in so many lines that it is found sooner by a search in all of them."""
        lines: dict[int, int] = {}
        for shape, times in Counter(shapes).items():
            for number in self._loud.get(shape, ()):
                lines[number] = lines.get(number, 0) + times
        return {
            number
            for number, times in lines.items()
            if times > _POPULAR and (isinstance(self._wanted[number], bytes) or self._is_quick(number, plain))
        }

    def _is_quick(self, number: int, plain: bool) -> bool:
        """Whether Python searches for the expression by its first letters, and bytes mean the same as characters."""
        texts, expression = self._checks[number]
        return self.found[number] >= MOST or bool(
            plain
            and expression
            and expression.for_blocks
            and texts[0]
            and expression.source.encode().startswith(texts)
            and not _SPECIAL.intersection(texts[0])
        )

    def _throughout(self, number: int, piece: bytes, place: int, hits: list[tuple[int, int]]) -> None:
        (text, *_), expression = self._checks[number]
        if expression is None:
            found = piece.find(text)
            while found >= 0 and self.found[number] < MOST:
                self._count(number, place + found, hits)
                found = piece.find(text, line_end(piece, found))
            self.found[number] += piece.count(text, found) if found >= 0 else 0
            return
        text_of_all = piece.decode("ascii", "replace")  # see _popular: it is ASCII
        search = expression.pattern.search
        match = search(text_of_all) if self.found[number] < MOST else None
        while match:
            begin, end = piece.rfind(b"\n", 0, match.start()) + 1, line_end(piece, match.start())
            if self._is_in(number, piece[begin:end]):
                self._count(number, place + begin, hits)
            match = search(text_of_all, end) if self.found[number] < MOST else None

    def _is_in(self, number: int, line: bytes) -> bool:
        texts, expression = self._checks[number]
        for text in texts:  # any() takes three times as long
            if text in line:
                break
        else:
            return False
        if expression is None:
            return True
        return self.found[number] < MOST and bool(expression.pattern.search(decoded(line)))

    def _count(self, number: int, place: int, hits: list[tuple[int, int]]) -> None:
        self.found[number] += 1
        if self.found[number] <= MOST:
            hits.append((place, number))

    def _learn(self, fresh: list[bytes]) -> None:
        """What may be in these shapes."""
        text = b"\n".join(fresh)
        self._wake(text)
        starts = list(accumulate((len(shape) + 1 for shape in fresh), initial=0))
        rows: dict[int, dict[int, None]] = {}
        for shape in self._awake:
            place = text.find(shape)
            while place >= 0:
                row = bisect_right(starts, place) - 1
                rows.setdefault(row, {}).update(dict.fromkeys(self._numbers[shape]))
                place = text.find(shape, starts[row + 1])
        self._loud.update((fresh[row], tuple(numbers)) for row, numbers in rows.items())
        self._quiet.update(shape for row, shape in enumerate(fresh) if row not in rows)

    def _wake(self, text: bytes) -> None:
        """A text can only be there if all its words are."""
        words = set(text.translate(_SPACES).split()).difference(self._words)
        if not words or not self._asleep:
            return
        if len(self._words) > _MOST_WORDS:
            self._words.clear()
        self._words.update(word for word in words if len(word) < _LONG_WORD)
        together = b" " + b" ".join(words) + b" "
        # A whole word, most are, needs no search: in a line of megabytes a thousand of them would take seconds.
        for word in [word for word in self._asleep if (word[1:-1] in words if _is_whole(word) else word in together)]:
            for shape in self._asleep.pop(word):
                self._missing[shape] -= 1
                if not self._missing[shape]:
                    self._awake.append(shape)


def _is_whole(word: bytes) -> bool:
    """Whether it has a space on both sides."""
    return word[:1] == b" " == word[-1:]


def _words_of(shape: bytes) -> set[bytes]:
    """Each with the spaces around it: the first and the last one may be a part of a longer word."""
    parts = shape.translate(_SPACES).split(b" ")
    last = len(parts) - 1
    return {b" " * (row > 0) + part + b" " * (row < last) for row, part in enumerate(parts) if part}


def _whole_lines(block: bytes, start: int) -> int:
    """Where so many lines end as have 512 KiB, or one line that is longer."""
    end = min(len(block), start + _PIECE)
    return block.rfind(b"\n", start, end) + 1 or min(len(block), line_end(block, end) + 1)
