"""Stops a job: SIGTERM to every member, the grace time, SIGKILL to the rest; and handles the signals that order it."""

from __future__ import annotations

from hccl_tools.common.language import tr
from tools.supervise.members import SCHEDULER, Member
from tools.supervise.proc import signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.supervise.loop import Supervisor

RUNNING, STOPPING, KILLING = "running", "stopping", "killing"
AFTER_KILL = 5.0  # seconds in which the kernel must have ended a process
REPEAT = 1.0  # seconds; an order to an engine may arrive before an agent can take it
SPARE = 3  # seconds that the report needs before an engine kills everything
_BY_USR1, _BY_TERM = 138, 143  # exit statuses
NAMES = {
    number: name
    for name in ("HUP", "INT", "QUIT", "TERM", "USR1", "USR2")
    for number in (getattr(signals, f"SIG{name}"),)
}


class Stopping:
    """Only this class changes its state.

    grace: seconds between SIGTERM and SIGKILL; keeps_going: a rank that fails stops nothing.
    asks: the ranks are asked to save and to end: no failure stops them; patience: seconds that they have then.
    """

    def __init__(self, supervisor: Supervisor, grace: int, keeps_going: bool) -> None:
        self._job, self.grace, self.keeps_going = supervisor, grace, keeps_going
        self.state = RUNNING
        self.deadline: float | None = None  # when the state ends
        self.signal = ""  # the name of the signal that stopped the launcher: TERM
        self.cancelled = False  # the engine itself ends the ranks
        self.asks, self.patience = False, grace
        self.warned = ""  # the name of the signal that announces the end, and does not stop the job by itself: USR1
        self._asked: set[str] = set()  # the ranks that got SIGTERM instead of it
        self._ordered_at = 0.0
        self._scheduler_told = False  # of the end, after a request

    @property
    def running(self) -> bool:
        return self.state == RUNNING

    def again(self) -> None:
        """Resets the state for the next attempt."""
        self.state, self.deadline, self.warned = RUNNING, None, ""
        self._asked.clear()
        self.asks = self._scheduler_told = False

    def soon(self) -> None:
        """Marks the launcher as the cause of every member's end from now on, so none of them counts as a failure."""
        self.state = STOPPING

    def begin(self, asks: bool = False, seconds: int = 0) -> None:
        """SIGTERM to all members; after the grace time SIGKILL to what is left.

        asks: it is a request, after which the ranks may save; seconds: that they have then; 0: `patience`.
        Where an engine's agents stop the ranks, the deadline is later by the way of the order, so that they kill first.
        """
        self.state, self.asks = STOPPING, asks
        grace = (seconds or self.patience) if asks else self.grace
        self.deadline = self._job.world.now() + grace + self._job.engine.way
        self._job.hooks.ending(asks)
        self.order(signals.SIGTERM)

    def order(self, number: int) -> None:
        """Signals every process group that is left.  An engine with agents gets the order to stop, until SIGKILL."""
        self._ordered_at = self._job.world.now()
        for member in list(self._job.members.grouped.values()):
            if number == signals.SIGTERM and self._job.is_engine(member) and self._job.engine.way:
                self._job.engine.order(self._word)
            elif member.group is not None and not (number == signals.SIGTERM and self._is_needed(member)):
                self._job.world.signal_group(member.group, number)
        self._job.waiting.signal(number)

    def _is_needed(self, member: Member) -> bool:
        """Whether it is MindSpore's scheduler, and ranks that save may still need it."""
        if member.name != SCHEDULER or not self.asks or self._scheduler_told:
            return False
        self._scheduler_told = not self._job.members.ranks_left and not self._job.engine.shares_scheduler
        return not self._scheduler_told

    @property
    def _word(self) -> str:
        """The order to an engine."""
        return "ask" if self.asks else "stop"

    def catch_up(self, member: Member) -> None:
        """Sends a member that has just begun, or told so, what the others got before: the order to stop, or SIGUSR1."""
        if member.group is None:
            return
        if not self.running:
            number = signals.SIGKILL if self.state == KILLING else signals.SIGTERM
            self._job.world.signal_group(member.group, number)
        elif self.warned and member.name != SCHEDULER:
            self._pass_on_to(member, member.group, signals.SIGUSR1)

    def check(self) -> None:
        """If the deadline has passed, goes on to the next step; before it, repeats the order to the engine."""
        if self.deadline is None:
            return
        now = self._job.world.now()
        if now < self.deadline:
            self._end_scheduler()
            if self.state == STOPPING and self._job.engine.way and now >= self._ordered_at + REPEAT:
                self._ordered_at = now
                self._job.engine.order(self._word)
        elif self.state == KILLING:
            self._give_up()
        else:
            self.state, self.deadline = KILLING, now + AFTER_KILL
            self.order(signals.SIGKILL)

    def _end_scheduler(self) -> None:
        """After a request, when the ranks have ended."""
        scheduler = self._job.members.get(SCHEDULER)
        if scheduler is None or scheduler.group is None or scheduler.status is not None:
            return
        if self.asks and not self._scheduler_told and not self._is_needed(scheduler):
            self._job.world.signal_group(scheduler.group, signals.SIGTERM)

    def _give_up(self) -> None:
        """Even SIGKILL does not end a process that waits inside the kernel, for example for a device.

        If no process is left, but the kernel does not tell the end, a debugger holds it.
        """
        groups = {member.group for member in self._job.members.grouped.values() if member.group is not None}
        alive = self._job.world.living_groups(groups)
        for member in list(self._job.members.grouped.values()):
            if member.group in alive:
                self._job.say(
                    tr(
                        "process group {group} (rank {name}) does not end on SIGKILL: it waits in the kernel; see its "
                        "state with: ps -o pid,stat,wchan:20,args -g {group}",
                        group=member.group,
                        name=member.name,
                    )
                )
                self._job.members.ended(member, 137, self._job.world.now())
            elif member.status is None:
                self._job.say(
                    tr(
                        "rank {name} has ended, but its exit code is unknown: a debugger holds process {group}",
                        name=member.name,
                        group=member.group,
                    )
                )
                self._job.lose(member)
            self._job.forget_group(member)
        self._job.waiting.give_up()
        self._job.engine_ended()  # the ends of ranks of other hosts are not reported any more

    # ---- signals to the launcher -----------------------------------------------------------------------------------

    def heed(self, number: int) -> None:
        """A signal came to the launcher."""
        name = NAMES[number]
        if name.startswith("USR"):  # meant for the trainers: for example a warning before pre-emption
            if name == "USR1":
                self.warn()
            self._pass_on(name, number)
        elif self.running:
            self.signal = name
            text = tr("SIG{signal}: stopping all ranks (a second signal kills them at once)", signal=name)
            if not len(self._job.members):  # between two attempts, or while other hosts are awaited
                text = tr("SIG{signal}: no rank runs; the job ends", signal=name)
            self._job.say(text)
            self.begin(asks=True)
        elif name == "TERM" and self.cancelled:
            pass  # the same scancel: the agents have already reported it
        elif self.state == STOPPING and not self.signal:
            self.signal = name
            self._job.say(
                tr("SIG{signal}: the ranks are already stopping (a second signal kills them at once)", signal=name)
            )
        elif self.state != KILLING:
            self.deadline = self._job.world.now()  # the grace time is over

    def warn(self, name: str = "") -> None:
        """The ranks get SIGUSR1, from us or from the batch system: a request to save and to end, without a deadline.

        name: of a rank that got SIGTERM in its place.
        """
        if name:
            self._asked.add(name)
        if self.running and not self.warned:
            self.warned = "USR1"
            self._job.say(tr("SIGUSR1: asking all ranks to save and exit; ranks that do not exit keep running"))
            self._job.hooks.ending(True)

    def has_ended(self, name: str, status: int) -> bool:
        """Whether this rank has ended by such a signal, and has not failed by itself."""
        return bool(self.warned) and (status == _BY_USR1 or (status == _BY_TERM and name in self._asked))

    def heeds_warning(self) -> None:
        """The ranks end because of it."""
        self.signal = self.signal or self.warned

    def _pass_on(self, name: str, number: int) -> None:
        for member in self._job.members.grouped.values():
            if member.name == SCHEDULER or member.group is None:
                continue
            if not self._job.is_engine(member):
                self._pass_on_to(member, member.group, number)
            elif self._job.engine.way:
                self._job.engine.order(name)
        self._job.waiting.pass_on(number)

    def _pass_on_to(self, member: Member, group: int, number: int) -> None:
        if not self._job.world.pass_on(group, number):
            self._asked.add(member.name)

    def cancel(self, seconds: int, reason: str) -> None:
        """The engine ordered all processes to end, maybe also the launcher.

        It kills what is left after these seconds, so the launcher must finish its report before that.
        """
        if self.cancelled:
            return  # every rank's agent reports it
        self.cancelled = True
        if self.running:
            self.heed(signals.SIGTERM)
        if self.state != STOPPING:
            return
        grace = (self.patience if self.asks else self.grace) + self._job.engine.way
        if grace > seconds - SPARE:
            if grace > seconds:
                self._job.say(reason)
            self.deadline = self._job.world.now() + (seconds - SPARE if seconds > SPARE + 1 else 1)
