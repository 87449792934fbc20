"""Moves the link `latest` in the folder of logs to the launch's own run, before the ranks read any path."""

from __future__ import annotations

import os

from hccl_tools.common.language import tr
from hccl_tools.common.words import one_line, short
from tools.launch.programs import trainer_command
from tools.launch.request import Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.config.config_file import Config

RESUME_FROM = "train.resume_from"
_PATHS = (RESUME_FROM, "train.pretrained", "parallel.strategy_ckpt_load_file")


def without_it(request: Request, config: Config, arguments: list[str]) -> list[str]:
    """The arguments whose checkpoints are named through `latest` with the run's own name: the launch moves the link."""
    for key in _PATHS:
        path = config.get(key)
        real = _through_latest(request, path) if isinstance(path, str) else None
        if real:
            arguments = trainer_command.with_setting(arguments, f"{key}={yaml_word(real)}")
    return arguments


def remarks(request: Request) -> list[str]:
    """Notes about other arguments that lead through `latest`: they are passed on unchanged."""
    for word in request.trainer_arguments:
        if "latest" not in word:
            continue
        path = word.partition("=")[2] or word
        real = _through_latest(request, path)
        if real and word.partition("=")[0] not in _PATHS:
            return [
                tr(
                    "note: {word} leads through the link latest, which this launch moves to its own run; name the "
                    "run: {run}",
                    word=one_line(short(word)),
                    run=one_line(shown(real)),
                )
            ]
    return []


def _through_latest(request: Request, path: str) -> str | None:
    """The path without links, if it leads through the link that a launch moves."""
    link = os.path.abspath(os.path.join(request.log_dir or "logs", "latest"))
    whole = os.path.abspath(path)
    inside = whole == link or whole.startswith(link + os.sep)
    return os.path.realpath(whole) if inside and os.path.islink(link) else None


def yaml_word(path: str) -> str:
    """The path as a value of YAML."""
    import json  # not at the top: a launch without a config needs neither

    from tools.config import yaml_text

    try:
        plain = yaml_text.read(path)[0] == path
    except yaml_text.NotYaml:
        plain = False
    return path if plain else json.dumps(path, ensure_ascii=False)


def shown(path: str) -> str:
    """The path as a person types it: relative where it is below the current folder."""
    here = os.path.realpath(os.getcwd())
    return os.path.relpath(path, here) if path.startswith(here + os.sep) else path
