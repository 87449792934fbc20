#!/usr/bin/env python3
"""The first program in every rank that mpirun, srun or msrun starts: ``agent.py TRAINER...`` (tools/engines only).

It sets the rank's environment and opens the trainer's log in the run's folder.  It reports the trainer's start and end
to the launcher, and stops the trainer with all its children when the launcher orders it.  So the launcher knows every
rank's exit code at once, and the user's grace time applies, not the engine's.

Only the agent is in the engine's process group; the trainer and the watcher have their own.  So the trainer can write
its last lines when the engine kills its group, and the watcher can stop the trainer when the agent was killed. told.py
reads what the launcher passes to the agent.
"""

from __future__ import annotations

import os
import sys

sys.path[:0] = [os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))]

from collections.abc import Callable, Iterable

from tools.rank import beginning, likeness, telling, watcher
from tools.rank.environment import Environment
from tools.rank.told import REFUSED, Told
from tools.supervise import proc
from tools.supervise.events import Ended, LeftEnded, Signalled
from tools.supervise.leftovers import Leftovers
from tools.supervise.proc import signals
from tools.supervise.world import HANDLED, CannotStart, World
from tools.trainer import request_file

SIGNALS = (*HANDLED, signals.SIGURG, signals.SIGALRM, signals.SIGABRT)
WAITS = 0.3  # seconds: Slurm signals the trainer first and then the agent
_ORDERS: dict[int, str] = {signals.SIGURG: "stop", signals.SIGALRM: "ask", signals.SIGABRT: "stacks"}
_ORDERS.update({signals.SIGUSR1: "USR1", signals.SIGUSR2: "USR2"})
TELL_WITHIN = 2.0


class Agent:
    """The agent of one rank, while its trainer runs."""

    def __init__(self, told: Told, log: str, away: bool) -> None:
        self.told, self.log, self.away = told, log, away
        self.world = World(SIGNALS)
        self.grace, self.patience = told.number("GRACE"), told.number("ASK")
        self.engine = os.getppid()
        self.watcher = self.teller = 0  # their process ids
        self.trainer: int | None = None
        self.status: int | None = None
        self.stops = False  # it was ordered to stop
        self.cancelled = False  # it has told that the engine itself ends the job
        self.code = 0  # its exit code when it was stopped
        self._kill_at: float | None = None
        self._rest = b""
        self.voice = telling.Voice(told)
        self.tell = self.voice.tell
        self.words: list[str] = []  # of the trainer
        tell, waits = self.voice.tell_left, told["LEFTOVERS"] != "end"
        self.leftovers = Leftovers(self.world, told.job, lambda: self.words, tell, self.is_over, waits=waits)
        self._by_signals = not told["BUS"] and told["CONTROL"] != "stdin"

    # ---- the trainer's life --------------------------------------------------------------------------------------

    def start(self, words: list[str], log: int) -> None:
        """Starts the watcher, then the trainer."""
        self.world.heed_signals()
        self.world.children.adopt()
        if self.told["CONTROL"] == "stdin":
            self.world.watch(0, self._of_stdin)
        lifeline, self._lifeline = os.pipe()
        self.world.own(self._lifeline)
        agent = os.getpid()
        try:
            self.watcher = self.world.fork(lambda: watcher.watch(self, lifeline, agent, SIGNALS))
        except OSError:
            self.status = REFUSED
            return
        os.close(lifeline)
        if self.told["RESTART"] and not self.told["BUS"] and not self._is_free():
            self.status = 143 if self.stops else REFUSED
            self._never_started()
            return
        try:
            beginning.begin(self.told, words, log, lambda line, found: self.spawn(line, found, log))
        except CannotStart:
            self.status = REFUSED
        except OSError as error:
            os.write(log, os.fsencode(f"{words[0]}: {error.strerror}\n"))
            self.status = 127 if isinstance(error, FileNotFoundError) else 126
        if self.trainer is None:
            self._never_started()

    def _never_started(self) -> None:
        self.trainer = 0
        self.tell("start", self.told.name, os.getpid(), self.told.host)

    def _is_free(self) -> bool:
        """Waits until the last attempt has left nothing on this host, and follows orders meanwhile."""
        from tools.rank import free  # only a restart needs it

        return free.wait(self.told, self.engine, self.goes_on, lambda *said: self.tell("busy", self.told.name, *said))

    def goes_on(self, seconds: float) -> bool:
        """Follows orders for a while; False: the trainer is not to start."""
        self.look(seconds)
        return not self.stops and os.getppid() == self.engine

    def spawn(self, words: list[str], found: Environment, log: int) -> None:
        """Starts the trainer.  Raises OSError and CannotStart."""
        self.has_begun(self.world.start(self.told.name, words, found, log), words, found)

    def has_begun(self, pid: int, words: list[str], found: Environment) -> None:
        """The trainer runs, in a process group of its own."""
        self.trainer, self.words = pid, words
        os.write(self._lifeline, b"start %d\n" % pid)
        self.tell("start", self.told.name, pid, self.told.host)
        if self.away:
            self.tell("line", self.told.name, f"(this rank's log is on {self.told.host}: {self.log})")
        if self.told["WATCH"] and self.told.is_first_of_host:
            self.teller = likeness.told_beside(self.world, self.tell, self.told.name, words, found)

    def attend(self) -> int:
        """Handles events until the trainer has ended; returns its exit status."""
        while self.status is None:
            self.look(self.longest())
            if self.status is None and not self.told["BUS"] and os.getppid() != self.engine:
                self._lose_engine()
        return self.status

    def heed(self, seconds: float) -> None:
        """Follows orders until an order to stop comes, for at most this long."""
        end = self.world.now() + seconds
        while not self.stops and (left := end - self.world.now()) > 0:
            self.look(min(left, watcher.LOOK_EVERY))

    def longest(self) -> float:
        """Seconds until there is something to do."""
        if self._kill_at is None:
            return self.leftovers.longest_sleep(watcher.LOOK_EVERY)
        return max(0.01, min(watcher.LOOK_EVERY, self._kill_at - self.world.now()))

    def look(self, seconds: float) -> None:
        """Handles what happens, and comes back after this time at the latest."""
        for event in self.world.events(seconds):
            if type(event) is Ended:
                self.have_ended(event.rows)
            elif type(event) is LeftEnded:
                self.leftovers.have_ended(event.rows)
            elif type(event) is Signalled:
                self._signalled(event.number)
        if self._kill_at is not None and self.world.now() >= self._kill_at and self.trainer:
            self._kill_at = None
            proc.signal_group(self.trainer, signals.SIGKILL)
            self.leftovers.signal(signals.SIGKILL)
        self.leftovers.check()
        if self.away and self.told.number("HANG"):
            self.voice.tell_growth(self.log)

    def have_ended(self, rows: Iterable[tuple[str, int]]) -> None:
        """Handles the end of the trainer; after exit code 0 it lasts as long as the processes that it left."""
        name, status = next(iter(rows))
        if status or self.stops or self.told.is_scheduler or not self.leftovers.hold([(name, self.log, self.trainer)]):
            self.status = status

    def is_over(self, _: str, status: int) -> None:
        """The trainer has ended with all that it had left."""
        self.status = status

    def _signalled(self, number: int) -> None:
        if self.told["BUS"]:  # the supervisor signals the trainer itself
            if self.told["HEALS"] and number == signals.SIGTERM and self.trainer and self.status is None:
                proc.signal_group(self.trainer, number)
            return
        order = _ORDERS.get(number)
        if order is None:
            self._cancel()
        elif self._by_signals or order in ("stop", "ask", "stacks"):
            self._obey(order)
        elif order == "USR1":  # Slurm sends it, and USR2, to the trainer itself
            request_file.tell(self.told.run_dir, True)
            self.tell("warned")

    def _of_stdin(self, block: bytes) -> Iterable[Ended]:
        """Orders as lines; the end of them means that the launcher is gone."""
        *orders, self._rest = (self._rest + block).split(b"\n")
        for order in orders:
            self._obey(order.lstrip(b".").decode("ascii", "replace"))
        if not block:
            self.stop()
        return ()

    def _obey(self, order: str) -> None:
        if order in ("stop", "ask"):
            self.stop(order == "ask")
        elif order == "stacks":
            self._stacks()
        elif order in ("USR1", "USR2") and self.trainer and self.status is None:
            number = signals.SIGUSR1 if order == "USR1" else signals.SIGUSR2
            if order == "USR1":
                request_file.tell(self.told.run_dir, True)
            if not proc.pass_on(self.trainer, number):
                self.tell("asked", self.told.name)
            self.leftovers.pass_on(number)

    def stop(self, asks: bool = False) -> None:
        """SIGTERM to the trainer, and after the grace time SIGKILL.  asks: as a request to save and to end.

        A second order changes nothing: the launcher itself kills a rank that it does not want to wait for.
        """
        if self.stops:
            return
        self.stops = True
        if self.trainer and self.status is None:
            request_file.tell(self.told.run_dir, asks)
            proc.signal_group(self.trainer, signals.SIGTERM)
            self.leftovers.signal(signals.SIGTERM)
            self._kill_at = self.world.now() + (self.patience if asks else self.grace)

    def _lose_engine(self) -> None:
        """The engine's process on this host was killed, maybe because the time of a request is over."""
        if self._kill_at is not None and self.patience > self.grace:
            self._kill_at = min(self._kill_at, self.world.now() + self.grace)
            self.patience = self.grace
        self.stop()

    def _cancel(self) -> None:
        """The engine itself ends the job: after scancel, or because mpirun has lost a host.

        Under Slurm, srun and the daemon on the node both send SIGTERM; only the first one counts.  It counts even after
        an order to stop, because it limits the grace time.  If only this agent received a signal, mpirun ends the
        other ranks only when it sees a failure.
        """
        if self.cancelled:
            return
        self.cancelled = True
        if not self.stops and self._by_signals:
            self.code = 143
        self.tell("cancelled")
        if self.told["PATIENCE"]:
            most = self.told.number("PATIENCE")
            self.grace, self.patience = min(self.grace, most), min(self.patience, most)
            if self._kill_at is not None:
                self._kill_at = min(self._kill_at, self.world.now() + most)
        self.stop(asks=True)

    def _stacks(self) -> None:
        """Tells where the trainer is, and writes the whole stack next to the log.  This may end the trainer."""
        if self.trainer and self.status is None:
            self.voice.tell_stack(self.trainer)

    def leave(self) -> None:
        """The launcher knows how the trainer has ended, and nothing of it is left."""

    def sweep(self) -> None:
        """Kills what the trainer left, in its group and, by the marks in their environment, outside of it."""
        if self.trainer:
            self.world.signal_leftovers(self.trainer)
        if self.told.away_host:  # the launcher sweeps its own host
            proc.sweep(self.told.job, self.world.sleep, self.told.name.encode())


def main(words: list[str], kind: Callable[[Told, str, bool], Agent] = Agent) -> int:
    """The exit code of the agent."""
    told = Told()
    beginning.enter(told)
    away = not os.path.isfile(os.path.join(told.run_dir, "launch.json"))
    path, log = beginning.open_log(told, away)
    if not told["SECRET"]:
        beginning.begin(told, words, log, lambda line, found: beginning.become(line, found, log))
    agent = kind(told, path, away)
    agent.start(words, log)
    status = agent.attend()
    bus = bool(told["BUS"])
    if status == 143 and not bus:
        agent.heed(WAITS)  # for the signal to us, which explains why the trainer ended
    if away and (status or told["LOG_ENDS"]):
        agent.voice.tell_away(path, agent.trainer or 0)
    agent.voice.tell_exit(status, agent.trainer)
    agent.sweep()
    if away:
        beginning.leave_plogs(told, status)
    # After a failure the launcher orders all ranks to stop.  If that order does not come, the launcher is gone.  Then
    # the agent exits with the rank's code, so that the engine ends the job.
    if status and not bus and not told["KEEPS_GOING"]:
        agent.heed(agent.grace + 5)
    agent.leave()
    agent.world.kill(agent.watcher)
    if not agent.world.await_end(agent.teller, TELL_WITHIN):
        agent.world.kill(agent.teller)
    # The launcher knows the code.  If the engine saw a failure, it would stop the other ranks in its own way.
    # TaskD must see it, because it starts the rank again.
    hides = told["KEEPS_GOING"] and not told["HEALS"]
    return agent.code if hides or (agent.stops and not bus) else status


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))
