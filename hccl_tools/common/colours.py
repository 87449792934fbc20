"""Colours for people at a terminal; files, pipes, logs and JSON never get them.  And columns of text there.

A line with a colour is a `Styled` text.  Code that does not handle colours sees only the text.  Code that writes to a
terminal asks `wanted` about that stream.  It adds the escapes as its last step, after the text was made harmless.
Colour adds no information: each style only repeats what the text states.  The sixteen usual colours are those that the
terminal's user has chosen to read.  Whole lines are bold, or bold and red.  Other colours mark one word of a line.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FAILURE, HEAD = "failure", "head"  # for a whole text: what failed, and the names of columns
GOOD, CAUTION, FACT, FAINT = "good", "caution", "fact", "faint"  # for a word
LABEL, WARNING, MISTAKE = "label", "warning", "mistake"  # for what is before the first colon of a text

CODES = {
    FAILURE: "1;31",
    HEAD: "1",
    GOOD: "32",
    CAUTION: "33",
    FACT: "36",
    FAINT: "2",
    LABEL: "36",
    WARNING: "33",
    MISTAKE: "1;31",
}
_OF_LABELS = (LABEL, WARNING, MISTAKE)
_COLONS = ":："  # the second one is Chinese


class Styled(str):
    """A text for people, with the style that it has on a terminal."""

    __slots__ = ("style",)
    style: str


def styled(text: str, style: str) -> Styled:
    """The text in this style, one of CODES."""
    found = Styled(text)
    found.style = style
    return found


def style_of(text: str) -> str:
    """The style of the text; "" if it has none."""
    return text.style if isinstance(text, Styled) else ""


def wanted(stream: Any) -> bool:
    """Whether the stream, a descriptor or a file, is a terminal whose user wants colours (see no-color.org)."""
    if stream is None or os.environ.get("NO_COLOR") or os.environ.get("TERM", "") in ("", "dumb"):
        return False
    return os.isatty(stream) if isinstance(stream, int) else bool(stream.isatty())


def shown(text: str, style: str, coloured: bool = True) -> str:
    """The text, which is harmless, as a terminal gets it.  coloured: what `wanted` states about that."""
    if not coloured or not style:
        return text
    size = len(text)
    if style in _OF_LABELS:
        size = min((place + 1 for place in map(text.find, _COLONS) if place >= 0), default=0)
    return f"\x1b[{CODES[style]}m{text[:size]}\x1b[0m{text[size:]}" if size else text


def columns(text: str) -> int:
    """The columns that `text` takes on a terminal."""
    return len(text) if text.isascii() else sum(map(_width, text))


def _width(character: str) -> int:
    import unicodedata  # not on the path of a launch

    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def padded(text: str, width: int, left: bool = True) -> str:
    """The text with blanks to this width, on the left or on the right of its column."""
    blanks = " " * (width - columns(text))
    return text + blanks if left else blanks + text


def cut(text: str, width: int) -> str:
    """The text, or its beginning and an ellipsis, so that it takes at most this width."""
    if columns(text) <= width:
        return text
    kept, used = 0, 1
    for character in text:
        used += _width(character)
        if used > width:
            break
        kept += 1
    return text[:kept] + "…"[: max(0, width)]
