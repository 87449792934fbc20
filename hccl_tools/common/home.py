"""Expands ~ at the beginning of a path; a shell does not expand it in --option=~/folder."""

from __future__ import annotations

import os


def path(text: str) -> str:
    """The path with the user's home folder, or another user's, for ~ at its beginning; ./~ names a file called ~."""
    return os.path.expanduser(text) if text.startswith("~") else text
