"""Engines whose ranks are agents (tools/rank/agent.py): the settings of the agents, and their reports.

An agent writes lines that begin with a secret of this launch.  The engine passes them to its stdout, which is a pipe to
us, or the agents write directly into a pipe of ours.  The rest of the engine's output is its log.
"""

from __future__ import annotations

import os
import sys

from hccl_tools.common import project
from tools.engines.base import Engine
from tools.launch.engines import facts
from tools.rank import environment
from tools.rank.environment import Environment

AGENT = project.path("tools", "rank", "agent.py")
FORKING = project.path("tools", "forking", "agent.py")  # with --import_once


class Agents(Engine):
    """An engine that starts an agent for each rank."""

    def command(self, environment_: Environment) -> list[str]:
        """The engine with its options, up to the agent; may change the environment in which it is started."""
        raise NotImplementedError

    def agent_words(self) -> list[str]:
        """The agent's command, to which the trainer's words are added.  No variable steers this Python."""
        program = FORKING if self.run.plan.imports else AGENT
        return self.there([sys.executable, "-I", "-S", program])

    def there(self, words: list[str]) -> list[str]:
        """A command of ours for the hosts of the job, if one of them has this project in another folder."""
        if not self.run.plan.engine.elsewhere:
            return words
        from hccl_tools.hosts import elsewhere  # few launches need it

        return elsewhere.command(words)

    def environment(self, secret: str = "") -> Environment:
        """The environment of the engine, and so of its agents; secret: empty for --dry_run."""
        run = self.run
        found = dict(run.environment)
        for name in [name for name in found if name.startswith(b"LAUNCH_") and name not in KEPT]:
            del found[name]
        files = run.plan.rank_files
        told = {
            "LAUNCH_ENGINE": self.name,
            "LAUNCH_DEVICES": facts.devices_words(run.plan.engine),
            "LAUNCH_TARGET": self._target(),
            "LAUNCH_SIZES": facts.sizes_words(run.plan.sizes),
            "LAUNCH_BIND": run.plan.binding.word() if run.plan.binding else "",
            "LAUNCH_FOLDER": os.getcwd(),
            "LAUNCH_HOST": os.uname().nodename,
            "LAUNCH_EXPORTS": " ".join(run.plan.exports),
            "LAUNCH_LOGS": run.logs,
            "LAUNCH_PLOGS": run.plan.plogs.word() if run.plan.plogs else "",
            "LAUNCH_LINKS": self.links(),
            "LAUNCH_UMASK": umask(),
            "LAUNCH_HANG": str(run.settings.hang_timeout),
            "LAUNCH_PYTHON": sys.executable,
            "LAUNCH_LOG_ENDS": os.environ.get("LAUNCH_LOG_ENDS", ""),
            "LAUNCH_FILES": "" if files is None else "\n" + "\n".join(files),
            "LAUNCH_WORDS": "each" if run.plan.request.per_rank_words else "",
        }
        if secret:
            if run.plan.imports:  # the word names the socket of each host's agents
                told["LAUNCH_IMPORT_ONCE"] = f"{_random()}\n{run.plan.imports.word()}"
            told.update(LAUNCH_SECRET=secret, LAUNCH_GRACE=str(run.settings.grace), LAUNCH_JOB=run.mark)
            told["LAUNCH_ASK"] = str(run.longest_request())
            told["LAUNCH_LEFTOVERS"] = run.settings.leftovers
            told["LAUNCH_WATCH"] = "yes" if run.settings.watch else ""
            told["LAUNCH_RESTART"] = str(run.settings.restart_wait) if run.attempt and run.settings.restart_wait else ""
            told["LAUNCH_KEEPS_GOING"] = "yes" if run.settings.keep_going else ""
        found.update((os.fsencode(name), os.fsencode(value)) for name, value in told.items())
        for own, given in run.command.mpirun.values.items():  # of mpirun -x NAME=VALUE: for the ranks alone
            found[environment.FOR_RANKS + os.fsencode(own)] = os.fsencode(given)
        return found

    def _target(self) -> str:
        """Whose devices the ranks use, as tools/rank/device.py reads it."""
        target = self.run.plan.request.device_target
        if target == "CPU":
            return ""
        return f"{target} named" if self.run.plan.engine.named else target

    def links(self) -> str:
        """The folder in which agents make links to the logs; empty: in none."""
        return ""

    def bears_failures(self, found: Environment) -> bool:
        """Whether the engine itself must let ranks continue when one fails: in the output of --dry_run.

        Agents hide a rank's failure from it, so that it still ends the job when an agent dies.
        """
        return b"LAUNCH_SECRET" not in found and self.run.settings.keep_going

    def own_log(self) -> str:
        return os.path.join(self.run.logs, f"{self.name}.log")


KEPT = (b"LAUNCH_LANG", b"LAUNCH_LOCKS", b"LAUNCH_STRAGGLER")  # variables of the launch that ranks have, too


def umask() -> str:
    """The umask of this process, as ``0022``."""
    mask = os.umask(0)
    os.umask(mask)
    return f"{mask:04o}"


def secret() -> str:
    """A word that no other process knows."""
    return f"launch-{_random()}"


def _random() -> str:
    return f"{int.from_bytes(os.urandom(12), 'big'):x}"
