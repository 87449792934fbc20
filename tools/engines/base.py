"""The interface of an engine for the supervisor and the launcher.

A new engine is one file with a subclass, and one row of the table in table.py: see docs/extending.md.
"""

from __future__ import annotations

import os

from tools.rank import environment, places
from tools.supervise.members import SCHEDULER, Member

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.launch.run import Run


class Engine:
    """name: of its own process among the members; empty: it has none.

    starter: the member that starts the ranks, and ends when it has; empty: the launcher or the engine does.
    way: seconds that an order to the ranks may take, if it goes through the engine.
    tells_ends: its agents run on this host and tell the starts and ends of ranks, which we can signal ourselves.
    shares_scheduler: ranks of other hosts need our scheduler, too, which ends by itself when the last has left.
    knows_hosts: another program knows which hosts are lost, such as Slurm, so that it is asked before a restart.
    """

    name = ""
    starter = ""
    way = 0.0
    tells_ends = False
    knows_hosts = False

    def __init__(self, run: Run) -> None:
        self.run = run
        self.shares_scheduler = False

    def start(self) -> None:
        """Starts every rank of the plan, or the engine that does."""
        raise NotImplementedError

    def scheduler_words(self) -> list[str]:
        """The command of MindSpore's scheduler; empty if none is needed."""
        return self.run.plan.scheduler

    def order(self, word: str) -> None:
        """Sends an order to the agents: stop, ask (as a request to save), stacks, USR1, USR2."""

    def lost_host(self) -> str:
        """The host that the engine has lost, as its own log has it; empty if none."""
        return ""

    def status_of(self, status: int) -> int:
        """What the exit status of the engine's own process means."""
        return status

    def forget(self) -> None:
        """Closes everything that it had open, when the attempt has ended."""

    def start_scheduler(self) -> None:
        """Starts MindSpore's scheduler, where the plan has one for us."""
        words = self.scheduler_words()
        if not words:
            return
        run = self.run
        member = Member(SCHEDULER, os.path.join(run.logs, "scheduler.log"))
        run.supervisor.members.add([member])
        found = environment.of_scheduler(run.environment, run.mark)
        found.update((os.fsencode(name), os.fsencode(value)) for name, value in run.command.mpirun.values.items())
        cores = run.plan.binding.scheduler if run.plan.binding else []
        with places.Bound({0: cores} if cores else None, 0, -1) as bound:
            found.update(bound)
            run.keep_environment("scheduler.env", found)
            run.start(member, words, found)
