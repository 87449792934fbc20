"""How far a job is, and when it will end."""

from __future__ import annotations

import math

from hccl_tools.common.record import Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.live.watcher import View
    from tools.progress.ranks import RankProgress


class Estimate(Row):
    """What is not known is None."""

    share: float | None  # of the work that is done, 0 to 1
    left: float | None  # seconds


def estimate(view: View) -> Estimate:
    """By epochs and steps; else by the time that the trainer says is left."""
    lead = view.lead
    if lead is None:
        return Estimate(None, None)
    done, total = _steps(lead)
    step_ms, said = lead.step_ms, lead.number("left")
    if said is not None and not math.isfinite(said):
        said = None
    if done is not None and total:
        left = said if said is not None else None if step_ms is None else (total - done) * step_ms / 1e3
        return Estimate(min(1.0, max(0.0, done / total)), left if left is None else max(0.0, left))
    if said is not None and view.seconds is not None and view.seconds + said > 0:
        return Estimate(view.seconds / (view.seconds + said), said)
    return Estimate(None, said)


def _steps(lead: RankProgress) -> tuple[float | None, float | None]:
    """(steps that are done, all steps), of all epochs if their number is known."""
    step, steps = lead.number("step"), lead.number("steps")
    epoch, epochs = lead.number("epoch"), lead.number("epochs")
    if step is None or not steps:
        return None, None
    if epochs is None or epoch is None:
        return (step, steps) if epoch is None else (None, None)
    return (epoch - lead.first_epoch) * steps + step, epochs * steps
