"""Ranks that have ended with 0 and left processes: what the supervisor knows and reports about them.

leftovers.py finds these processes: here for the ranks that the launcher has started, otherwise in their agents.
"""

from __future__ import annotations

from hccl_tools.common.language import tr
from hccl_tools.common.words import named, some
from tools.supervise.events import LeftEnded, LeftFailed
from tools.supervise.leftovers import BY_OPTION, WORKERS
from tools.supervise.members import command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from tools.supervise.events import Ended, Left
    from tools.supervise.leftovers import Leftovers
    from tools.supervise.loop import Supervisor
    from tools.supervise.members import Member

PATIENCE = 0.3  # seconds; agents report their ranks one after the other
AGAIN = "again"  # what was waited for has ended, and this is left
NAMED, PASTED = 3, 16  # so many processes are named, and so many are in a command


class Waiting:
    """leftovers: of the ranks that are our children; None where an engine has started them."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._job = supervisor
        self.leftovers: Leftovers | None = None
        self.again()

    def again(self) -> None:
        """Forgets the attempt that has ended."""
        self._untold: dict[str, list[Left]] = {}
        self._tell_at = 0.0
        if self.leftovers:
            self.leftovers.again()

    # ---- the loop's steps --------------------------------------------------------------------------------------------

    def hold(self, event: Ended) -> set[str]:
        """The names of ranks in this event that last, because of what they have left."""
        job = self._job
        if self.leftovers is None or not event.judged or not job.stopping.running:
            return set()
        members = (job.members.get(name) for name, status in event.rows if status == 0)
        ended = [(m.name, m.log, m.group) for m in members if m and m.rank is not None and m.status is None and m.child]
        return self.leftovers.hold(ended) if ended else set()

    def longest_sleep(self, otherwise: float) -> float:
        """Seconds until there is something to do."""
        if self.leftovers:
            otherwise = self.leftovers.longest_sleep(otherwise)
        return min(otherwise, PATIENCE) if self._untold else otherwise

    def check(self) -> None:
        """Handles what depends on time."""
        if self.leftovers:
            self.leftovers.check()
        if self._untold and self._job.world.now() >= self._tell_at:
            self._say()

    # ---- events ------------------------------------------------------------------------------------------------------

    def take(self, event: Left | LeftFailed | LeftEnded) -> None:
        """Handles reports about the leftovers of our ranks, or from agents, and the ends of our own children."""
        if isinstance(event, LeftEnded):
            if self.leftovers:
                self.leftovers.have_ended(event.rows)
            return
        member = self._job.members.get(event.name)
        if member is None or member.status is not None:
            return
        if isinstance(event, LeftFailed):
            member.left_failed = event.pid, event.words
        else:
            self._has_left(member, event)

    def _has_left(self, member: Member, event: Left) -> None:
        how = AGAIN if member.left and not event.ends else event.ends
        member.left = event.rows
        member.left_ended = event.ends == BY_OPTION
        if not event.ends:
            member.pid = event.rows[0][0]
            if member.group is not None and all(group != member.group for _, group, _ in event.rows):
                self._job.forget_group(member)
        if event.ends == BY_OPTION:
            return  # the report states this
        if not self._untold:
            self._tell_at = self._job.world.now() + (0 if self.leftovers else PATIENCE)
        self._untold.setdefault(how, []).append(event)

    def over(self, name: str, status: int) -> None:
        """A rank has ended with all that it had left."""
        member = self._job.members.get(name)
        if member:
            self._job.judge.ended(member, status)

    def _say(self) -> None:
        """Ranks that are alike share a sentence."""
        untold, self._untold = self._untold, {}
        for how, events in untold.items():
            rows = [row for event in events for row in event.rows]
            ranks = named("rank", (int(event.name) for event in events))
            shown = some([f"PID {pid}: {command(words)}" for pid, _, words in rows], NAMED)
            self._job.say(self._sentence(how, ranks, len(rows), shown))
            if how == AGAIN and (self.leftovers or self._job.engine.tells_ends) and len(rows) <= PASTED:
                pids = " ".join(str(pid) for pid, _, _ in rows)
                self._job.say(tr("if that does not belong to the training: kill {pids}", pids=pids))

    @staticmethod
    def _sentence(how: str, ranks: str, number: int, processes: str) -> str:
        if how == WORKERS:
            return tr(
                "{ranks} ended with 0, but not all worker processes ({processes}): these were ended",
                ranks=ranks,
                processes=processes,
            )
        if how == AGAIN:
            return tr(
                "{ranks} also left {processes}; the job waits until all of these have ended",
                ranks=ranks,
                processes=processes,
            )
        if number == 1:
            return tr(
                "{ranks} ended with 0 and left a process that still runs ({processes}): the job waits until it "
                "has ended; to end it with its rank: --leftovers end",
                ranks=ranks,
                processes=processes,
            )
        return tr(
            "{ranks} ended with 0 and left {number} processes that still run ({processes}): the job waits until "
            "they have ended; to end them with their rank: --leftovers end",
            ranks=ranks,
            number=number,
            processes=processes,
        )

    # ---- signals -----------------------------------------------------------------------------------------------------

    def signal(self, number: int) -> None:
        """To what is left outside of the ranks' process groups."""
        if self.leftovers:
            self.leftovers.signal(number)
        elif self._job.engine.tells_ends:
            for member in self._of_agents():
                for pid, group, _ in member.left:
                    if group == pid:
                        self._job.world.signal_group(group, number)
                    elif group != member.group:
                        self._job.world.send(pid, number)

    def pass_on(self, number: int) -> None:
        """A signal for the trainers."""
        if self.leftovers:
            self.leftovers.pass_on(number)
        elif self._job.engine.tells_ends:
            for member in self._of_agents():
                for pid, _, _ in member.left:
                    self._job.world.send(pid, number)

    def lives(self, member: Member) -> bool:
        """Whether a process that it has left runs on this host."""
        return any(self._job.world.send(pid, 0) for pid, _, _ in member.left)

    def _of_agents(self) -> Iterable[Member]:
        return [member for member in self._job.members if member.left and member.status is None]

    def give_up(self) -> None:
        """Gives up: even SIGKILL has not ended them."""
        if self.leftovers:
            self.leftovers.give_up()
