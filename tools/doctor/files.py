"""The system files that the doctor reads; see system_files.py."""

from __future__ import annotations

import re

from hccl_tools.machine import system_files

ROOT = ""  # the folder that replaces / in tests


def read(path: str) -> str | None:
    """The file's text without blanks around it, None where it cannot be read."""
    return system_files.read(ROOT + path)


def setting(path: str, key: str) -> str | None:
    """The value of ``key=value`` in a file, without quotes, None where there is none; the case of the key is free."""
    return system_files.value(ROOT + path, key)


def number(path: str) -> int | None:
    """The file's text as an int, None where it is not a number ("max", or there is no file)."""
    text = read(path)
    return int(text) if text and re.fullmatch("[0-9]{1,20}", text) else None
