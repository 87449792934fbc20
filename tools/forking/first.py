"""The agent of a host's first rank: it starts the process that imports, for all ranks of the host.

The other agents of the host send their orders through a socket (link.py).  When all have connected, the agent starts
the process (importing.py), and learns from it which forks begin.  They are children of this agent.  It reports to each
other agent how its rank ends, and what the rank leaves.  If they cannot be forks, it reports the reason to the agents
and the launcher, and each agent starts its own rank.
"""

from __future__ import annotations

import os

from tools.forking import link, order
from tools.forking.guest import Guest, append, unlink
from tools.forking.importing import Importing
from tools.forking.link import Reader
from tools.forking.order import Order
from tools.launch.programs import import_once
from tools.rank import agent, environment
from tools.rank.told import REFUSED
from tools.rank.watcher import LOOK_EVERY
from tools.supervise import proc
from tools.supervise.events import Left, LeftFailed
from tools.supervise.leftovers import Leftovers
from tools.supervise.members import IMPORTS
from tools.supervise.proc import signals
from tools.supervise.world import CannotStart

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hccl_tools.common.record import Row
    from tools.forking.link import Message
    from tools.rank.environment import Environment
    from tools.rank.told import Told

WITHIN = 30.0  # seconds in which all agents of a host have to be there: they start together
NOT_BEGUN = 255


class First(agent.Agent):
    """See above."""

    def __init__(self, told: Told, log: str, away: bool) -> None:
        super().__init__(told, log, away)
        self._word, _, text = told["IMPORT_ONCE"].partition("\n")
        self._imports = import_once.read(text)
        self._importing = Importing(self.world, self._imports, self._fork_began, self._unstarted, self._without)
        waits = told["LEFTOVERS"] != "end"
        self.leftovers = Leftovers(self.world, told.job, lambda: self.words, self._tell_left, self.is_over, waits=waits)
        self._guests: dict[str, Guest] = {}  # by their ranks
        self._why = ""  # why the ranks cannot be forks, as reasons.py has it
        self._parent = 0  # the process that imports
        self._ended: int | None = None  # its exit status
        self._begun: set[str] = set()
        self._end_left_at: float | None = None

    # ---- the start ---------------------------------------------------------------------------------------------------

    def spawn(self, words: list[str], found: Environment, log: int) -> None:
        """Starts all ranks of the host, or, where they cannot be forks, its own one."""
        ranks = self._ranks()
        if ranks == 1:
            super().spawn(words, found, log)
            return
        self.words, self._own = words, order.of(self.told, words, found, self.log)
        self._gather(ranks)
        begun = not self._why and self._import()
        if begun:
            self._importing.open_gate()
        self._importing.forget()
        if begun or self._why:
            unlink(self._log)
        if self._why and self.goes_on(0):
            self.tell("without", self.told.name, self.told.host, self._why.replace("\n", " "))
            for guest in self._guests.values():
                guest.tell("without")
            super().spawn(words, found, log)
        elif not begun:
            self.status = self._failed(log)

    def _ranks(self) -> int:
        """How many ranks this host has."""
        told = self.told
        if told["ENGINE"] == "mpirun":  # which counts as its words state
            number = os.fsdecode(told.base.get(b"OMPI_COMM_WORLD_LOCAL_SIZE", b""))
            if number.isascii() and number.isdigit():
                return int(number)
        return environment.host_of(int(told.name), told["SIZES"])[1]

    def _await(self, done: Callable[[], bool], seconds: float | None = None) -> bool:
        """Waits until it is done; False: before that the time was over, or the agent is to stop."""
        end = None if seconds is None else self.world.now() + seconds
        while not done():
            left = LOOK_EVERY if end is None else min(LOOK_EVERY, end - self.world.now())
            if left <= 0 or not self.goes_on(left):
                return False
        return True

    def _gather(self, ranks: int) -> None:
        """Waits for the orders of the other agents.  One that comes too late hears at once that it is alone."""
        try:
            self._listener = link.listen(link.address(self._word, self.engine))
        except OSError as error:
            self._why = f"socket - {error.strerror}"
            return
        self.world.watch(self._listener.fileno(), lambda _: (), self._accept)
        within = WITHIN + self.told.number("RESTART")
        if not self._await(lambda: len(self._guests) == ranks - 1, within):
            self._why = f"late - {within:.0f}"
        for guest in self._guests.values():
            if guest.process != guest.order.pid:
                self._why = "processes - -"  # which they do not see from one another

    def _import(self) -> bool:
        """Starts the process; True: all ranks have begun, and their agents know them."""
        guests = self._guests.values()
        orders = sorted((self._own, *(guest.order for guest in guests)), key=lambda one: int(one.name))
        base, forks = order.forks(orders)
        why = order.why_not(orders, forced=self._imports.forced) or self._importing.refusal(base, forks)
        why = why or self._importing.start(base, forks, self.told["LOGS"], bool(self.told["WORDS"]), self._start)
        self._why = self._why or why
        if self._why or not self._await(lambda: bool(len(self._begun) == len(orders) or self._is_over())):
            return False
        return len(self._begun) == len(orders) and self._await(lambda: all(one.known or one.gone for one in guests))

    def _is_over(self) -> bool:
        """Whether the process has ended, or states why there are no forks."""
        return bool(self._why) or self._ended is not None

    def _start(self, words: list[str], found: Environment) -> None:
        """Starts the process with the cores and the policy of this rank."""
        try:
            out = os.open(self._log, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC, 0o666)
        except OSError as error:
            self._why = f"folder - {self.told['LOGS']}\t{error.strerror}"
            return
        try:
            self._parent = self.world.start(IMPORTS, words, found, out)
        except (CannotStart, OSError) as error:
            self._why = f"start - {error}"
        finally:
            os.close(out)
        if self._parent:
            self._tell_watcher(b"start", self._parent)

    @property
    def _log(self) -> str:
        """What the import prints: each rank's log has it when the ranks have begun.  Hosts may share the folder."""
        return os.path.join(self.told["LOGS"], f"{IMPORTS}_{self.told.name}.log")

    def _without(self, why: str) -> None:
        if not self._begun:
            self._why = why

    def _unstarted(self, _: str, status: int) -> None:
        """A fork could not begin: there may be no more processes.  The other ranks need it."""
        self._ended = status

    def _failed(self, log: int) -> int:
        """The process has ended before all ranks had begun, or the agent is to stop; returns the status of its rank."""
        if self._parent:
            proc.signal_group(self._parent, signals.SIGKILL)
        if self._ended is None:
            return 143 if self.stops else REFUSED
        append(self._log, log)
        for guest in self._guests.values():
            guest.tell("failed")
        return self._ended or NOT_BEGUN

    # ---- the other agents --------------------------------------------------------------------------------------------

    def _accept(self, *_: int) -> bytes:
        connection, process = link.accept(self._listener)
        if connection >= 0:
            guest = Guest(connection, process)
            secret = os.fsencode(self.told["SECRET"])
            reader = Reader(secret, lambda message: self._heard(guest, message), lambda: self._left(guest))
            self.world.watch(connection, reader.take)
        return b"."

    def _heard(self, guest: Guest, message: Message) -> Iterable[Row]:
        kind, *rest = message
        if kind == "known":
            guest.known = True
        elif kind == "order":
            guest.order = Order(*rest)
            self._guests[guest.order.name] = guest
            if self._why:
                guest.tell("without")
        return ()

    def _left(self, guest: Guest) -> Iterable[Row]:
        """The agent is gone.  Its watcher ends its rank; one that it has never known ends here."""
        guest.gone = True
        if not guest.known and guest.pid in self.world.children.members:
            proc.signal_group(guest.pid, signals.SIGKILL)
        return ()

    def _fork_began(self, name: str, pid: int) -> None:
        """A fork waits at the gate."""
        guest = self._guests.get(name)
        self.world.children.began(pid, name)
        self._begun.add(name)
        if guest is None:
            self.has_begun(pid, self.words, self._own.found)
            return
        guest.pid = pid
        guest.tell("began", pid)
        if guest.gone and pid in self.world.children.members:
            proc.signal_group(pid, signals.SIGKILL)

    # ---- ends --------------------------------------------------------------------------------------------------------

    def have_ended(self, rows: Iterable[tuple[str, int]]) -> None:
        """Handles the ends of ranks of this host, or of the process that imports."""
        for name, status in rows:
            guest = self._guests.get(name)
            if name == IMPORTS:
                self._tell_watcher(b"gone", self._parent)
                self._ended, self._parent = status, 0
            elif guest is None:
                super().have_ended([(name, status)])
            elif status or self.stops or not self.leftovers.hold([(name, guest.order.log, guest.pid)]):
                guest.tell("ended", status)

    def is_over(self, name: str, status: int) -> None:
        """A rank has ended with all that it had left."""
        guest = self._guests.get(name)
        if guest is None:
            super().is_over(name, status)
        else:
            guest.tell("ended", status)

    def _tell_left(self, event: Left | LeftFailed) -> None:
        guest = self._guests.get(event.name)
        if guest is None:
            self.voice.tell_left(event)
        else:
            guest.tell("left" if isinstance(event, Left) else "failure", *event[1:])

    def leave(self) -> None:
        """Waits for the other ranks of this host, which may last longer: their ends come here."""
        self._tell_watcher(b"gone", self.trainer or 0)
        while not all(guest.gone or not guest.pid for guest in self._guests.values()):
            self.look(LOOK_EVERY)

    def _tell_watcher(self, word: bytes, group: int) -> None:
        try:
            os.write(self._lifeline, b"%s %d\n" % (word, group))
        except OSError:
            return  # it was killed: the mark of the job is left

    # ---- the end of what other ranks have left -----------------------------------------------------------------------

    def stop(self, asks: bool = False) -> None:
        """Ends the rank, and what other ranks of the host have left, if this one has ended before."""
        if not self.stops and self.status is not None:
            self.leftovers.signal(signals.SIGTERM)
            self._end_left_at = self.world.now() + (self.patience if asks else self.grace)
        super().stop(asks)

    def look(self, seconds: float) -> None:
        """The same, and in time for what they have left."""
        super().look(self.leftovers.longest_sleep(seconds))
        if self._end_left_at is not None and self.world.now() >= self._end_left_at:
            self._end_left_at = None
            self.leftovers.signal(signals.SIGKILL)
