"""Formats numbers as short text: times, ages, a bar, a curve, a slow rank."""

from __future__ import annotations

import math
import statistics
from datetime import timedelta

from hccl_tools.common.language import tr
from tools.progress.slowness import BEFORE, DATA

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tools.progress.slowness import Pace

_BARS = "▁▂▃▄▅▆▇█"
_LONGEST = 1e6 * 86400  # seconds that are put into words: a trainer may print any number


def middle(values: Iterable[float | None]) -> float | None:
    """The median of the finite values; None if there are none."""
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
    """A bar of `width` characters; nothing if the progress of the job is unknown."""
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


# ---- Text about a slow rank, the same on the live screen, in the launcher's lines and in its report.


def slow(who: str, pace: Pace) -> str:
    """How much slower than the others the rank `who` is, and in what; and than those of its host, if that differs."""
    text, host = _slow(who, pace), pace.ratio_of_host
    if host is None or f"{host:.1f}" == f"{pace.ratio:.1f}":
        return text
    return tr("{text}; {factor} times the median of its host", text=text, factor=f"{host:.1f}")


def _slow(who: str, pace: Pace) -> str:
    values = {"who": who, "factor": factor(pace.ratio), "times": times(pace.kind, pace.time, pace.median)}
    if pace.kind == DATA:
        return tr("{who} makes each step {factor} times as long ({times})", **values)
    return tr("{who} takes {factor} times as long as the median rank ({times})", **values)


def times(kind: str, time: float, median: float) -> str:
    """The times of a rank and of the median rank; kind: see slowness.Pace; milliseconds."""
    values = {"time": milliseconds(time), "median": milliseconds(median)}
    if kind == BEFORE:
        return tr("{time} against {median}, before the ranks wait for one another", **values)
    if kind == DATA:
        return tr("it waits {time} for data, the median rank {median}", **values)
    return tr("{time} against {median} a step", **values)


def factor(ratio: float) -> str:
    """How many times as long, with enough digits to distinguish it from 1."""
    return f"{ratio:.1f}" if ratio >= 1.1 else f"{ratio:.3f}"
