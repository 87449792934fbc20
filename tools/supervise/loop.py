"""The supervisor's loop: it sleeps until something happens to the job, and decides what that means.

One attempt of a job is one call of `run`.  The world (world.py) provides the clock, the processes and the events.  The
hooks are what the launcher's features do at a step of the job's life (tools/features).
"""

from __future__ import annotations

from tools.supervise import events
from tools.supervise.healing import Healing
from tools.supervise.judging import LOST, Judge
from tools.supervise.limits import HANG, Limits
from tools.supervise.members import Member, Members
from tools.supervise.proc import signals
from tools.supervise.stopping import Stopping
from tools.supervise.waiting import Waiting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Protocol

    from tools.supervise.guardian import Guardian

    class World(Protocol):
        """The part of the world that the loop needs."""

        def now(self) -> float: ...
        def events(self, seconds: float) -> Iterable[Any]: ...
        def signal_group(self, group: int, number: int) -> None: ...
        def signal_leftovers(self, group: int) -> None: ...
        def send(self, pid: int, number: int) -> bool: ...
        def pass_on(self, pid: int, number: int) -> bool: ...
        def living_groups(self, groups: set[int]) -> set[int]: ...

    class Engine(Protocol):
        """The part of an engine that the loop needs; see tools/engines/base.py."""

        name: str
        starter: str
        way: float
        tells_ends: bool
        shares_scheduler: bool

        def order(self, word: str) -> None: ...
        def lost_host(self) -> str: ...
        def status_of(self, status: int) -> int: ...

    class Hooks(Protocol):
        """The actions of the features; see tools/features."""

        def failed(self, member: Member, goes_on: bool) -> None: ...
        def hangs(self) -> None: ...
        def handed(self) -> None: ...
        def healed(self, member: Member) -> None: ...
        def stops(self) -> None: ...
        def ending(self, asks: bool) -> None: ...
        def heard(self, event: events.Heard) -> None: ...
        def check(self) -> None: ...


SHORT, USUAL, LONG = 0.05, 1.0, 10.0  # seconds between two looks: while members stop, with limits, else
UNREPORTED = 2.0  # seconds in which an agent, or its watcher, would have told the end
STACKS_WITHIN = 30.0


class Supervisor:
    """The state of a job, over all its attempts."""

    def __init__(self, world: World, engine: Engine, hooks: Hooks, say: Callable[[str], object]) -> None:
        self.world, self.engine, self.hooks, self.say = world, engine, hooks, say
        self.members = Members()
        self.judge = Judge(self)
        self.stopping = Stopping(self, 10, False)
        self.limits = Limits(0, 0, world.now, say, str)
        self.waiting = Waiting(self)
        self.healing = Healing(self)
        self.guardian: Guardian | None = None
        self.stacks: dict[str, str] = {}  # of ranks: where each is, from its agent
        self._check_at = 0.0  # when the hooks look at the latest, however much happens

    def again(self) -> None:
        """Forgets the members of an attempt that has ended, for the next one."""
        self.judge.again()
        self.stopping.again()
        self.limits.again()
        self.waiting.again()
        self.healing.again()
        self.members.clear()
        self.stacks.clear()

    # ---- members ---------------------------------------------------------------------------------------------------

    def is_engine(self, member: Member) -> bool:
        return member.name == self.engine.name

    def starts_ranks(self, member: Member) -> bool:
        """Whether ranks without any report are lost when it ends."""
        return member.name in (self.engine.name, self.engine.starter)

    def began(self, member: Member, pid: int, *, grouped: bool, told_host: str = "") -> None:
        """Notes that it runs, in its own process group; grouped: we can signal that."""
        self.members.began(member, self.world.now(), pid, pid if grouped else None, told_host)
        if grouped and self.guardian:
            self.guardian.tell(b"start", pid)

    def forget_group(self, member: Member) -> None:
        """No process of its group is left.  The kernel may reuse the number, so it must not be signalled any more."""
        group = member.group
        self.members.left_behind(member)
        if group is not None and self.guardian:
            self.guardian.tell(b"gone", group)

    def lose(self, member: Member) -> None:
        """Notes that the way in which it ended is unknown."""
        member.lost = True
        self.members.ended(member, LOST, self.world.now())

    def engine_ended(self) -> Member | None:
        """Marks as lost all members whose end was not reported and whose processes we cannot see; returns the first."""
        first = None
        for member in self.members:
            if member.status is None and member.group is None and not member.child:
                self.lose(member)
                first = first or member
        return first

    # ---- the loop --------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Returns when every member has ended and none of its processes lives."""
        while self.members.any() or self.judge.signalled:
            self._step(self._longest_sleep())

    def wait_until(self, reached: Callable[[], bool]) -> bool:
        """Waits until it is true; False if a signal, a limit or another host ends the job before."""
        while not reached():
            for event in self.world.events(USUAL if not self.limits.any else 0.5):
                self._take(event)
            self.hooks.check()
            self._check_limits()
            if not self.stopping.running:
                return False
        return True

    def wait_after(self, reached: Callable[[], bool]) -> None:
        """The same after an attempt, while signals and --timeout may end the job; how it has ended stays as it is."""
        was_running = self.stopping.running
        self.stopping.again()
        self.limits.again()
        self.wait_until(reached)
        if self.stopping.running and not was_running:
            self.stopping.soon()

    def _step(self, seconds: float) -> None:
        happened = False
        for event in self.world.events(seconds):
            happened = True
            self._take(event)
        now = self.world.now()
        if not happened or now >= self._check_at:
            self._check_at = now + USUAL
            self.hooks.check()
        if not happened:
            self._find_unreported()
        self._collect()
        self.waiting.check()
        self.judge.check()
        self.healing.check()
        self.stopping.check()
        self._check_limits()

    def _longest_sleep(self) -> float:
        if not self.stopping.running or self.judge.signalled:
            if not self.stopping.running:
                self.hooks.stops()
            return SHORT
        return self.waiting.longest_sleep(USUAL if self.limits.any or self._gone() else LONG)

    def _take(self, event: Any) -> None:
        """One event, one decision."""
        kind = type(event)
        if kind is events.Ended:
            self._have_ended(event)
        elif kind in (events.Left, events.LeftFailed, events.LeftEnded):
            self.waiting.take(event)
        elif kind is events.Began:
            self._have_begun(event.rows)
        elif kind is events.Handed:
            self.healing.begin(event.to)
        elif kind in (events.Signalled, events.Warned, events.Cancelled):
            self._asked_to_end(event)
        elif kind is events.LogGrew:
            self.limits.log_has_grown()
        elif kind is events.StackTold:
            self.stacks[event.name] = event.place
        elif kind is events.Heard:
            self.hooks.heard(event)

    def _asked_to_end(self, event: Any) -> None:
        kind = type(event)
        if kind is events.Signalled:
            self.stopping.heed(event.number)
        elif kind is events.Warned:
            self.stopping.warn(event.name)
        else:
            self.stopping.cancel(event.seconds, event.reason)

    def _have_begun(self, rows: list[tuple[str, int, str]]) -> None:
        for name, pid, told_host in rows:
            member = self.members.get(name)
            if member and member.began is not None and member.status is not None:
                member = self.healing.started_again(member)
            if member and member.began is None:
                self.began(member, pid, grouped=self.engine.tells_ends, told_host=told_host)
                if self.engine.tells_ends:
                    self.stopping.catch_up(member)

    def _have_ended(self, event: events.Ended) -> None:
        held = self.waiting.hold(event)
        for name, status in event.rows:
            member = self.members.get(name)
            if member is None or name in held:
                continue
            if event.judged:
                self.judge.ended(member, status)
            else:
                self.members.ended(member, status, self.world.now())

    def _collect(self) -> None:
        """Forgets the process groups of ended members that have no process left."""
        leaving = [member for member in self.members.grouped.values() if member.leaving]
        if not leaving:
            return
        alive = self.world.living_groups({member.group for member in leaving if member.group is not None})
        for member in leaving:
            if member.group not in alive:
                self.forget_group(member)

    def _check_limits(self) -> None:
        if self.stopping.running and self.limits.check():
            self.stopping.soon()
            if self.limits.reached == HANG:
                self.hooks.hangs()
            self.stopping.begin(asks=self.limits.reached != HANG, seconds=self.limits.seconds_to_save)

    # ---- ranks that an engine has started --------------------------------------------------------------------------

    def _gone(self) -> bool:
        return any(member.gone_since is not None for member in self.members.grouped.values())

    def _find_unreported(self) -> None:
        """Ranks of this host whose agent and watcher were killed, so that their end is not reported."""
        if not self.engine.tells_ends:
            return
        silent = [m for m in self.members.grouped.values() if not m.child and m.status is None and m.group is not None]
        alive = self.world.living_groups({member.group for member in silent if member.group is not None})
        for member in silent:
            if member.group in alive or self.waiting.lives(member):
                continue
            now = self.world.now()
            member.gone_since = now if member.gone_since is None else member.gone_since
            if now >= member.gone_since + UNREPORTED:
                self.judge.ended(member, 137)

    def ask_stacks(self) -> None:
        """Asks the agents where their ranks are, and waits for their answers, which come into `stacks`."""
        self.engine.order("stacks")
        end = self.world.now() + STACKS_WITHIN
        while not self._all_told() and not self.stopping.signal and self.world.now() < end:
            for event in self.world.events(USUAL):
                self._take(event)

    def _all_told(self) -> bool:
        if len(self.stacks) < self.members.ranks_left:
            return False
        silent = (m for m in self.members if m.rank is not None and m.status is None and m.name not in self.stacks)
        return next(silent, None) is None

    # ---- what others ask -------------------------------------------------------------------------------------------

    def exit_status(self, otherwise: int = 0) -> int:
        """The exit code if the job ended now; otherwise: what other hosts report."""
        if self.judge.first is not None:
            return self.judge.first.status or 0
        if self.limits.reached:
            return 124  # as timeout(1) does
        if self.stopping.signal:
            return 128 + int(getattr(signals, f"SIG{self.stopping.signal}"))
        return otherwise

    def stopped_by(self, host: str = "") -> str:
        """What has ended the attempt, other than a failure here, for launch.json; "" if nothing has."""
        signal = f"SIG{self.stopping.signal}" if self.stopping.signal else ""
        return self.limits.reached or signal or host
