"""Aligns text in the columns of a terminal; a Chinese character takes two of them."""

from __future__ import annotations

import unicodedata


def columns(text: str) -> int:
    """The columns that `text` takes on a terminal."""
    return len(text) if text.isascii() else sum(map(_of, text))


def _of(character: str) -> int:
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
        used += _of(character)
        if used > width:
            break
        kept += 1
    return text[:kept] + "…"[: max(0, width)]
