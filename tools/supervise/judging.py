"""Decides what the end of a member means for the job: it continues, it is done, or a failure stops it."""

from __future__ import annotations

from tools.supervise.members import SCHEDULER, Member

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.supervise.loop import Supervisor

SIGNALLED = (129, 130, 131, 143)  # HUP, INT, QUIT, TERM
PATIENCE = 0.3  # seconds in which the signal that has ended a rank comes to us, too
LOST = 255


class Judge:
    """The first failure, and how a job goes on."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._job = supervisor
        self.first: Member | None = None  # the member that failed first
        self.signalled: Member | None = None  # ended by a signal that may come to us, too
        self._until = 0.0

    def again(self) -> None:
        """Forgets the attempt that has ended."""
        self.first = None

    def ended(self, member: Member, status: int) -> None:
        """Records the end of a member, and decides whether the job goes on."""
        job = self._job
        if member.status is not None:
            return
        if job.starts_ranks(member):
            status = job.engine.status_of(status)
        if job.is_engine(member) and status == 0 and job.members.ranks_left and job.engine.lost_host():
            status = LOST  # Open MPI 5 ends with 0 although it has lost a host
        job.members.ended(member, status, job.world.now())
        if member.group is not None:  # what it left there, for example workers of a data loader
            job.world.signal_leftovers(member.group)
        if job.starts_ranks(member):
            first = job.engine_ended()
            if status == 0 and first:
                member, status = first, LOST
            elif status not in (0, *SIGNALLED):
                member = job.healing.culprit(member)
        if job.stopping.running:
            self._judge(member, status)

    def _judge(self, member: Member, status: int) -> None:
        """A member has ended while the job was running normally."""
        if self._job.healing.has_ended(member):
            return
        if self._job.stopping.has_ended(member.name, status):
            self._job.stopping.heeds_warning()
            self._job.stopping.begin(asks=True)
            return
        if status in SIGNALLED and self.signalled is None:
            self.signalled, self._until = member, self._job.world.now() + PATIENCE
        elif status != 0:
            if self.signalled is not None:
                self._fail(self.signalled)
            if self._job.stopping.running:
                self._fail(member)
        elif self.signalled is None and self._work_is_done():
            self._job.stopping.begin()  # the members that are left have nothing to do

    def check(self) -> None:
        """Batch systems, systemd and container engines end a job by signalling all its processes.

        They may hit a rank before us.  If the signal then comes to us, no rank has failed, and it does not count as a
        second signal.  If it does not come in time, the rank has failed.
        """
        if self.signalled is None:
            return
        if not self._job.stopping.running:
            self.signalled = None
        elif self._job.world.now() >= self._until:
            self._fail(self.signalled)

    def _fail(self, member: Member) -> None:
        """Handles the first failure, with --keep_going each of them."""
        self.signalled = None
        goes_on = self._goes_on_without(member)
        self.first = self.first or member
        member.failed = True
        self._job.hooks.failed(member, goes_on)
        if not goes_on:
            self._job.stopping.begin()

    def _goes_on_without(self, member: Member) -> bool:
        """Whether it has failed and the job goes on.  The scheduler may fail because a rank has."""
        if not self._job.stopping.keeps_going or self._work_is_done():
            return False
        return member.rank is not None or (member.name == SCHEDULER and self.first is not None)

    def _work_is_done(self) -> bool:
        """Whether all ranks have ended.  Then neither the engine nor MindSpore's scheduler is needed any more.

        But if ranks of other hosts share the scheduler, it must have ended, too.
        """
        if self._job.members.ranks_left:
            return False
        scheduler = self._job.members.get(SCHEDULER)
        return not self._job.engine.shares_scheduler or scheduler is None or scheduler.status is not None
