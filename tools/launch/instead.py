"""Suggests a command on a machine without the devices of a launch: the same arguments on its processors, or the plan.

A line is printed only if its launch gets as far as the plan.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from hccl_tools.common import project
from hccl_tools.common.language import tr
from hccl_tools.common.quoting import quote
from hccl_tools.common.refusal import Refusal
from hccl_tools.common.words import short_path
from tools.command import retyped
from tools.command.command import Command, read
from tools.launch import checks, plan
from tools.launch.programs import trainer_command
from tools.launch.request import Request

_MADE_UP = ("configs", "demo_hccn.conf")  # addresses for those who have no NPUs


def remedy(command: Command, request: Request) -> str:
    """The end of a message with the command to type instead; empty if there is none."""
    if request.placement == "pod":
        return ""  # the words of a pod are in its manifest, and its plan waits for the other pods
    for words in _on_processors(command, request):
        if _is_planned(command, words):
            text = tr("; to try the launch without NPUs: {command}", command=line(command, words))
            if request.device_target == "GPU":
                text = tr("; to try the launch without GPUs: {command}", command=line(command, words))
            return text
    for words in _plan_only(command):
        if _is_planned(command, words):
            return tr("; on CPU it would be refused; to see its plan: {command}", command=line(command, words))
    return ""


def _on_processors(command: Command, request: Request) -> Iterator[list[str]]:
    """The words for CPU; first with the config that the script has for it."""
    words = retyped.for_target(command.declaration, command.typed, "CPU")
    own_trainer = not checks.is_program(request) and trainer_command.is_own(trainer_command.trainer(request))
    if request.default_config and request.config is None and own_trainer:
        smaller = for_processors(request.default_config)
        if os.path.isfile(smaller):
            yield retyped.with_options(command.declaration, words, {"config": short_path(smaller)})
    yield words


def for_processors(config: str) -> str:
    """The place of the config for CPU that belongs to a script's default config."""
    start, end = os.path.splitext(config)
    return f"{start}_cpu{end}"


def _plan_only(command: Command) -> Iterator[list[str]]:
    """The words that print the plan; rank tables need addresses, which may be made up."""
    options = {"dry_run": "", "no_check": ""}
    yield retyped.with_options(command.declaration, command.typed, options)
    options["hccn_conf"] = short_path(project.path(*_MADE_UP))
    yield retyped.with_options(command.declaration, command.typed, options)


def _is_planned(command: Command, words: list[str]) -> bool:
    """Whether a launch of these words can be planned; it leaves nothing behind."""
    try:
        request = Request.from_words(read(command.declaration, words).words)
        plan.make(request.replace(dry_run=True))
    except Refusal:
        return False
    return True


def line(command: Command, words: list[str]) -> str:
    """The words as one line for the shell that typed the command."""
    script = command.declaration.script
    start = command.declaration.command()
    if "SLURM_JOB_ID" in os.environ and script == project.path("scripts", command.declaration.name):
        start = ["sbatch", *_of_allocation(), script]  # which ran a copy of the script
    data = os.environ.get("DATA_PATH") if "DATA_PATH" not in command.declaration.arguments else None
    variable = f"DATA_PATH={quote(data)} " if data else ""  # it may have been typed before the command, too
    return variable + " ".join(map(quote, [*start, *words]))


def _of_allocation() -> list[str]:
    """The options of sbatch for as many nodes and ranks as this job has."""
    names = {"--nodes": "SLURM_JOB_NUM_NODES", "--ntasks-per-node": "SLURM_NTASKS_PER_NODE"}
    return [f"{option}={os.environ[name]}" for option, name in names.items() if os.environ.get(name)]
