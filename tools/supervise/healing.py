"""Ranks that another program kills and starts again: MindCluster's TaskD, inside msrun.

While TaskD controls them, it handles the end of a rank.  The end of msrun decides how the job has ended.
"""

from __future__ import annotations

from hccl_tools.common.language import tr

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.supervise.loop import Supervisor
    from tools.supervise.members import Member

KILLED = (137, 143)  # SIGKILL and SIGTERM: so the other program ends ranks
FIRST_BY = 1.0  # seconds; a rank that was killed so long before the others was not killed with them
# Seconds that msrun may take to end when all ranks of this host have ended with 0.  Other hosts may still need them.
SETTLES, SETTLES_WITH_OTHERS = 60.0, 600.0


class Healing:
    """to: the program that has the ranks; "" while no other program has them."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._job = supervisor
        self.to = ""
        self.again()

    def again(self) -> None:
        """Forgets the attempt that has ended."""
        self.to = ""
        self._ends_at: float | None = None

    def begin(self, to: str) -> None:
        """The engine has given the ranks to this program."""
        self.to = to
        self._job.hooks.handed()

    @property
    def on(self) -> bool:
        """Whether the other program still has the ranks: it ends with the engine."""
        engine = self._job.members.get(self._job.engine.name) if self.to else None
        return engine is not None and engine.status is None

    def has_ended(self, member: Member) -> bool:
        """A member has ended while nothing stops the job; whether that is the other program's business."""
        if not self.on:
            return False
        member.handed = True
        if member.status and member.rank is not None:
            self._job.hooks.healed(member)
        self._job.limits.log_has_grown()
        return True

    def started_again(self, old: Member) -> Member:
        """The rank has begun once more."""
        member = self._job.members.started_again(old)
        self._job.limits.log_has_grown()
        self._job.hooks.healed(member)
        return member

    def check(self) -> None:
        """When all ranks have ended with 0 there is nothing to heal; but the other program may wait for ever."""
        job = self._job
        if not self.on or not job.stopping.running or not self._is_done():
            self._ends_at = None
            return
        now = job.world.now()
        if self._ends_at is None:
            self._ends_at = now + (SETTLES_WITH_OTHERS if job.engine.shares_scheduler else SETTLES)
        elif now >= self._ends_at:
            job.say(tr("all ranks have ended with 0, but {engine} goes on: stopping it", engine=job.engine.name))
            job.stopping.begin()

    def _is_done(self) -> bool:
        if self._job.members.ranks_left:
            return False
        return all(member.status == 0 for member in self._job.members.ranks())

    def culprit(self, engine: Member) -> Member:
        """What failed if the engine ends with a failure: a rank that was not killed with the others, or the engine."""
        if not self.to:
            return engine
        failed = [(m.ended, m) for m in self._job.members.ranks() if m.status and m.ended is not None and not m.lost]
        failed.sort(key=lambda pair: pair[0])
        if not failed:
            return engine
        at, first = failed[0]
        alone = len(failed) == 1 or failed[1][0] - at >= FIRST_BY
        return first if first.status not in KILLED or alone else engine
