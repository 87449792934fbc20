"""Checks the config of a trainer before a launch.

A launch of a program does not import this: YAML takes 25 ms.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from hccl_tools.common.language import tr
from hccl_tools.common.problem import Problem
from hccl_tools.common.refusal import REFUSED, Refusal
from hccl_tools.common.words import one_line
from tools.config import config_file, modes
from tools.launch.programs import trainer_command
from tools.launch.request import Request


def config(request: Request, path: str, is_own: bool, arguments: list[str]) -> config_file.Config | None:
    """The config `path` with the overrides of the trainer's arguments; None: see foreign_config.read."""
    if not is_own:
        from tools.launch.programs import foreign_config

        return foreign_config.read(path, arguments)
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


def target_of_program(request: Request, path: str, words: list[str]) -> str:
    """The setting of the target that a program of our trainer lacks; the trainer itself says what is wrong besides."""
    try:
        found: config_file.Config = config_file.load(path)
        found.override(trainer_command.settings(words))
    except config_file.ConfigError:
        return ""
    return trainer_command.target_setting(request, found, own=True)


def runs_alone(config: config_file.Config | None, ranks: int) -> bool:
    """Whether the one rank of a one-rank launch joins no job; several ranks must be distributed."""
    if config is None:
        return False
    distribute = config.get("system.distribute")
    if ranks > 1 and distribute is not True:
        raise Refusal(REFUSED, config_file.not_distributed(config))
    return ranks == 1 and distribute is not True


def training(request: Request, config: config_file.Config, ranks: int) -> None:
    """Checks that the parallel mode works on this target with this many ranks, and that checkpoints and data exist."""
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
