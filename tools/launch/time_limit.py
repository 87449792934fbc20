"""--stop_before: determines the time limit of the job, from --timeout or from Slurm."""

from __future__ import annotations

import os
import re
import time

from hccl_tools.common.language import tr
from hccl_tools.common.numbers import whole_number
from hccl_tools.machine import programs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.launch.run import Run

WITHIN = 20  # seconds in which Slurm must answer
_LEFT = re.compile(r"(?:(?:(\d{1,4})-)?(\d{1,4}):)?(\d{1,4}):(\d\d)")  # of squeue: days-hours:minutes:seconds


def heed(run: Run) -> None:
    """Asks the ranks to end before the first of these limits."""
    limits = [float(run.settings.timeout)] if run.settings.timeout else []
    left = slurms()
    if left is not None:
        limits.append(left)
    if limits:
        run.supervisor.limits.stop_before(run.settings.stop_before, min(limits))
    else:
        run.say(tr("--stop_before does nothing: the job has no time limit; set one with --timeout SECONDS"))


def slurms() -> float | None:
    """Seconds until Slurm's time limit ends the job that we are in; None: there is none."""
    job = whole_number(os.environ.get("SLURM_JOB_ID", ""))
    if job is None:
        return None
    end = whole_number(os.environ.get("SLURM_JOB_END_TIME", ""))  # since Slurm 22.05
    if end is not None:
        return end - time.time()
    answer = programs.ask(["squeue", "--noheader", "--jobs", str(job), "--format", "%L"], WITHIN)
    return _seconds(answer.stdout.strip())


def _seconds(text: str) -> float | None:
    """The time that is left, as squeue has it, such as 1-02:03:04 or 9:59; None: no time."""
    found = _LEFT.fullmatch(text)
    if not found:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
