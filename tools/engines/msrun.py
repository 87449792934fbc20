"""Engine "msrun": MindSpore's own launcher starts this host's ranks, and its scheduler on host 0.

By itself, msrun ends the ranks with SIGKILL, leaves them running on any signal except INT, and waits for its scheduler
without limit.  So each rank, and the scheduler, is an agent that reports the start and the end of its trainer in a pipe
of ours.  All of them run on this host, so the supervisor itself signals them.
"""

from __future__ import annotations

import os
import shutil
import sys

from hccl_tools.common import project
from tools.engines import agents
from tools.engines.agent_lines import AgentLines
from tools.engines.agents import Agents
from tools.launch.engines.facts import MsrunFacts, of
from tools.rank.environment import Environment
from tools.supervise.members import SCHEDULER, Member

_RUN = "from mindspore.parallel.cluster.run import main; main()"
_MAY_HEAL = project.path("tools", "engines", "msrun_main.py")  # the same, where another program may take the ranks
# setsid moves the scheduler out of msrun's process group; the ranks are already outside of it.
_BECOME = "import os, sys; os.getpid() == os.getsid(0) or os.setsid(); os.execv(sys.argv[1], sys.argv[1:])"


class Msrun(Agents):
    name = "msrun"
    tells_ends = True

    def start(self) -> None:
        run = self.run
        ranks = run.rank_members()
        run.supervisor.members.add(ranks)
        facts = of(MsrunFacts, run.plan.engine)
        if facts.has_scheduler:
            run.supervisor.members.add([Member(SCHEDULER, os.path.join(run.logs, "scheduler.log"))])
        self.shares_scheduler = facts.world != len(ranks)
        member = Member(self.name, self.own_log())
        run.supervisor.members.add([member])
        secret = agents.secret()
        found = self.environment(secret)
        lines, self._told = os.pipe()  # we keep the end that is written, so that it never ends for us
        found[b"LAUNCH_BUS"] = f"/proc/{os.getpid()}/fd/{self._told}".encode()
        run.world.own(self._told)
        with run.log_of(member) as log:
            own = os.dup(log) if log >= 0 else -1
            run.world.own(own)
            self._own = own
            run.world.watch(lines, AgentLines(os.fsencode(secret), run.logs, own, None).take)
            self._lines = lines
            run.start(member, [*self.command(found), *run.trainer], found, log)

    def command(self, environment_: Environment) -> list[str]:
        """msrun can only run "python", "python3" or a file with Python.

        So it runs a Python that becomes the agent at once.  msrun sets MS_TOPO_TIMEOUT to its own --cluster_time_out.
        """
        run = self.run
        exports, facts = run.plan.exports, of(MsrunFacts, run.plan.engine)
        timeout = os.fsdecode(run.environment.get(b"MS_TOPO_TIMEOUT", b""))
        python = "python" if shutil.which("python") else "python3"
        return [
            sys.executable,
            *(["-c", _RUN] if not run.environment.get(b"MS_ENABLE_TFT", b"").strip() else [_MAY_HEAL]),
            f"--worker_num={facts.world}",
            f"--local_worker_num={len(run.plan.ranks)}",
            f"--master_addr={exports['MS_SCHED_HOST']}",
            f"--master_port={exports['MS_SCHED_PORT']}",
            f"--node_rank={facts.node}",
            f"--log_dir={os.path.join(run.logs, 'msrun')}",
            "--join=True",
            *([f"--cluster_time_out={timeout}"] if timeout else []),
            *[python, "-S", "-E", "-c", _BECOME],
            *self.agent_words(),
        ]

    def forget(self) -> None:
        """The attempt has ended."""
        self.run.world.unwatch(self._lines)
        for descriptor in (self._told, self._own):
            self.run.world.disown(descriptor)
