"""The part of ``preflight.sh --trial``: whether a trial can start, what all its jobs have in common, what it adds."""

from __future__ import annotations

import os
import time

from hccl_tools.common.language import tr
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import REFUSED, Refusal
from hccl_tools.common.words import one_line
from hccl_tools.machine import host, programs
from tools.launch import run_folder
from tools.launch.request import found_target
from tools.preflight.difference import LEVELS
from tools.preflight.trial import report, trial
from tools.preflight.trial.jobs import Setting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tools.preflight.words import Found

_RANKS_WITHOUT_NPUS = 2  # of this host alone; a host of a list without a number has one
_NUMBER = 12  # bytes


class Wanted(Record):
    """What the user says of a trial: see Setting for the fields of the same names; hosts: those of the check."""

    hosts: Sequence[str]
    logins: Mapping[str, str]
    slots: Mapping[str, int]
    log_dir: str
    data: str = ""
    ssh: str = ""
    devices: Sequence[int] | None = None


def added(found: Found, wanted: Wanted, say: Callable[[str], None]) -> Found:
    """The findings with those of a trial.  Nothing starts if something would stop it.  Raises Refusal."""
    if found.blocks:
        say(tr("the trial does not start before what stops the job is repaired"))
        return found
    chosen = setting(wanted, found_target())
    say(trial.plan(chosen))
    result = trial.run(chosen)
    both = [*found.differences, *report.differences(result, found.hosts)]
    return found.replace(differences=sorted(both, key=lambda each: LEVELS.index(each.level)), trial=result)


def setting(wanted: Wanted, target: str) -> Setting:
    """What all jobs have in common.  Makes the folder of their logs.  Raises Refusal."""
    if wanted.logins and not programs.on_path("mpirun"):
        text = tr("--trial starts ranks on several hosts by mpirun, which is not on PATH; install Open MPI")
        raise Refusal(REFUSED, text)
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    folder = os.path.join(os.path.abspath(wanted.log_dir), f"{run_folder.TRIAL}{stamp}-{os.getpid()}")
    try:
        os.makedirs(folder)
    except OSError as error:
        text = tr(
            "{path} cannot be made: {reason}; name another folder by --log_dir",
            path=one_line(folder),
            reason=error.strerror,
        )
        raise Refusal(REFUSED, text) from error
    return Setting(
        logins=wanted.logins,
        slots={name: wanted.slots.get(name) or _ranks(wanted, target) for name in wanted.hosts},
        target=target,
        number=os.urandom(_NUMBER).hex(),
        folder=folder,
        data=os.path.abspath(wanted.data) if wanted.data else "",
        ssh=wanted.ssh,
        devices=",".join(map(str, wanted.devices)) if wanted.devices else "",
    )


def _ranks(wanted: Wanted, target: str) -> int:
    """Of a host without a number of ranks: on NPUs as many as this one has."""
    if wanted.devices:
        return len(wanted.devices)
    if target == "Ascend":
        return len(host.devices())
    return 1 if wanted.logins else _RANKS_WITHOUT_NPUS
