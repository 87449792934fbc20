"""Performs all checks before anything starts; each function raises Refusal with one line per problem."""

from __future__ import annotations

import os
import sys

from hccl_tools.common.language import tr
from hccl_tools.common.refusal import REFUSED, Refusal, misused, refused
from hccl_tools.common.words import count, folder_fault, one_line
from hccl_tools.machine import interpreter
from tools.launch.engines.placement import Placement
from tools.launch.programs import trainer_command
from tools.launch.request import Request

LEAST_FILES = 256  # the launcher and its console keep a few files open, a MindSpore rank hundreds


# ---- this host -------------------------------------------------------------------------------------


def folder() -> None:
    """Checks that the current folder is there: relative paths count from it, and the ranks run in it."""
    if fault := folder_fault():
        raise Refusal(REFUSED, fault)


def limits() -> None:
    """Checks that the launcher and the ranks can open the files that they need."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if not 0 <= soft < LEAST_FILES:
        return
    few = tr("ulimit -n is {number}, too few open files for MindSpore", number=soft)
    if 0 <= hard < LEAST_FILES:
        raise refused(
            "{few}, and more are not allowed: raise nofile in /etc/security/limits.conf, or the "
            "container's (docker run --ulimit nofile=65536)",
            few=few,
        )
    raise refused("{few}; type: ulimit -n {number}", few=few, number="unlimited" if hard < 0 else hard)


def has_mindspore() -> bool:
    """Whether the ranks' Python, which is this one, finds MindSpore."""
    from importlib.util import find_spec

    return find_spec("mindspore") is not None


def mindspore() -> None:
    """Raises Refusal without MindSpore."""
    if not has_mindspore():
        remedy = tr("{remedy}, or name another Python in PYTHON", remedy=interpreter.remedy_for("mindspore"))
        raise refused(
            "{executable} has no MindSpore, which the ranks need; {remedy}", executable=sys.executable, remedy=remedy
        )


def devices(request: Request, placement: Placement, by_mindspore: bool) -> bool:
    """Checks that the devices of the ranks are there, and that other hosts are ready.

    by_mindspore: MindSpore must be able to use GPUs, too.  True: a host may have this project in another folder.
    """
    if request.no_check or request.sim_level is not None:  # which uses no devices
        return False
    by_host = placement.devices_by_host()
    own = sorted({device for _, device in placement.ranks})
    elsewhere = False
    if by_host:
        others, elsewhere = other_hosts(request, placement, [*by_host, *placement.spares])
        own = sorted({device for name in by_host if name not in others for device in by_host[name]})
    if own and request.device_target != "CPU":
        from tools.launch.devices import device_check

        if request.device_target == "Ascend":
            device_check.npus(own)
        elif not by_host:
            device_check.gpus(own)
            if by_mindspore:
                device_check.gpus_for_mindspore()
    return elsewhere


def other_hosts(request: Request, placement: Placement, hosts: list[str]) -> tuple[list[str], bool]:
    """(the `hosts` other than this one, whether one of them may have this project in another folder)."""
    from tools.launch.hosts import host_check, host_limits, network

    host_limits.check(request, placement)
    others = network.others(hosts)
    lines: list[str] = []
    elsewhere = False
    if request.engine == "mpirun":
        lines, elsewhere = host_check.problems(request, placement, others)
    elif request.engine == "srun":
        lines, elsewhere = host_check.problems_of_nodes(request, others)
    if lines:
        raise Refusal(REFUSED, *lines)
    return others, elsewhere


# ---- what ranks run -------------------------------------------------------------------------------


def console(request: Request, world: int) -> None:
    """Checks that the ranks of --console are ranks of the job; a restart may have fewer."""
    named = request.console or ""
    if not named[:1].isdigit() or request.attempt:
        return
    missing = [rank for rank in map(int, named.split(",")) if rank >= world]
    if missing:
        raise misused(
            "--console: the job has no rank {rank}; it has {ranks}, 0 to {last}",
            ranks=count(world, "rank"),
            rank=missing[0],
            last=world - 1,
        )


def fault_tolerance(request: Request) -> list[str]:
    """Checks MindSpore's fault tolerance where a variable turns it on; returns what to know of it."""
    names = ("MS_ENABLE_TFT", "MS_ENABLE_THM", "MINDIO_FOR_MINDSPORE")
    if request.no_check or not any(os.environ.get(name, "").strip() for name in names):
        return []
    from tools.launch.engines import fault_tolerance

    return fault_tolerance.check(request)


def data_path(request: Request) -> None:
    """Checks that the data set's folder is there, if the script takes one."""
    path = request.data_path
    if path is not None and not os.path.isdir(path):
        what = tr("is not a folder") if os.path.exists(path) else tr("no such folder")
        raise refused(
            "DATA_PATH {path}: {what}; name the folder that holds the data set", path=one_line(path), what=what
        )


def is_program(request: Request) -> bool:
    """Whether the ranks run something without a config of ours: a program, tests, or only --train_script."""
    return request.program or request.pytest is not None or trainer_command.config_path(request) is None


def program_calls(request: Request, program: str | None) -> None:
    """Checks that a program gets here what its file asks for, as far as that is written there."""
    if program and not request.no_check:
        from tools.launch.programs import program_calls

        if not request.ranks_file:  # the start script has set the variables
            program_calls.check_data(program, request)
        program_calls.check_target(program, request.device_target)
        program_calls.check_parallel(program, request.device_target)
