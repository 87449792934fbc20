"""Checks everything before anything starts.  Each function raises Refusal with one line per problem."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from hccl_tools.common.language import tr
from hccl_tools.common.problem import Problem
from hccl_tools.common.refusal import REFUSED, Refusal
from hccl_tools.common.words import one_line
from hccl_tools.machine import interpreter
from tools.config import config_file
from tools.launch import trainer_command
from tools.launch.placement import Placement
from tools.launch.request import Request

LEAST_FILES = 256  # the launcher and its console keep a few files open, a MindSpore rank hundreds


# ---- this host -------------------------------------------------------------------------------------


def folder() -> None:
    """Checks that the current folder is there: relative paths count from it, and the ranks run in it."""
    try:
        os.getcwd()
    except OSError as error:
        raise Refusal(
            REFUSED, tr("the current folder cannot be used: {reason}; change to another one", reason=error.strerror)
        ) from error


def limits() -> None:
    """Checks that the launcher and the ranks can open the files that they need."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if not 0 <= soft < LEAST_FILES:
        return
    few = tr("ulimit -n is {number}, too few open files for MindSpore", number=soft)
    if 0 <= hard < LEAST_FILES:
        raise Refusal(
            REFUSED,
            tr(
                "{few}, and more are not allowed: raise nofile in /etc/security/limits.conf, or the "
                "container's (docker run --ulimit nofile=65536)",
                few=few,
            ),
        )
    raise Refusal(REFUSED, tr("{few}; type: ulimit -n {number}", few=few, number="unlimited" if hard < 0 else hard))


def mindspore() -> None:
    from importlib.util import find_spec

    if find_spec("mindspore") is None:
        remedy = tr("{remedy}, or name another Python in PYTHON", remedy=interpreter.remedy_for("mindspore"))
        raise Refusal(
            REFUSED,
            tr(
                "{executable} has no MindSpore, which the ranks need; {remedy}",
                executable=sys.executable,
                remedy=remedy,
            ),
        )


def devices(request: Request, placement: Placement, by_mindspore: bool) -> None:
    """Checks that the devices of the ranks are there, and that other hosts are ready.

    by_mindspore: MindSpore must be able to use GPUs, too.
    """
    if request.no_check:
        return
    by_host = placement.devices_by_host()
    own = sorted({device for _, device in placement.ranks})
    if by_host:
        from tools.launch import host_check, network

        others = network.others(by_host)
        lines = host_check.problems(request, placement, others) if request.engine == "mpirun" else []
        if lines:
            raise Refusal(REFUSED, *lines)
        own = sorted({device for name in by_host if name not in others for device in by_host[name]})
    problem = None
    if own and request.device_target != "CPU":
        from tools.launch import device_check

        if request.device_target == "Ascend":
            problem = device_check.missing_npus(request.script, own)
        elif not by_host:
            problem = device_check.missing_gpus(request.script, own)
            if not problem and by_mindspore:
                problem = device_check.no_gpus_for_mindspore(request.script)
    if problem:
        raise Refusal(REFUSED, problem)


# ---- what ranks run -------------------------------------------------------------------------------


def data_path(request: Request) -> None:
    """Checks that the data set's folder is there, if the script takes one."""
    path = request.data_path
    if path is not None and not os.path.isdir(path):
        what = tr("is not a folder") if os.path.exists(path) else tr("no such folder")
        raise Refusal(
            REFUSED,
            tr("DATA_PATH {path}: {what}; name the folder that holds the data set", path=one_line(path), what=what),
        )


def is_program(request: Request) -> bool:
    """Whether the ranks run something that has no config of ours: a program, tests, or --train_script alone."""
    return request.program or request.pytest is not None or trainer_command.config_path(request) is None


def config(request: Request, path: str, is_own: bool, arguments: list[str]) -> config_file.Config | None:
    """The config `path` with the overrides of the trainer's arguments.

    Another trainer's config is not judged: None if there is no `system.distribute` to be read in it.
    """
    if not is_own:
        return _foreign_config(request, path, arguments)
    try:
        found: config_file.Config = config_file.load(path)
        data_path = request.data_path or os.environ.get("DATA_PATH")
        if data_path:
            found.take_data_from(data_path)
        found.override(trainer_command.settings(arguments))
        lines = found.problems()
    except config_file.ConfigError as error:
        raise Refusal(REFUSED, *error.lines) from error
    if lines:
        if not request.train_script:
            text = tr(
                "{path}: read as a config of tools/train.py; name another trainer with --train_script FILE",
                path=one_line(path),
            )
            lines = [*lines, text]
        raise Refusal(REFUSED, *lines)
    return found


def _foreign_config(request: Request, path: str, arguments: list[str]) -> config_file.Config | None:
    try:
        found: config_file.Config = config_file.load(path)
        found.override(trainer_command.settings(arguments))
    except config_file.ConfigError as error:
        if os.path.isfile(path) and os.access(path, os.R_OK):
            return None
        raise Refusal(REFUSED, *error.lines) from error
    return None if found.get("system.distribute") is None else found


def runs_alone(config: config_file.Config | None, ranks: int) -> bool:
    """Whether the one rank of a one-rank launch joins no job; several ranks must be distributed."""
    if config is None:
        return False
    distribute = config.get("system.distribute")
    if ranks > 1 and distribute is not True:
        raise Refusal(REFUSED, config_file.not_distributed(config))
    return ranks == 1 and distribute is not True


def parallel_mode(request: Request, program: str | None) -> None:
    """Checks that MindSpore does what the program's file asks for, as far as that is written there."""
    if program and not request.no_check:
        from tools.launch import parallel_calls

        parallel_calls.check(program, request.device_target)


def training(request: Request, config: config_file.Config, ranks: int) -> None:
    """Checks that the parallel mode works on this target with this many ranks, and that checkpoints and data exist."""
    from tools.config import modes  # other trainers need none of these

    filled = config.filled
    _refuse(config, modes.problems(filled, ranks, request.device_target))
    if request.engine != "local" or request.dry_run:
        return  # the data may be on other hosts
    from tools.trainer import checkpoints, datasets
    from tools.trainer.datasets.errors import DataError

    _refuse(config, checkpoints.problems(filled))
    try:
        datasets.check(filled, modes.data_part(filled, 0, ranks).shards, config.held_out_by_data_path())
    except DataError as error:
        raise Refusal(REFUSED, *error.lines) from error


def _refuse(config: config_file.Config, problems: Iterable[Problem]) -> None:
    lines = config.lines(problems)
    if lines:
        raise Refusal(REFUSED, *lines)
