"""Files of lines ``key=value``, as Ascend's packages and systems write them."""

from __future__ import annotations

import re

_LONGEST = 1 << 20  # characters of a file


def value(path: str, key: str) -> str | None:
    """The value of the key, without quotes, None where there is none; the case of the key is free."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(_LONGEST)
    except OSError:
        return None
    match = re.search(rf"^\s*{re.escape(key)}\s*=\s*(.*?)\s*$", text, re.MULTILINE | re.IGNORECASE)
    return match[1].strip("\"'") if match else None
