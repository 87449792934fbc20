"""Text about a slow rank, the same on the live screen, in the launcher's lines and in its report."""

from __future__ import annotations

from hccl_tools.common.language import tr
from tools.progress.figures import milliseconds
from tools.progress.slowness import BEFORE, DATA

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.progress.slowness import Pace


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
    """What a rank takes, and the median rank; kind: see slowness.Pace; milliseconds."""
    values = {"time": milliseconds(time), "median": milliseconds(median)}
    if kind == BEFORE:
        return tr("{time} against {median}, before the ranks wait for one another", **values)
    if kind == DATA:
        return tr("it waits {time} for data, the median rank {median}", **values)
    return tr("{time} against {median} a step", **values)


def factor(ratio: float) -> str:
    """How many times as long, with as many digits as tell it from 1."""
    return f"{ratio:.1f}" if ratio >= 1.1 else f"{ratio:.3f}"
