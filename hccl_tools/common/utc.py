"""Formats times in UTC as our documents have them: 2026-01-31T12:00:00Z."""

from __future__ import annotations

import time

_FORM = "%Y-%m-%dT%H:%M:%SZ"


def text(seconds: float | None = None) -> str:
    """The time of so many seconds since 1970; None: now."""
    return time.strftime(_FORM, time.gmtime(seconds))


def seconds(text: object) -> float | None:
    """The seconds since 1970 of such a time; None if it is none."""
    from calendar import timegm  # 3 ms that only readers need

    try:
        return float(timegm(time.strptime(str(text), _FORM)))
    except (ValueError, OverflowError):
        return None
