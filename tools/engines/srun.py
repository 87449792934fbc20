"""Engine "srun": Slurm starts the ranks, the same number on each node of the allocation."""

from __future__ import annotations

import os
from collections.abc import Iterable

from hccl_tools.common.language import tr
from tools.engines.relayed import Relayed
from tools.launch.engines.facts import OF_SBATCH, SrunFacts, of
from tools.rank.environment import Environment
from tools.supervise.events import Cancelled


class Srun(Relayed):
    """The reasons for its less obvious options; Slurm's documentation describes what they do:

    --ntasks-per-node, --distribution   without them Slurm may put 3 ranks of 4 on one node
    --kill-on-bad-exit   a second safety net: an agent that dies ends the job
    --wait=0             else a site's WaitTime would end the other ranks some time after the first one succeeded
    --input, --output, --error   connect the agents to us; they override SLURM_STDOUTMODE and its like
    --cpu-bind=none      the trainer's threads may run on every core of the job
    --mpi=none           the ranks find each other through MindSpore's scheduler
    """

    name = "srun"
    orders_by_stdin = True  # on SIGTERM, srun kills its tasks at once; a line on its stdin reaches all of them
    knows_hosts = True  # Slurm knows the states of all nodes, and may not state it in srun's log

    def command(self, environment_: Environment) -> list[str]:
        facts = of(SrunFacts, self.run.plan.engine)
        nodes, each = len(facts.nodes), facts.per_node
        for name in OF_SBATCH:
            environment_.pop(name.encode(), None)
        # After scancel the agents must finish a second before we write the report, see Stopping.cancel.
        patience = facts.kill_wait - 4 if facts.kill_wait > 5 else 1
        environment_[b"LAUNCH_CONTROL"] = b"stdin"
        environment_[b"LAUNCH_PATIENCE"] = str(patience).encode()
        kill = "0" if self.bears_failures(environment_) else "1"
        return [
            "srun",
            f"--nodes={nodes}",
            f"--ntasks={nodes * each}",
            f"--ntasks-per-node={each}",
            f"--nodelist={','.join(facts.nodes)}",
            "--distribution=block",
            f"--kill-on-bad-exit={kill}",
            "--wait=0",
            "--cpu-bind=none",
            "--mpi=none",
            "--input=all",
            "--output=all",
            "--error=all",
            "--export=ALL",
            f"--chdir={os.getcwd()}",
            "--overlap",
        ]

    def cancelled(self) -> Cancelled:
        """After scancel, or at the job's time limit, Slurm kills what is left after its KillWait."""
        seconds = of(SrunFacts, self.run.plan.engine).kill_wait
        return Cancelled(
            seconds,
            tr(
                "Slurm kills the remaining processes after {seconds} s (KillWait): the grace time ends before that",
                seconds=seconds,
            ),
        )

    @staticmethod
    def lost_in(lines: Iterable[str]) -> str:
        """The node that Slurm has lost, or that does not take its part of a step."""
        for line in lines:
            if "error: Node failure on " in line:
                return line.rpartition(" on ")[2]
            if "error: Task launch for " in line and ": Communication connection failure" in line:
                _, found, node = line.partition(" failed on node ")
                if found:
                    return node.partition(":")[0]
        return ""

    def scheduler_words(self) -> list[str]:
        """MindSpore's scheduler runs on the allocation's first node; this script may run on a login node."""
        words, node = self.run.plan.scheduler, self.run.plan.cluster.scheduler_node
        if not words or not node:
            return words
        reach = ["srun", "--nodes=1", "--ntasks=1", f"--nodelist={node}", "--overlap", "--mpi=none"]
        return [*reach, "--cpu-bind=none", "--output=all", "--error=all", "--export=ALL", *self.there(words)]
