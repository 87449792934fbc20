"""Makes text from outside safe: without terminal control characters in messages, and quoted as a shell word."""

from __future__ import annotations

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./,:=@%+-")
_SPECIAL = frozenset(" !\"$&'()*,;<>?[\\]^`{|}")  # what bash's printf %q writes with a backslash
_NAMED = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 27: "\\E", 39: "\\'", 92: "\\\\"}


def harmless(text: str) -> str:
    r"""The text without terminal control characters, in one line; all other text stays as it is.

    Control characters other than the tab, ends of lines, changes of the direction of text, and bytes that are not UTF-8
    (as os.fsdecode gives them) become \x1b and the like, the two ends of a line \n and \r.
    """
    return text if text.isprintable() else "".join(_visible(c) if _is_dangerous(c) else c for c in text)


def quote(text: str) -> str:
    """The text as one word of a shell, and in one harmless line: quoted only if it needs that."""
    return text if text and _PLAIN.issuperset(text) else quoted(text)


def quoted(text: str) -> str:
    """The same as bash's printf %q writes it: commas have a backslash, too."""
    if any(map(_is_dangerous, text)):
        return "$'" + "".join(_NAMED.get(byte) or _number(byte) for byte in _bytes(text)) + "'"
    if "\t" in text:
        return "$'" + "".join(_NAMED.get(ord(c), c) for c in text) + "'"
    return "".join(_backslashed(text, at) for at in range(len(text))) or "''"


def _is_dangerous(c: str) -> bool:
    return (
        (c < " " and c != "\t")
        or "\x7f" <= c <= "\x9f"
        or "\u2028" <= c <= "\u202e"
        or "\u2066" <= c <= "\u2069"
        or "\ud800" <= c <= "\udfff"
    )


def _visible(c: str) -> str:
    return _NAMED[ord(c)] if c in "\n\r" else "".join(f"\\x{byte:02x}" for byte in _bytes(c))


def _bytes(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half a character, which no command line has
        return text.encode("utf-8", "surrogatepass")


def _number(byte: int) -> str:
    return chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}"


def _backslashed(text: str, at: int) -> str:
    """A character in its place.  A tilde is a home folder at the start and in an assignment; # begins a comment."""
    c = text[at]
    special = c in _SPECIAL or (c == "#" and not at) or (c == "~" and (not at or text[at - 1] in "=:"))
    return f"\\{c}" if special else c
