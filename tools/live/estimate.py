"""Estimates the progress of a job, and when it will end."""

from __future__ import annotations

import math

from hccl_tools.common.record import Row
from tools.live.job import RUNNING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.live.watcher import View
    from tools.progress.ranks import RankProgress

_FARTHEST = 1e9  # seconds from now: a date beyond it is none


class Estimate(Row):
    """The estimates; None: unknown."""

    share: float | None  # of the work that is done, 0 to 1
    left: float | None  # seconds, from the moment of the view
    ends: float | None  # seconds since 1970


def estimate(view: View) -> Estimate:
    """Estimates from epochs and steps; otherwise from the time left that the trainer reports.

    A rank that has been quiet for longer than it had left states nothing of the end any more.
    """
    share, left = _by_lead(view)
    if left is None or view.job.state != RUNNING:
        return Estimate(share, None, None)
    left -= view.lead_age or 0.0
    if left < 0:
        return Estimate(share, None, None)
    return Estimate(share, left, view.date + left if left < _FARTHEST else None)


def _by_lead(view: View) -> tuple[float | None, float | None]:
    """(share, seconds that were left when the rank wrote)."""
    lead = view.lead
    if lead is None:
        return None, None
    done, total = _steps(lead, view.plan)
    step_ms, said = lead.step_ms, lead.number("left")
    if said is not None and not (math.isfinite(said) and said >= 0):
        said = None
    if done is not None and total:
        left = said if said is not None else None if step_ms is None else (total - done) * step_ms / 1e3
        return min(1.0, max(0.0, done / total)), left if left is None else max(0.0, left)
    if said is not None and view.seconds is not None and view.seconds + said > 0:
        return view.seconds / (view.seconds + said), said
    return None, said


def _steps(lead: RankProgress, plan: tuple[int, int] | None) -> tuple[float | None, float | None]:
    """(steps that are done, all steps), of all epochs if their number is known."""
    step, steps = lead.number("step"), lead.number("steps")
    epoch, epochs = lead.number("epoch"), lead.number("epochs")
    first_epoch = lead.first_epoch
    if plan is not None and not steps:
        steps, epochs, first_epoch = plan[0], plan[1], 1
    if step is None or not steps:
        return None, None
    if epochs is None or epoch is None:
        return (step, steps) if epoch is None else (None, None)
    return (epoch - first_epoch) * steps + step, epochs * steps
