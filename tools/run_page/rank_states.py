"""What became of each rank in the last attempt, as one word of a few: for what shows all ranks at once."""

from __future__ import annotations

from hccl_tools.common.language import tr
from hccl_tools.common.record import Record
from tools.diagnosis.run import STOPPED_BY_US
from tools.history.listing import RUNNING
from tools.run_page import explained, named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.run_page.named import Named
    from tools.run_page.reading import Attempt, RunData

# The most important first.
FIRST, FAILED, APART, SLOW, SILENT, UNKNOWN, STOPPED, RUNS, GOOD = (
    *("first", "failed", "apart", "slow", "silent"),
    *("unknown", "stopped", "runs", "good"),
)
ORDER = (FIRST, FAILED, APART, SLOW, SILENT, UNKNOWN, STOPPED, RUNS, GOOD)
PROBLEMS = (FIRST, FAILED, APART, SLOW, SILENT)
MARKS = {FIRST: "✕", FAILED: "✕", APART: "‖", SLOW: "!", SILENT: "–", UNKNOWN: "?"}  # a colour alone says too little


class State(Record):
    """Of one rank."""

    how: str
    status: int | None


def of(data: RunData, names: dict[int, Named]) -> dict[int, State]:
    """{rank: State} of all ranks of the plan."""
    attempt, silent, roots = data.attempts[-1], _silent(data), explained.roots_of(data)
    found = {}
    for rank in data.ranks:
        status = attempt.members.get(str(rank.rank), {}).get("status")
        status = status if type(status) is int else None
        why = names[rank.rank].why if rank.rank in names else ()
        how = _how(attempt, str(rank.rank), status, data.run.state == RUNNING)
        if rank.rank in roots:
            how = FIRST
        elif how not in (FIRST, FAILED):
            if named.HUNG in why:
                how = APART
            elif named.SLOW in why:
                how = SLOW
            elif rank.rank in silent:
                how = SILENT
        found[rank.rank] = State(how=how, status=status)
    return found


def _how(attempt: Attempt, name: str, status: int | None, runs: bool) -> str:
    if name == attempt.first_failure or name in attempt.also_failed:
        return FAILED
    if status is None:
        return RUNS if runs else UNKNOWN
    if status == 0:
        return GOOD
    if attempt.stopped_by and attempt.first_failure is None:
        return STOPPED  # the stack of a rank that hangs comes with SIGABRT
    return STOPPED if status in STOPPED_BY_US else FAILED


def _silent(data: RunData) -> set[int]:
    """Ranks whose log of the last attempt is here and has no number, where the logs of most ranks have some."""
    last = {rank: logs[-1] for rank, logs in data.logs.items() if len(logs) == len(data.attempts)}
    found = {rank for rank, log in last.items() if not log.columns and not log.metrics}
    return found if 2 * len(found) < len(last) else set()


def words() -> dict[str, str]:
    """{state: what it is called}"""
    return {
        FIRST: tr("failed first"),
        FAILED: tr("failed"),
        APART: tr("elsewhere than the others, when the job hung"),
        SLOW: tr("slow"),
        SILENT: tr("no numbers in its log"),
        UNKNOWN: tr("its end is not known"),
        STOPPED: tr("was stopped"),
        RUNS: tr("runs"),
        GOOD: tr("ended with 0"),
    }
