"""The search patterns for logs: texts, and regular expressions with a known text that a matching line contains."""

from __future__ import annotations

import re
from functools import cached_property

from tools.logs import literals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Union

    Want = Union[bytes, "Expression"]

MOST = 200  # finds of one text in one file: what comes a million times states nothing new
LONGEST = 4000  # bytes of a line that are looked at by expressions: what they cost may grow with its square


class Expression:
    """A regular expression for a line; it is compiled when the first line is looked at: most never are."""

    def __init__(self, source: str, texts: tuple[str, ...]) -> None:
        self.source = source
        self.texts = texts  # one of them is in what it takes, in lower case if `caseless`; none: not known
        self.caseless = literals.is_caseless(source)

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The expression for a text of one line, or of many."""
        return re.compile(self.source, re.MULTILINE)

    @cached_property
    def for_blocks(self) -> bool:
        """Whether a search in many lines at once finds each line that it takes."""
        return literals.is_for_blocks(self.source)

    def may_take(self, text: str, lowered: str) -> bool:
        """False where nothing in the text can match.  lowered: the text in lower case."""
        within = lowered if self.caseless else text
        return not self.texts or any(one in within for one in self.texts)


def texts_of(want: Want) -> list[bytes]:
    """Texts, one of which must occur, as bytes; none: any line may match."""
    return [want] if isinstance(want, bytes) else [text.encode() for text in want.texts]


def check_of(want: Want) -> tuple[tuple[bytes, ...], Expression | None]:
    """Texts, one of which is in the line itself, and the expression that decides, if there is one."""
    if isinstance(want, bytes):
        return (want,), None
    return ((b"",) if want.caseless else tuple(texts_of(want))), want


def decoded(line: bytes) -> str:
    """The text that expressions search."""
    return line[:LONGEST].decode("utf-8", "replace")


def line_end(block: bytes, place: int) -> int:
    """The end of the line with this position."""
    end = block.find(b"\n", place)
    return len(block) if end < 0 else end
