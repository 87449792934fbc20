"""Formats times in UTC as our documents have them: 2026-01-31T12:00:00Z."""

from __future__ import annotations

import time

_FORM = "%Y-%m-%dT%H:%M:%SZ"


def text(seconds: float | None = None) -> str:
    """Formats a time in seconds since 1970; None: now."""
    return time.strftime(_FORM, time.gmtime(seconds))


def seconds(text: object) -> float | None:
    """Parses such a time to seconds since 1970; None if the text is not such a time."""
    from calendar import timegm  # 3 ms that only readers need

    try:
        return float(timegm(time.strptime(str(text), _FORM)))
    except (ValueError, OverflowError):
        return None
