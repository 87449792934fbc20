"""Engine "local": the launcher itself starts the ranks, on this machine."""

from __future__ import annotations

import os

from hccl_tools.common.record import Row
from tools.engines.base import Engine
from tools.launch import rank_folders
from tools.launch.engines import facts
from tools.launch.programs import rank_words
from tools.rank import environment, places
from tools.supervise.members import IMPORTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tools.forking.parent import Parent
    from tools.launch.programs.import_once import Imports
    from tools.rank.environment import Environment
    from tools.supervise.members import Member


class Rank(Row):
    """A rank that is about to begin; own: what it has besides the job's part of the environment."""

    member: Member
    words: list[str]
    own: Environment


class Local(Engine):
    """Every rank is a child of the launcher."""

    _parent: Parent | None = None

    def start(self) -> None:
        run = self.run
        self.shares_scheduler = run.plan.cluster.scheduler_is_shared
        self.start_scheduler()
        members = run.rank_members()
        run.supervisor.members.add(members)
        if run.plan.imports is None:
            self._start_ranks(members)
        else:
            self._fork_ranks(members, run.plan.imports)

    def _start_ranks(self, members: list[Member]) -> None:
        """Each rank is a process of its own from its start."""
        run = self.run

        def begin(rank: Rank, folder: str | None, log: int) -> None:
            run.start(rank.member, rank.words, environment.whole(run.environment, rank.own), log, folder=folder)

        self._begin(members, begin)

    def _fork_ranks(self, members: list[Member], imports: Imports) -> None:
        """All ranks are forks of one process, which imports first: see tools/forking."""
        from tools.forking.parent import Parent  # few launches need it

        self._parent = parent = Parent(self.run, imports, lambda: self._start_ranks(members))
        self.starter = IMPORTS
        bound = self.run.plan.binding is not None

        def begin(rank: Rank, _: str | None, __: int) -> None:
            parent.add(rank, sorted(os.sched_getaffinity(0)) if bound else None)

        self._begin(members, begin)
        first = int(members[0].name)  # the parent has as many cores as a rank
        cores = self.run.plan.binding.cores if self.run.plan.binding else None
        with places.BatchPolicy(b"MS_WORKER_NUM" in self.run.environment), places.Bound(cores, first, -1):
            parent.start()

    def status_of(self, status: int) -> int:
        """The parent's status; once all ranks have begun, it is not needed."""
        return 0 if self._parent and self._parent.done else status

    def forget(self) -> None:
        if self._parent:
            self._parent.forget()
            self._parent = None

    def _begin(self, members: list[Member], begin: Callable[[Rank, str | None, int], None]) -> None:
        """Calls `begin` for each rank, with its folder and its log, while this process has what the rank inherits."""
        run = self.run
        device_ids = facts.of(facts.LocalFacts, run.plan.engine).device_ids
        sizes = facts.sizes_words(run.plan.sizes)
        plogs = places.Plogs(run.plan.plogs.word() if run.plan.plogs else "", run.logs)
        kept = places.Kept(run.environment, run.logs)
        cores = run.plan.binding.cores if run.plan.binding else None
        with places.BatchPolicy(b"MS_WORKER_NUM" in run.environment):
            for local_rank, member in enumerate(members):
                device = device_ids[local_rank] if device_ids else member.device or 0
                own = environment.of_rank(
                    run.environment,
                    rank=int(member.name),
                    local_rank=local_rank,
                    device=device,
                    sizes=sizes,
                    mark=run.mark,
                )
                folder = None
                if run.plan.rank_files is not None:
                    folder = rank_folders.there(run.plan.run_dir, member.name, run.plan.rank_files)
                    own[b"PWD"] = os.fsencode(folder)
                with run.log_of(member) as log:
                    own.update(plogs.open(member.name, log))
                    with places.Bound(cores, int(member.name), log) as bound:
                        own.update(bound)
                        kept.write(member.name, own, log)
                        words = rank_words.command(run.plan, run.trainer, int(member.name), local_rank, device)
                        begin(Rank(member, words, own), folder, log)
