"""Writes a result to a file that is not there yet, or to one that --force gives up."""

from __future__ import annotations

import os

from hccl_tools.build import output
from hccl_tools.common.refusal import misused
from hccl_tools.common.words import one_line


def save(text: str, path: str, force: bool) -> str:
    """Writes `text` to `path`, whole or not at all; returns the absolute path.  Raises Refusal."""
    shown = one_line(path)
    if os.path.exists(path) and not os.path.isfile(path):
        raise misused("{path} is not a regular file; name another one with --output", path=shown)
    if not force and _has_other(path, text):
        raise misused(
            "{path} exists, and nothing was changed; name another file, or replace it with --force", path=shown
        )
    return output.write(text, path)


def _has_other(path: str, text: str) -> bool:
    """Whether a file is there that is not this text already."""
    try:
        with open(path, "rb") as file:
            return file.read(len(text.encode()) + 1) != text.encode()
    except FileNotFoundError:
        return False
    except OSError:  # it cannot be read, and it is there
        return True
