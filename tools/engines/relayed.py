"""Engines that can start ranks on other hosts: mpirun and srun.

The engine's process is a member of the job, like a rank.  When we order the ranks to stop, the agents receive the order
and give their trainers the grace time.  SIGTERM to the engine would make it kill the agents after its own time limit.
If the engine does not end, we kill it and everything that it left.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from hccl_tools.common.record import Row
from tools.engines import agent_lines, agents
from tools.engines.agent_lines import AgentLines
from tools.engines.agents import Agents
from tools.supervise import proc
from tools.supervise.events import Cancelled
from tools.supervise.members import Member
from tools.supervise.proc import signals

# The signals by which mpirun passes orders on to the agents; it forwards these.
_SIGNALS = {"stop": signals.SIGURG, "ask": signals.SIGALRM, "stacks": signals.SIGABRT}
_SIGNALS.update(USR1=signals.SIGUSR1, USR2=signals.SIGUSR2)


class Relayed(Agents):
    """orders_by_stdin: a line on the engine's stdin reaches all agents; otherwise a signal to the engine does."""

    way = 3.0
    orders_by_stdin = False
    _told = -1  # the pipe from the engine

    def cancelled(self) -> Cancelled | None:
        """The event when an agent reports that the engine itself ends the job; None: no rank has failed then."""
        return None

    def start(self) -> None:
        """Starts the scheduler, if the plan has one, then the engine."""
        run = self.run
        self.start_scheduler()
        run.supervisor.members.add(run.rank_members())
        member = Member(self.name, self.own_log())
        run.supervisor.members.add([member])
        secret = agents.secret()
        found = self.environment(secret)
        words = [*self.command(found), *self.agent_words(), *run.trainer]
        stdin, self._orders = os.pipe()
        lines, stdout = os.pipe()
        with run.log_of(member) as log:
            self.lines = AgentLines(os.fsencode(secret), run.logs, os.dup(log) if log >= 0 else -1, self.cancelled())
            run.world.own(self.lines.own, self._orders)
            started = run.start(member, words, found, stdout, stdin=stdin, error=log)
        for end in (stdin, stdout):
            os.close(end)
        if started:
            self._told = lines
            run.world.watch(lines, self._heard)
        else:
            os.close(lines)

    def order(self, word: str) -> None:
        """Passes the order on.  If it comes too early it is lost; an order to stop is repeated."""
        self.lines.ordered = self.lines.ordered or word in ("stop", "ask")
        member = self.run.supervisor.members.get(self.name)
        if self.orders_by_stdin:
            agent_lines.write(self._orders, f".{word}\n".encode())
        elif member and member.group is not None and member.pid and member.status is None:
            proc.send(member.pid, _SIGNALS[word])

    def _heard(self, block: bytes) -> list[Row]:
        if not block:
            self._told = -1  # the world closes it
        return self.lines.take(block)

    def forget(self) -> None:
        """Ends the attempt.  A process that is left over may still write; its lines are ignored."""
        if self._told >= 0:
            self.run.world.unwatch(self._told)
            self.lines.take(b"")
            self._told = -1
        for descriptor in (self._orders, self.lines.own):
            self.run.world.disown(descriptor)

    def lost_host(self) -> str:
        return self.lost_in(lines_of(self.own_log()))

    @staticmethod
    def lost_in(lines: Iterable[str]) -> str:
        """The host that the engine has lost, from the lines of its log; "" if none."""
        raise NotImplementedError

    def status_of(self, status: int) -> int:
        """The meaning of the engine's end: an engine that hides a rank's failure ends with 0."""
        return self.lines.failed if status == 0 and not self.lines.judged else status


def lines_of(path: str) -> Iterator[str]:
    """The lines of a log; none if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace", newline="\n") as file:
            for line in file:
                yield line.rstrip("\n").replace("\r", "")
    except OSError:
        return
