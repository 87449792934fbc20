"""A supervisor in a world without processes and without waiting: its clock jumps to the next event."""

import collections
import itertools
import signal

from tools.supervise import events
from tools.supervise.limits import Limits
from tools.supervise.loop import Supervisor
from tools.supervise.members import SCHEDULER, Member
from tools.supervise.stopping import Stopping

TERM, KILL, USR1 = signal.SIGTERM, signal.SIGKILL, signal.SIGUSR1
START = 0.0  # on the clock of a time namespace that has just begun
GROUP = 100  # of rank 0; that of rank 1 is 101
OBEYS = {TERM: 143, KILL: 137}
STUBBORN = {KILL: 137}
IN_KERNEL = {}  # no signal ends it
HELD = {TERM: None, KILL: None}  # it ends, but a debugger holds it: nobody gets its exit status


class World:
    """Its events come when the test has said; `signals` are those that were sent: (when, which, to whom, group)."""

    def __init__(self):
        self.time = START
        self.signals = []
        self.living = {}  # process group -> (its member's name, what signals do to it)
        self.without_usr1 = set()  # members that do not handle SIGUSR1
        self.left_behind = set()  # groups in which something lives after the member
        self._coming, self._numbers = [], itertools.count()
        self._looks = 0

    # ---- what a test says ------------------------------------------------------------------------------------------

    def at(self, seconds, *happens):
        """So many seconds after the start these events come, or these functions are called."""
        self._coming.append((START + seconds, next(self._numbers), happens))
        self._coming.sort(key=lambda row: row[:2])

    def ends(self, seconds, name, status, *, left_behind=False):
        """The member ends by itself."""
        self.at(seconds, lambda: self._end(name, left_behind), events.Ended([(name, status)]))

    def _end(self, name, left_behind=False):
        for group in [group for group, (who, _) in self.living.items() if who == name]:
            del self.living[group]
            if left_behind:
                self.left_behind.add(group)

    # ---- what the supervisor asks ----------------------------------------------------------------------------------

    def now(self):
        return self.time

    def events(self, seconds):
        self._looks += 1
        assert self._looks < 10_000, "it waits for ever"
        end, found = self.time + seconds, []
        while self._coming and self._coming[0][0] <= (self.time if found else end):
            when, _, happens = self._coming.pop(0)
            self.time = max(self.time, when)
            for one in happens:
                if callable(one):
                    one()  # nothing wakes the supervisor
                else:
                    found.append(one)
        self.time = self.time if found else end
        return found

    def _signal(self, group, number, how):
        self.signals.append((round(self.time - START, 2), signal.Signals(number).name, how, group))
        name, reactions = self.living.get(group, ("", {}))
        if number in reactions:
            self._end(name)
            if reactions[number] is not None:
                self.at(self.time - START, events.Ended([(name, reactions[number])]))
        if number in (TERM, KILL):
            self.left_behind.discard(group)

    def signal_group(self, group, number):
        self._signal(group, number, "group")

    def signal_leftovers(self, group):
        self._signal(group, TERM, "leftovers")

    def send(self, pid, number):
        if number:
            self._signal(pid, number, "process")
        return True

    def pass_on(self, pid, number):
        name, _ = self.living.get(pid, ("", {}))
        self.send(pid, TERM if name in self.without_usr1 and number == USR1 else number)
        return name not in self.without_usr1 or number != USR1

    def living_groups(self, groups):
        return {group for group in groups if group in self.living or group in self.left_behind}

    # ---- what a test asks ------------------------------------------------------------------------------------------

    def sent(self, number, how="group"):
        """{member's group: when it first got the signal}."""
        found = {}
        for when, name, to, group in self.signals:
            if name == signal.Signals(number).name and to == how:
                found.setdefault(group, when)
        return found


class Engine:
    """One that has no process of its own; name, way and so on: see tools/engines/base.py."""

    def __init__(
        self, world, name="", *, way=0.0, tells_ends=False, shares_scheduler=False, lost="", status_of=None, starter=""
    ):
        self.name, self.way, self.tells_ends, self.shares_scheduler = name, way, tells_ends, shares_scheduler
        self.starter = starter
        self.orders = []  # (when, word)
        self._world, self._lost, self._status_of = world, lost, status_of

    def order(self, word):
        self.orders.append((round(self._world.time - START, 1), word))

    def lost_host(self):
        return self._lost

    def status_of(self, status):
        return status if self._status_of is None else self._status_of


class Hooks:
    """Counts the steps, and keeps which members failed."""

    def __init__(self):
        self.told = []  # (member's name, whether the others go on)
        self.steps = collections.Counter()

    def failed(self, member, goes_on):
        self.told.append((member.name, goes_on))

    def __getattr__(self, step):
        return lambda *_: self.steps.update([step])


class Job:
    """A job whose members run; behaves: {member's name: what signals do to it}, for those that do not OBEY."""

    def __init__(
        self, ranks=2, *, grace=10, keep_going=False, scheduler=False, timeout=0, hang=0, behaves=None, **engine
    ):
        self.world, self.said = World(), []
        self.engine = Engine(self.world, **engine)
        self.hooks = Hooks()
        self.supervisor = Supervisor(self.world, self.engine, self.hooks, self.said.append)
        self.supervisor.stopping = Stopping(self.supervisor, grace, keep_going)
        self.supervisor.limits = Limits(timeout, hang, self.world.now, self.said.append, str)
        self.behaves = behaves or {}
        if scheduler:
            self.start(Member(SCHEDULER, "scheduler.log"), 98)
        members = [Member(str(rank), f"rank_{rank}.log", rank, rank) for rank in range(ranks)]
        self.supervisor.members.add(members)
        if self.engine.name or self.engine.starter:
            self.start(Member(self.engine.name or self.engine.starter, "engine.log"), 99)
        else:
            for member in members:
                self.begin(member, GROUP + member.rank)

    def start(self, member, group):
        self.supervisor.members.add([member])
        self.begin(member, group)

    def begin(self, member, group):
        """The launcher starts it."""
        self.world.living[group] = (member.name, self.behaves.get(member.name, OBEYS))
        member.child = True
        self.supervisor.began(member, group, grouped=True)

    def told(self, seconds, *rows):
        """Agents of this host tell that these ranks have begun: (name, group)."""

        def live():
            for name, group in rows:
                self.world.living[group] = (name, self.behaves.get(name, OBEYS))

        self.world.at(seconds, live, events.Began([(name, group, "here") for name, group in rows]))

    def run(self):
        """Returns the exit code."""
        self.supervisor.run()
        assert not self.world.living_groups(self.world.living), "a process is left"
        return self.supervisor.exit_status()

    def ran(self):
        """After how many seconds it has ended."""
        return round(self.world.time - START, 1)

    def statuses(self):
        return {member.name: member.status for member in self.supervisor.members}
