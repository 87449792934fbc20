"""Reads what the launcher passes to an agent in its environment, and determines which rank the agent is.

The variables, besides those of the job:
  LAUNCH_ENGINE      the engine; it determines where the agent finds the rank's numbers
  LAUNCH_DEVICES     devices of this host's ranks, in order of their local rank: "4 5 6 7"; hosts with other devices
                     follow, each with its number: "4 5 6 7;2:4 5 7"
  LAUNCH_TARGET      the kind of these devices, "Ascend" or "GPU"; empty: they are only numbers.  "Ascend named": the
                     user or a rank table names them; otherwise a host takes the first ones that it shows
  LAUNCH_SIZES       ranks of the job's hosts, see environment.host_of
  LAUNCH_EXPORTS     names of the variables that the launch has set
  LAUNCH_LOGS, LAUNCH_PLOGS, LAUNCH_BIND, LAUNCH_UMASK   where logs and plogs are, the cores of the ranks, the umask
  LAUNCH_FOLDER, LAUNCH_HOST   where the command was typed
  LAUNCH_LINKS       a folder that gets links to the ranks' logs, in Open MPI's layout
  LAUNCH_PYTHON      the launcher's Python: the program need not be one
  LAUNCH_WORDS       not empty: --per_rank_words
  LAUNCH_FILES       with --rank_folder: a line end before each path that the rank's folder gets
  LAUNCH_HANG        --hang_timeout, 0: none.  Agents need it where the launcher cannot see the log
  LAUNCH_JOB         the mark of the job's processes; it stays in the environment
  LAUNCH_SECRET      begins each line for the launcher; only this launch knows it.  Not set: no launcher reads the
                     lines, and the agent becomes the trainer
  LAUNCH_BUS         a pipe of the launcher, used instead of stdout for ranks of its host, which it signals itself
  LAUNCH_CONTROL     stdin: orders come as lines on stdin (srun); otherwise as signals: URG, ALRM, ABRT, USR1, USR2
                     (mpirun)
  LAUNCH_GRACE       seconds between SIGTERM and SIGKILL
  LAUNCH_ASK         the same after a request to save and to end
  LAUNCH_PATIENCE    upper limit of both when the engine itself ends the job; not set: no limit
  LAUNCH_LEFTOVERS   wait, end: --leftovers
  LAUNCH_LOG_ENDS    not empty: if the launcher cannot see the log, it gets the end of the log even of a successful rank
  LAUNCH_WATCH       not empty: without --no_watch, the first agent of a host reports what likeness.py reads
  LAUNCH_HEALS       not empty: msrun has given the ranks to a program that kills them and starts them again
  LAUNCH_RESTART     in a restart, --restart_wait: how long the agent waits until the last attempt has left nothing
  LAUNCH_KEEPS_GOING  not empty: --keep_going, an agent whose trainer has failed does not wait for an order
  LAUNCH_IMPORT_ONCE  what the ranks of a host import once, for tools/forking/agent.py
"""

from __future__ import annotations

import os
import sys

from tools.rank import environment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

REFUSED = 78


OF_PLAN = (
    *("ENGINE", "DEVICES", "TARGET", "SIZES", "BIND", "FOLDER", "HOST", "EXPORTS", "LOGS", "PLOGS", "LINKS", "UMASK"),
    *("HANG", "PYTHON", "WORDS", "FILES"),
)
_NAMES = (
    *OF_PLAN,
    *("SECRET", "BUS", "CONTROL", "GRACE", "ASK", "PATIENCE", "LEFTOVERS", "WATCH", "HEALS", "RESTART", "KEEPS_GOING"),
    *("IMPORT_ONCE", "LOG_ENDS"),
)


def refuse(text: str) -> NoReturn:
    """Ends a rank that cannot start.  The engine then ends the job, and its log has the reason."""
    number = os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("SLURM_PROCID", ""))
    sys.stderr.write(f"rank {number} on {os.uname().nodename}: {text}\n")
    sys.stderr.flush()
    os._exit(REFUSED)


class Told:
    """The launcher's settings for the agent, and the agent's rank."""

    def __init__(self) -> None:
        self.base = environment.of_this_process()
        self._words = {name: os.fsdecode(self.base.get(b"LAUNCH_" + name.encode(), b"")) for name in _NAMES}
        self.host = os.uname().nodename
        self.away_host = self.host != self["HOST"]
        self.name, self.local_rank = self._place()
        self.job = self.base.get(environment.MARK, b"")
        self.run_dir = os.fsdecode(self.base.get(b"LOG_DIR", b""))
        self._forget()

    def __getitem__(self, name: str) -> str:
        return self._words[name]

    def number(self, name: str) -> int:
        """A number that the launcher has written."""
        return int(self._words[name] or 0)

    def _place(self) -> tuple[str, int]:
        """The rank's number, or "scheduler", and its number on its host.

        LAUNCH_ENGINE names the engine, because under salloc a rank of mpirun also has srun's variables, from another
        step.
        """
        engine = self["ENGINE"]
        if engine == "msrun" and self.base.get(b"MS_ROLE") == b"MS_SCHED":
            return "scheduler", 0
        names = {
            "mpirun": (b"OMPI_COMM_WORLD_RANK", b"OMPI_COMM_WORLD_LOCAL_RANK"),
            "srun": (b"SLURM_PROCID", b"SLURM_LOCALID"),
            "msrun": (b"MS_NODE_ID", b"DEVICE_ID"),
        }
        numbers = [os.fsdecode(self.base.get(name, b"")) for name in names.get(engine, (b"", b""))]
        if not all(number.isascii() and number.isdigit() and len(number) < 9 for number in numbers):
            refuse(f"no rank: {engine} numbers it '{numbers[0]}', on its host '{numbers[1]}'")
        return numbers[0], int(numbers[1])

    def _forget(self) -> None:
        """Removes what is not for the trainer; a remote shell's start-up files may set some of the contract."""
        exports = self["EXPORTS"].split()
        for name in environment.CONTRACT:
            if name not in exports:
                self.base.pop(name.encode(), None)
        for name in _NAMES:
            self.base.pop(b"LAUNCH_" + name.encode(), None)
        for key in [key for key in self.base if key.startswith(environment.FOR_RANKS)]:
            self.base[key[len(environment.FOR_RANKS) :]] = self.base.pop(key)
        if self.away_host and b"HOSTNAME" in self.base:
            self.base[b"HOSTNAME"] = os.fsencode(self.host)  # some engines pass on the launcher's

    @property
    def is_first_of_host(self) -> bool:
        """Whether this is the first rank of its host, in a job of several hosts."""
        return self.local_rank == 0 and not self.is_scheduler and self["SIZES"].split() not in ([], [self._alone()])

    def _alone(self) -> str:
        """What LAUNCH_SIZES is where all ranks are on one host."""
        return f"{environment.host_of(0, self['SIZES'])[1]}x1"

    @property
    def is_scheduler(self) -> bool:
        return self.name == "scheduler"
