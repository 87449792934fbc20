"""A parsed command line: the values for the plan, and the options that the launcher itself uses."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from hccl_tools.common import project
from hccl_tools.common.quoting import quoted
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import Refusal
from tools.command.declaration import Declaration
from tools.command.line import Line, MpirunWords
from tools.command.parse import parse
from tools.command.settings import Settings

MOST_TYPED = 32768  # characters of a command line that is kept
# Options of the launcher alone: tools.launch.request.Request has no field for them.
_OWN = [
    "console",
    "engine",
    "grace",
    "hang_timeout",
    "keep_going",
    "lang",
    "leftovers",
    "max_restarts",
    "no_defaults",
    "no_watch",
    "report",
    "restart_limit",
    "restart_wait",
    "stall_timeout",
    "stop_before",
    "timeout",
    "zoo",
]


class Command(Record):
    """One launch, as the user typed it."""

    declaration: Declaration
    typed: tuple[str, ...]  # by the user
    words: list[str]  # for tools.launch.request.Request.from_words
    settings: Settings
    notes: tuple[str, ...]  # to print once the launch is sure to start
    mpirun: MpirunWords
    environment: dict[str, str]  # variables that options set for the job
    needs_lock: bool  # whether the job holds devices
    program: tuple[str, ...]  # a program with its words, instead of a trainer
    defaults: tuple[str, ...] = ()  # options of MSLAUNCH_OPTIONS, see defaults.py
    zoo: bool = False  # it is a script that starts the ranks itself


def read(declaration: Declaration, typed: Sequence[str], environ: Mapping[str, str] = os.environ) -> Command:
    """The command of the words that the user typed.  Raises Refusal for a mistake, HelpAsked for --help."""
    line = Line(declaration, environ)
    try:
        settings = _settings(line, typed)
    except Refusal as refusal:
        if not typed:
            from tools.command import help as help_page

            raise Refusal(refusal.status, *refusal.lines, *help_page.usage(declaration)) from refusal
        if not line.defaults:
            raise
        from tools.command import defaults

        raise defaults.blamed(refusal, line.defaults) from refusal
    words = _words(line, _as_typed(declaration, typed), settings)
    return Command(
        declaration=declaration,
        typed=tuple(typed),
        words=words,
        settings=settings,
        notes=tuple(filter(None, (declaration.note, *_told(line), *line.notes))),
        mpirun=line.mpirun,
        environment=line.environment,
        needs_lock=not settings.dry_run and (_target(words) != "cpu" or line.given("bind_core")),
        program=tuple(line.program),
        defaults=tuple(line.defaults),
        zoo=line.given("zoo"),
    )


def _settings(line: Line, typed: Sequence[str]) -> Settings:
    """Those of the words, which are read into the line.  Raises Refusal and HelpAsked."""
    parse(line, typed)
    if line.declaration.others:
        from tools.command import mpirun_words

        mpirun_words.check(line)
    return Settings.of(line)


def _told(line: Line) -> list[str]:
    """Which options come from the environment."""
    if not line.defaults:
        return []
    from tools.command import defaults

    return [defaults.told(line.defaults)]


def _as_typed(declaration: Declaration, words: Sequence[str]) -> str:
    """The command line as a shell reads it, without bash before a script; empty if it is too long."""
    start = declaration.command()
    text = " ".join(map(quoted, (*start[start[0] == "bash" :], *words)))
    return text if len(text) < MOST_TYPED else ""


def _words(line: Line, typed: str, settings: Settings) -> list[str]:
    declaration = line.declaration
    words = [
        f"script={declaration.name}",
        f"script_devices={declaration.extra.get('devices', '')}",
        f"job_pid={os.getpid()}",
        f"typed={typed}",
        f"engine={declaration.engine}",
    ]
    for key, value in declaration.extra.items():
        if key == "default_config" and value:
            value = project.path(value)
        if key != "devices":
            words.append(f"{key}={value}")
    if declaration.quoted:
        words.append("quoted=quoted")
    # after the script's words, because the last one counts
    words += (f"{name}={value}" for name, value in line.options if name not in _OWN)
    words += (f"{name.lower()}={value}" for name, value in zip(line.names, line.arguments))
    if "DEVICE_TARGET" in line.names:
        words.append("target_is_argument=1")
    words += [f"max_restarts={settings.max_restarts}", f"restart_limit={settings.restart_limit}"]
    if settings.console_given:
        words.append(f"console={settings.console}")
    if line.defaults:
        from tools.command import defaults

        words.append(f"defaults={defaults.shown(line.defaults)}")
    if line.program:
        words.append("program=1")
    return [*words, "--", *line.trainer, *line.program]


def _target(words: list[str]) -> str:
    """The device target in small letters: an argument of some scripts and an option of others; empty: unknown."""
    key = "device_target="
    return next((word[len(key) :] for word in reversed(words) if word.startswith(key)), "").lower()
