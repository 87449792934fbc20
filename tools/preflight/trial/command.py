"""The command ``preflight.sh --trial``: whether a trial can start, what its jobs have in common, what it adds."""

from __future__ import annotations

import os
import time

from hccl_tools.common.language import strerror, tr
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import Refusal, refused
from hccl_tools.common.words import one_line
from hccl_tools.machine import programs
from hccl_tools.table import device_range
from tools.launch import run_folder
from tools.launch.engines import slurm
from tools.launch.request import found_target
from tools.preflight.difference import LEVELS
from tools.preflight.trial import report, trial
from tools.preflight.trial.setting import HERE, MPIRUN, SRUN, Setting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tools.preflight.difference import Facts
    from tools.preflight.words import Found

_RANKS_WITHOUT_NPUS = 2  # of this host alone; a host of a list without a number has one
_NUMBER = 12  # bytes


class Wanted(Record):
    """The user's settings for a trial: see Setting for the fields of the same names.

    hosts: those of the check.  slurm: whether they are the nodes of an allocation.
    """

    hosts: Sequence[str]
    logins: Mapping[str, str]
    slots: Mapping[str, int]
    log_dir: str
    data: str = ""
    ssh: str = ""
    devices: Sequence[int] | None = None
    slurm: bool = False


def added(found: Found, wanted: Wanted, say: Callable[[str], None]) -> Found:
    """The findings with those of a trial.  The trial does not start if something would stop it.  Raises Refusal."""
    if found.blocks:
        say(tr("the trial does not start until what stops the job is repaired"))
        return found
    chosen = setting(wanted, found.facts)
    say(trial.plan(chosen))
    result = trial.run(chosen)
    both = [*found.differences, *report.differences(result, found.hosts)]
    return found.replace(differences=sorted(both, key=lambda each: LEVELS.index(each.level)), trial=result)


def setting(wanted: Wanted, facts: Mapping[str, Facts]) -> Setting:
    """The settings of all jobs. facts: those of the hosts.  Makes the folder of their logs.  Raises Refusal."""
    starter = SRUN if wanted.slurm else MPIRUN if wanted.logins else HERE
    if starter == MPIRUN and not programs.on_path("mpirun"):
        raise refused("--trial starts ranks on several hosts by mpirun, which is not on PATH; install Open MPI")
    npus = npus_of_each(wanted.hosts, facts)
    each = _ranks(wanted, starter, npus)
    return Setting(
        starter=starter,
        logins=wanted.logins,
        slots={name: each if starter == SRUN else wanted.slots.get(name) or each for name in wanted.hosts},
        target="Ascend" if npus else found_target(),
        number=os.urandom(_NUMBER).hex(),
        folder=_folder(wanted.log_dir),
        data=os.path.abspath(wanted.data) if wanted.data else "",
        ssh=wanted.ssh,
        devices=",".join(map(str, wanted.devices)) if wanted.devices else "",
    )


def _folder(log_dir: str) -> str:
    """A new one, for the logs of all jobs.  Raises Refusal."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    folder = os.path.join(os.path.abspath(log_dir), f"{run_folder.TRIAL}{stamp}-{os.getpid()}")
    try:
        os.makedirs(folder)
    except OSError as error:
        raise refused(
            "{path} cannot be made: {reason}; name another folder by --log_dir",
            path=one_line(folder),
            reason=strerror(error),
        ) from error
    return folder


def npus_of_each(hosts: Sequence[str], facts: Mapping[str, Facts]) -> int:
    """The number of NPUs on each host, which may not be this one; 0: one has none, or does not report it."""
    return min((_number(facts.get(host, {}).get("devices")) for host in hosts), default=0)


def _number(devices: object) -> int:
    """Of devices, as a host has answered."""
    try:
        return len(device_range.parse(devices)) if isinstance(devices, str) else 0
    except device_range.RangeError:
        return 0


def _ranks(wanted: Wanted, starter: str, npus: int) -> int:
    """Of a host without a given number: on NPUs as many as each host has."""
    if wanted.devices:
        return len(wanted.devices)
    if starter == SRUN and (npus == 0 or "SLURM_NTASKS_PER_NODE" in os.environ):
        return _tasks()
    return npus or (_RANKS_WITHOUT_NPUS if starter == HERE else 1)


def _tasks() -> int:
    """Of each node, as the allocation states it; it may have different numbers for them."""
    try:
        return slurm.tasks_per_node()
    except Refusal:
        return 1
