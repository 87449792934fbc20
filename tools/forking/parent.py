"""The parent of ranks that import once, as the launcher sees it: a member of the job until all ranks have begun.

Each rank is a child of the launcher: see importing.py.
"""

from __future__ import annotations

import os

from tools.forking import reasons
from tools.forking.importing import Fork, Importing
from tools.launch.programs import import_once
from tools.launch.run import CANNOT_START, unlink
from tools.rank import environment
from tools.supervise.members import IMPORTS, Member

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tools.engines.local import Rank
    from tools.launch.programs.import_once import Imports
    from tools.launch.run import Run
    from tools.rank.environment import Environment


class Parent:
    """The parent of one attempt. otherwise: starts the ranks without it."""

    def __init__(self, run: Run, imports: Imports, otherwise: Callable[[], None]) -> None:
        self._run, self._otherwise = run, otherwise
        self._modules = imports.names()
        self._importing = Importing(run.world, imports, self._began, self._unstarted, self._without)
        self._members: dict[str, Member] = {}  # those of which it has told nothing
        self._forks: list[Fork] = []
        self._begun = 0

    @property
    def done(self) -> bool:
        """Whether all ranks have begun: the parent is not needed any more."""
        return self._begun == len(self._forks)

    def add(self, rank: Rank, cores: list[int] | None) -> None:
        """Adds one rank; cores: those that it is bound to; None: it is not bound."""
        member = rank.member
        own = {name: value for name, value in rank.own.items() if name != environment.MARK}
        self._members[member.name] = member
        self._forks.append(Fork(member.name, rank.words, own, member.log, cores))

    def start(self) -> None:
        """Starts it, with the cores and the policy that this process has now."""
        run = self._run
        base = {**run.environment, environment.MARK: os.fsencode(run.mark)}
        own_words = run.plan.request.per_rank_words
        why = self._importing.refusal(base, self._forks)
        why = why or self._importing.start(base, self._forks, run.logs, own_words, self._start)
        if why:
            self._without(why)

    def _start(self, words: list[str], found: Environment) -> None:
        member = Member(IMPORTS, os.path.join(self._run.logs, f"{IMPORTS}.log"))
        self._run.supervisor.members.add([member])
        self._run.start(member, words, found)

    def _began(self, name: str, pid: int) -> None:
        """A rank has been forked, and waits at the gate."""
        supervisor, member = self._run.supervisor, self._members.pop(name, None)
        if member is None:
            return
        member.child, member.imported = True, self._modules
        self._run.world.children.began(pid, member.name)
        supervisor.began(member, pid, grouped=True)
        supervisor.stopping.catch_up(member)
        self._one_more()

    def _unstarted(self, name: str, status: int) -> None:
        """There may be no more processes, or the process between may have been ended."""
        member = self._members.pop(name, None)
        if member is None:
            return
        member.child = True
        if status != CANNOT_START:
            self._run.supervisor.members.began(member, self._run.world.now(), os.getpid())
        self._run.world.has_ended(member.name, status)
        self._one_more()

    def _one_more(self) -> None:
        self._begun += 1
        if self.done:
            self._importing.open_gate()
            unlink(os.path.join(self._run.logs, f"{IMPORTS}.log"))  # each rank's log has all of it

    def _without(self, why: str) -> None:
        """Starts the ranks as usual, unless one has begun or the job is ending."""
        if not self._begun and self._run.supervisor.stopping.running:
            self._run.note(import_once.without(reasons.text(why)))
            self._otherwise()
            self._begun = len(self._forks)

    def forget(self) -> None:
        """The attempt has ended; a rank that still waits ends itself."""
        self._importing.forget()
