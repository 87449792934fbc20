"""Numbers as short text: times, ages, a bar, a curve."""

from __future__ import annotations

import math
import statistics
from datetime import timedelta

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_BARS = "▁▂▃▄▅▆▇█"
_LONGEST = 1e6 * 86400  # seconds that are put into words: a trainer may print any number


def middle(values: Iterable[float | None]) -> float | None:
    """The median of those that are there and finite; None if there are none."""
    there = [value for value in values if value is not None and math.isfinite(value)]
    return statistics.median_low(there) if there else None


def figure(value: float | None) -> str:
    """A number in four digits; nothing for None."""
    return "" if value is None else f"{value:.4g}"


def milliseconds(value: float | None) -> str:
    """Such as "45.1 ms" or "2.31 s"."""
    if value is None:
        return ""
    return f"{value / 1e3:.3g} s" if value >= 1e3 else f"{value:.3g} ms"


def age(seconds: float | None) -> str:
    """Such as "12 s" or "0:02:10"."""
    if seconds is None:
        return ""
    return f"{seconds:.0f} s" if seconds < 100 else clock(seconds)


def clock(seconds: float) -> str:
    """Such as "1:02:03"."""
    return "?" if math.isnan(seconds) else str(timedelta(seconds=int(min(seconds, _LONGEST))))


def bar(share: float | None, width: int) -> str:
    """A bar of `width` characters; nothing where nobody knows how far the job is."""
    if share is None or width < 1:
        return ""
    full = round(share * width)
    return "█" * full + "░" * (width - full)


def curve(values: Iterable[float], width: int) -> str:
    """The newest values as a small curve; gaps where they are not finite."""
    there = [value if math.isfinite(value) else None for value in list(values)[-max(0, width) :]]
    return "" if there.count(None) == len(there) else sparkline(there)


def sparkline(values: Sequence[float | None]) -> str:
    """The values as bars from the least to the largest; x for what is not a number, and a blank for None."""
    finite = [value for value in values if value is not None and math.isfinite(value)]
    low, high = min(finite, default=0), max(finite, default=0)
    half = high / 2 - low / 2 or 1  # the whole difference may be more than a float can be
    return "".join(" " if value is None else _level((value / 2 - low / 2) / half) for value in values)


def _level(height: float) -> str:
    return _BARS[round(height * (len(_BARS) - 1))] if math.isfinite(height) else "x"
