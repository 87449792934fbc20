"""Formats text for people: harmless text from outside, readable lists and counts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from hccl_tools.common.language import speaks_chinese, strerror, tr


def one_line(text: object) -> str:
    """`text` with visible forms of the characters that would break a line; others stay as they are."""
    text = str(text)
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def short(text: object, limit: int = 60) -> str:
    """`text` in one line, cut to `limit` characters for a message."""
    text = one_line(str(text)[: limit + 1])
    return text if len(text) <= limit else text[: limit - 3] + "..."


def short_path(path: str) -> str:
    """`path` as it can be named from the current folder."""
    try:
        below = os.getcwd() + os.sep
    except OSError:  # the current folder is gone; the launcher names everything from the root
        return path
    path = os.path.join(below, path)
    return path[len(below) :] if path.startswith(below) else path


def folder_fault() -> str | None:
    """Why the current folder, the base of relative paths, cannot be used; None if it can."""
    try:
        os.getcwd()
    except OSError as error:
        return tr("the current folder cannot be used: {reason}; change to another one", reason=strerror(error))
    return None


def shown(value: object, limit: int = 60) -> str:
    """`value` as JSON would write it, cut to `limit` characters for a message."""
    import json  # not at the top: only messages need it

    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):  # YAML has dates and sets, JSON has not
        text = repr(value)
    return short(text, limit)


def ranges(numbers: Iterable[int]) -> str:
    """Numbers as ``0-2,5``: sorted, each once, runs of three or more as a range."""
    ordered = sorted(set(numbers))
    parts: list[str] = []
    start = 0
    for index, number in enumerate(ordered):
        if index + 1 < len(ordered) and ordered[index + 1] == number + 1:
            continue
        run = ordered[start : index + 1]
        parts += [f"{run[0]}-{run[-1]}"] if len(run) > 2 else map(str, run)
        start = index + 1
    return ",".join(parts)


def some(names: Sequence[str], most: int) -> str:
    """``a, b and 3 more``: at most this number of names."""
    shown = ", ".join(names[:most])
    return tr("{names} and {number} more", names=shown, number=len(names) - most) if len(names) > most else shown


def clauses(*parts: str) -> str:
    """Clauses as one sentence, with the punctuation of the user's language between them."""
    return ("；" if speaks_chinese() else "; ").join(parts)


def listed(parts: Iterable[str]) -> str:
    """Words or short phrases one after the other, likewise."""
    return ("，" if speaks_chinese() else ", ").join(parts)


def count(number: int, noun: str) -> str:
    """``1 rank``, ``4 ranks``."""
    if speaks_chinese():
        noun = tr(noun)
        return f"{number} 个{' ' if noun.isascii() else ''}{noun}"
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def named(noun: str, numbers: Iterable[int]) -> str:
    """``device 4``, ``devices 4-7``, ``ranks 0,2``."""
    listed = ranges(numbers)
    if speaks_chinese():
        return f"{tr(noun)} {listed}"
    return f"{noun} {listed}" if listed.isdigit() else f"{noun}s {listed}"


def size_of(number: int) -> str:
    """A number of bytes: ``512 bytes``, ``8.1 KB``, ``3.4 GB``."""
    size, units = float(number), ["KB", "MB", "GB"]
    if number < 1000:
        return f"{number} bytes"
    while (size := size / 1000) >= 1000 and len(units) > 1:
        units.pop(0)
    return f"{size:.1f} {units[0]}"


def with_home(text: str) -> str:
    """The path with the user's home folder, or another user's, for ~ at its beginning; ./~ names a file called ~.

    A shell does not expand it in --option=~/folder.
    """
    return os.path.expanduser(text) if text.startswith("~") else text
