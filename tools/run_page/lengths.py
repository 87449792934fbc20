"""Seconds as people read them, and the marks of an axis of time."""

from __future__ import annotations

_UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))
_EVERY = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)
_MOST = 7  # marks after the first one


def text(seconds: float) -> str:
    """``9.5 s``, ``86 s``, ``35 min 10 s``, ``2 h 15 min``, ``3 d 4 h``."""
    if seconds < 119.5:
        return f"{seconds:.1f} s" if seconds < 99.95 and round(seconds, 1) % 1 else f"{seconds:.0f} s"
    whole = round(seconds)
    for size, unit in _UNITS[:-1]:
        if whole >= size:
            below, small = _UNITS[_UNITS.index((size, unit)) + 1]
            rest = whole % size // below
            return f"{whole // size} {unit}" + (f" {rest} {small}" if rest else "")
    return f"{whole} s"


def span(begin: float, end: float) -> str:
    """``0 s – 32.6 s``; once, where both are the same."""
    words = [text(begin), text(end)]
    return " – ".join(dict.fromkeys(words))


def marks(seconds: float) -> list[tuple[float, str]]:
    """(seconds, text) of the marks of an axis from 0 on: at round numbers, in one unit, few enough to be read."""
    every = _every(seconds)
    size, unit = next(((size, unit) for size, unit in _UNITS if every >= size and every % size == 0), (1, "s"))
    number = int(seconds / every + 1e-9)
    return [(mark * every, _mark(mark * every / size, unit)) for mark in range(number + 1)]


def _mark(value: float, unit: str) -> str:
    return f"{value:g} {unit}" if value else "0"


def _every(seconds: float) -> float:
    for every in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, *_EVERY):
        if seconds <= every * _MOST:
            return every
    every = float(_EVERY[-1])
    while seconds > every * _MOST:  # days: 2, 4, 8 ...
        every *= 2
    return every
