"""Parses the arguments of a Python command: which file or module it would run."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

_PYTHON = re.compile(r"python[\d.]*|pypy[\d.]*")
_CHECKS = "--check-hash-based-pycs"  # the one long option with a value
# Letters of options: with what follows it runs something else, or nothing, than a program; with a value.
_OTHER, _WITH_VALUE = "cVh?", "WX"


def is_python(program: str) -> bool:
    """Whether the program is a Python, with or without a path."""
    return bool(_PYTHON.fullmatch(os.path.basename(program)))


def first_of(words: Sequence[str]) -> tuple[str, str]:
    """What Python would run: ("file", its path), ("module", its name), or nothing if it is not the user's program."""
    kind, named, _ = parts(words)
    return kind, named


def parts(words: Sequence[str]) -> tuple[str, str, int]:
    """The same, and the number of words before those of the program."""
    at = 0
    while at < len(words):
        word, at = words[at], at + 1
        if word == "--":
            return ("file", words[at], at + 1) if at < len(words) else ("", "", at)
        if word == _CHECKS:
            at += 1
        elif word == "-" or word in ("--version", "--help"):
            break
        elif not word.startswith("-"):
            return "file", word, at
        elif not word.startswith("--"):
            letter, value = _last(word[1:])
            following = words[at] if at < len(words) else ""
            if letter == "m":
                return "module", value or following, at + (not value)
            if letter and letter in _OTHER:
                break
            at += letter != "" and not value
    return "", "", at


def _last(letters: str) -> tuple[str, str]:
    """The first of these letters that has a value or ends the options, and what is attached to it; empty: none does."""
    at = next((at for at, letter in enumerate(letters) if letter in f"m{_OTHER}{_WITH_VALUE}"), len(letters))
    return letters[at : at + 1], letters[at + 1 :]
