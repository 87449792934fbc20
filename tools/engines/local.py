"""Engine "local": the launcher itself starts the ranks, on this machine."""

from __future__ import annotations

import os

from tools.engines.base import Engine
from tools.launch import rank_folders
from tools.launch.engines import facts
from tools.launch.programs import rank_words
from tools.rank import environment, places


class Local(Engine):
    """Every rank is a child of the launcher."""

    def start(self) -> None:
        run = self.run
        self.shares_scheduler = run.plan.cluster.scheduler_is_shared
        self.start_scheduler()
        members = run.rank_members()
        run.supervisor.members.add(members)
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
                        run.start(member, words, environment.whole(run.environment, own), log, folder=folder)
