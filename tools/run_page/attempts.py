"""The attempts of a run that was restarted: how far each came, and why it ended."""

from __future__ import annotations

from hccl_tools.common.language import tr
from hccl_tools.common.words import one_line
from tools.diagnosis import hang
from tools.history.listing import LOST, RUNNING
from tools.run_page import explained

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.run_page.reading import RunData


def why(data: RunData, number: int) -> str:
    """One sentence: why the attempt `number`, from 0 on, as in data.attempts, ended."""
    attempt = data.attempts[number]
    found = explained.of(data, number, most=1) if attempt.first_failure is not None else None
    if found is not None:
        return found.sentence
    if attempt.lost_host:
        return tr("the host {host} was lost", host=one_line(attempt.lost_host))
    if attempt.stopped_by:
        return stopped(data, number)
    if attempt.exit is not None:
        return tr("ended with exit code {status}", status=attempt.exit) if attempt.exit else tr("ended well")
    if number < len(data.attempts) - 1 or data.run.state not in (RUNNING, LOST):
        return tr("its end is not known")
    return tr("still runs") if data.run.state == RUNNING else tr("its launcher was killed")


def stopped(data: RunData, number: int) -> str:
    """What ended an attempt of which no rank failed."""
    attempt = data.attempts[number]
    what = attempt.stopped_by or ""
    if what == "hang":
        outcome = {"stopped_by": what, "logs": explained.logs_of(data, number)}
        return hang.of_run({**data.launch, "outcome": outcome}, data.folder)
    if what == "timeout":
        return tr("the time limit of --timeout was reached")
    if what.startswith("SIG") and what.isalnum():
        return tr("the launcher got {signal}, and stopped the ranks", signal=what)
    return tr("{host} ended the job", host=one_line(what))
