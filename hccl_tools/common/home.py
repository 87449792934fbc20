"""Paths that begin with ~: a shell replaces that at the beginning of a word, and leaves it in --option=~/folder."""

from __future__ import annotations

import os


def path(text: str) -> str:
    """The path with the user's home folder, or another user's, for ~ at its beginning; ./~ names a file called ~."""
    return os.path.expanduser(text) if text.startswith("~") else text
