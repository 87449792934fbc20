"""The settings that all jobs of a trial share, and the command of one; our scripts start it like any program."""

from __future__ import annotations

import os

from hccl_tools.common import project
from hccl_tools.common.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HERE, MPIRUN, SRUN = "launch.sh", "run_mpirun_2.sh", "run_slurm.sh"  # the scripts that start the ranks
SECONDS = 180  # of one job; for each power of 2 of its ranks so many more
_MORE = 10


class Setting(Record):
    """What all jobs of a trial have in common.

    starter: the script that starts the ranks.  slots: {host: its ranks}; with srun each has as many.
    logins: {host: [user@]host} for mpirun.
    number: of this trial, in every measure.  folder: for the logs of all its jobs.
    """

    starter: str
    slots: Mapping[str, int]
    target: str
    number: str
    folder: str
    logins: Mapping[str, str] = {}
    data: str = ""
    megabytes: int = 64
    ssh: str = ""
    devices: str = ""


def seconds(ranks: int) -> int:
    """The time limit of a job with this number of ranks."""
    return SECONDS + _MORE * max(0, ranks - 1).bit_length()


def command(setting: Setting, hosts: Sequence[str], folder: str) -> list[str]:
    """The launch of a job on these hosts.  folder: for its logs, and for the list of its hosts where one is needed."""
    limit = seconds(sum(setting.slots[host] for host in hosts))
    words = ["bash", project.path("scripts", setting.starter), "--device_target", setting.target, "--log_dir", folder]
    words += ["--console", "all", "--no_watch", "--timeout", str(limit)]
    words += ["--devices", setting.devices] if setting.devices else []
    words += _places(setting, hosts, folder)
    words += [project.path("tools", "preflight", "trial", "program.py")]
    words += ["--trial", setting.number, "--target", setting.target, "--megabytes", str(setting.megabytes)]
    return [*words, "--data", setting.data] if setting.data else words


def _places(setting: Setting, hosts: Sequence[str], folder: str) -> list[str]:
    """The words that state where the ranks run, and how many."""
    if setting.starter == MPIRUN:
        return [*(["--ssh", setting.ssh] if setting.ssh else []), _hostfile(setting, hosts, folder)]
    if setting.starter == SRUN:
        others = ",".join(host for host in setting.slots if host not in hosts)
        each = str(setting.slots[hosts[0]])
        return ["--ntasks_per_node", each, *(["--exclude", others] if others else [])]
    return [] if setting.devices else ["-n", str(setting.slots[hosts[0]])]


def _hostfile(setting: Setting, hosts: Sequence[str], folder: str) -> str:
    """The path of a file with these hosts."""
    path = os.path.join(folder, "hosts")
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f"{setting.logins[host]} slots={setting.slots[host]}\n" for host in hosts)
    return path
