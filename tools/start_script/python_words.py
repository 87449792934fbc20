"""The words of a Python command: what it would run."""

from __future__ import annotations

_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")


def first_of(command: list[str]) -> tuple[str, str]:
    """What Python would run: ("file", its path), ("module", its name), or nothing that is a program of the user's."""
    words = iter(command)
    for word in words:
        if word in _WITH_VALUE:
            next(words, None)
        elif word == "-m":
            return "module", next(words, "")
        elif word == "-" or word.startswith(("-c", "--version", "-V", "-h")):
            break
        elif not word.startswith("-"):
            return "file", word
    return "", ""
