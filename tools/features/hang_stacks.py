"""Reports where the ranks of a job that hangs are in their code; the agents do so on other hosts."""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401 - loaded before the ranks start, for a child that asks many of them

from hccl_tools.common.grouping import grouped
from tools.diagnosis import hang
from tools.features.base import Feature
from tools.features.beside import say_all
from tools.output import alike
from tools.supervise.members import IMPORTS

TITLE = "mindspore-launch-stacks"
WITHIN = 60.0  # seconds; stacks.py has limits of its own


class HangStacks(Feature):
    """Writes every rank's stack to rank_N.stack next to its log, and a summary to stderr.

    Before the ranks have begun, with --import_once, it is that of the process which imports.
    """

    def hangs(self) -> None:
        run, members = self.run, self.run.supervisor.members
        parent = members.get(IMPORTS)
        if parent is not None and parent.pid is not None and parent.status is None:  # no rank has begun its program
            pid, module = parent.pid, run.supervisor.stacks.get(IMPORTS, "")
            say_all(run, TITLE, lambda _, tells: hang.tell_import(tells, run.logs, pid, module), WITHIN)
            return
        ranks = (member for member in members if member.rank is not None and member.status is None)
        pairs = [f"{m.name}={m.pid}" for m in ranks if m.group is not None or (m.left and m.child)]
        if pairs:
            say_all(run, TITLE, lambda _, tells: hang.tell(tells, run.logs, pairs), WITHIN)
        elif run.engine.name:
            self._carried()

    def _carried(self) -> None:
        """The same for ranks that an engine started: their agents tell it.  Ranks at the same place share a line."""
        supervisor = self.run.supervisor
        supervisor.ask_stacks()
        ranks = sorted(int(name) for name in supervisor.stacks if name.isdigit())
        for place, same in grouped((supervisor.stacks[str(rank)], rank) for rank in ranks).items():
            self.run.say(f"{alike.named(same)}: {place}")
        told = {rank: supervisor.stacks[str(rank)] for rank in ranks}
        of_job = [member.rank for member in supervisor.members if member.rank is not None and member.status is None]
        self.run.say(hang.verdict(self.run.logs, of_job, told))
