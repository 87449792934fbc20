"""The steps of a job's life at which a feature can act; docs/extending.md has an example."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tools.launch.run import Run
    from tools.supervise.events import Heard
    from tools.supervise.members import Member


class Feature:
    """One feature of one launch; it overrides the steps that it handles."""

    def __init__(self, run: Run) -> None:
        self.run = run

    # ---- before and between attempts ---------------------------------------------------------------------------------

    def opened(self) -> None:
        """Called when signals are handled and the guardian watches, before any rank has started."""

    def is_ready(self) -> bool:
        """Waits until the attempt may begin; False: it does not."""
        return True

    def begins(self) -> None:
        """Called when an attempt begins: its ranks start next."""

    def attempt_ended(self) -> None:
        """Called when no process of the attempt is left."""

    def wants_restart(self, number: int) -> bool:
        """Called after a failure, before any work for restart `number`; False: it would not help, so there is none."""
        return True

    def may_restart(self, number: int) -> bool:
        """Called when the folder for the logs of restart `number` exists; False: it is impossible, so there is none."""
        return True

    def again(self, number: int) -> None:
        """Called when restart `number` will come, after a pause."""

    def next_plan(self) -> None:
        """Changes the plan of the next attempt."""

    def logs_moved(self, old: str) -> None:
        """Called when the next attempt has its own logs; old: the folder of the last attempt's."""

    # ---- while an attempt runs ---------------------------------------------------------------------------------------

    def failed(self, member: Member, goes_on: bool) -> None:
        """Called when the member failed first, or with --keep_going at any time; the others still run."""

    def hangs(self) -> None:
        """Called when no rank has written for too long; all of them still run."""

    def handed(self) -> None:
        """Called when TaskD takes over the ranks; from then on it decides what their ends mean."""

    def healed(self, member: Member) -> None:
        """Called when a rank that TaskD has taken over failed and may start again, or has started again."""

    def ending(self, asks: bool) -> None:
        """Called before the members get SIGTERM, for any reason; asks: as a request to save and to end."""

    def stops(self) -> None:
        """Called often while the members stop, for any reason, until they have ended."""

    def check(self) -> None:
        """Called when nothing has happened for a while."""

    def heard(self, event: Heard) -> None:
        """Called with a line from a helper process of the launcher."""

    # ---- the end -----------------------------------------------------------------------------------------------------

    def finishing(self) -> None:
        """Called when the last attempt has ended, before the exit code is known."""

    def settle(self, status: int) -> None:
        """Called when the exit code is known, before anything is reported."""

    def fell_silent(self) -> None:
        """Called when all processes next to the launcher have sent their last lines, before the report."""

    def outcome(self, outcome: dict[str, Any]) -> None:
        """Adds to what launch.json gets about the attempt that has ended."""

    def reported(self, trouble: str) -> None:
        """Called when the table of ranks is printed; trouble: why the outcome is not in launch.json, or ""."""

    # ---- answers -----------------------------------------------------------------------------------------------------

    def others_status(self) -> int:
        """The exit code that other hosts' launchers give this one."""
        return 0

    def others_host(self) -> str:
        """The host whose failure, signal or limit also ended the attempt on this host."""
        return ""

    def others_end(self) -> bool:
        """Whether other hosts' launchers have ended the job."""
        return False

    def others_again(self) -> bool:
        """Whether other hosts' launchers start the job again."""
        return False

    def how_far(self) -> tuple[int, int, int, str] | None:
        """How far the attempt came that has ended: the step, that of the attempts before, whether there is a checkpoint
        that is further than all before, and why a restart would not help.  None: this feature does not know."""
        return None

    def in_vain(self) -> int:
        """How many restarts in a row did not help, including the attempt that has ended."""
        return 0

    def why_not_ready(self) -> str:
        """Why the next attempt cannot begin on this host."""
        return ""

    def lost_ranks(self) -> set[int]:
        """The ranks of a host that the engine has lost."""
        return set()

    def look_for_lost_host(self) -> str:
        """The host that the engine has lost, as the plan names it."""
        return ""

    def what_failed(self) -> str:
        """Which member has failed first, and how."""
        return ""
