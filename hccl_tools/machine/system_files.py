"""Reads small system files that may be missing: in /proc, /sys and /etc, and those of Ascend's packages."""

from __future__ import annotations

import re

from hccl_tools.common.numbers import whole_number

_LONGEST = 1 << 20  # characters of a file


def read(path: str) -> str | None:
    """The file's text without blanks around it, None where it cannot be read: a container may not have it."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_LONGEST).strip()
    except OSError:
        return None


def number(path: str) -> int | None:
    """The whole number in the file; None where there is none, such as "max"."""
    return whole_number(read(path) or "")


def value(path: str, key: str) -> str | None:
    """The value of a line ``key=value``, without quotes, None where there is none; the case of the key is free."""
    found = re.search(rf"^[ \t]*{re.escape(key)}[ \t]*=(.*)$", read(path) or "", re.MULTILINE | re.IGNORECASE)
    return found[1].strip().strip("\"'") if found else None
