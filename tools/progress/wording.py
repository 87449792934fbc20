"""Text about a slow rank."""

from __future__ import annotations

from hccl_tools.common.language import tr
from tools.progress.figures import milliseconds
from tools.progress.slowness import BEFORE, DATA

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.progress.slowness import Pace


def slow(who: str, pace: Pace) -> str:
    """How much slower than the others the rank `who` is, and in what."""
    values = {
        "who": who,
        "ratio": f"{pace.ratio:.2f}",
        "time": milliseconds(pace.time),
        "median": milliseconds(pace.median),
    }
    if pace.kind == BEFORE:
        return tr(
            "{who} takes {ratio} times as long as the median rank: {time} a step before it waits for others, against "
            "{median}",
            **values,
        )
    if pace.kind == DATA:
        return tr(
            "{who} makes a step {ratio} times as long: it waits {time} a step for data, the median rank {median}",
            **values,
        )
    return tr("{who} takes {ratio} times as long as the median rank: {time} a step, against {median}", **values)
