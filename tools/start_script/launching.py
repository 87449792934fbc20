"""--zoo: turns a start script into the launch of its job: ranks of ours, or our script for mpirun or msrun."""

from __future__ import annotations

import os
import tempfile

from hccl_tools.common import project
from hccl_tools.common.language import strerror, tr
from hccl_tools.common.quoting import quoted
from hccl_tools.common.refusal import Refusal, misused, refused
from hccl_tools.common.words import count, named, one_line
from tools.command import table
from tools.launch.programs import command_words, program
from tools.start_script import job, noting, rank_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import NoReturn

    from tools.command.command import Command
    from tools.rank.environment import Environment
    from tools.start_script.job import Ranks
    from tools.start_script.noting import Start

OURS = {"mpirun": "run_mpirun.sh", "msrun": "run_msrun.sh"}
# The script says these; an option of the user would contradict it.
_SAID_BY_SCRIPT = ("n", "devices", "exclude", "rank_table")
_OF_RANKS = ("rank_folder", "rank_files", "per_rank_words")


def prepare(command: Command, typed: Sequence[str], caller: Environment, say: Callable[[str], None]) -> Command:
    """The command that launches what the script starts: the script runs here.  Raises Refusal.

    Where the script starts mpirun or msrun, this process becomes the launch by our script of that engine.
    """
    check_options(command)
    options, words = script_of(command.program)
    logs = os.path.abspath(option(command, "log_dir") or "logs")
    line = tr(
        "launch.sh --zoo starts this command; its output is in the run's folder in {folder}", folder=one_line(logs)
    )
    starts = noting.of_script(words, caller, line, options)
    script, environ = words[0], {os.fsdecode(name): os.fsdecode(value) for name, value in caller.items()}
    if len(starts) == 1 and starts[0].tool in OURS:
        become(starts[0], [*typed[: len(typed) - len(command.program)], f"--log_dir={logs}"], say)
    ranks = job.of(script, starts, environ)
    say(told(script, ranks))
    bound = bool(option(command, "bind_core") or option(command, "bind_numa"))
    return of_ranks(command, ranks, rank_file.text(script, ranks, environ, bound=bound))


def check_options(command: Command) -> None:
    """Refuses what cannot go together with a start script."""
    if command.settings.dry_run:
        raise misused(
            "--zoo with --dry_run: what a script starts is known only when it has run; read the script, or leave out"
            " --dry_run"
        )
    for name in _SAID_BY_SCRIPT:
        if option(command, name):
            raise misused(
                "--zoo with {option}: the script itself sets that; change it in the script, or in its arguments",
                option=table.typed(name),
            )
    for name in _OF_RANKS:
        if option(command, name):
            raise misused(
                "--zoo with {option}: the script itself decides where its ranks run, and with which arguments; "
                "leave it out",
                option=table.typed(name),
            )


def script_of(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The options of the shell before the script, and the script with its words.  Raises Refusal."""
    if not words:
        raise misused("--zoo needs the start script, such as: --zoo run_distribute_train.sh")
    at = command_words.shell_script(words) if command_words.is_shell(words[0]) else 0
    if at is None:
        raise not_a_script(words[0])
    check_script(words[at])
    return list(words[1:at]), list(words[at:])


def option(command: Command, name: str) -> str:
    """The value of the user's option; empty without it."""
    words = command.words[: command.words.index("--")]
    return next((word.partition("=")[2] for word in reversed(words) if word.startswith(f"{name}=")), "")


def check_script(path: str) -> None:
    """Refuses what is not a script of a shell."""
    program.check_file(path)
    if path.endswith((".py", ".yaml", ".yml")):
        raise not_a_script(path)


def not_a_script(path: str) -> Refusal:
    """Refuses what no shell reads."""
    return misused("--zoo {path}: is not a shell script; leave out --zoo", path=one_line(path))


def told(script: str, ranks: Ranks) -> str:
    """What the script starts, for the user."""
    number = count(len(ranks.starts), "rank")
    if ranks.world > len(ranks.starts):
        number = tr("{ranks} of {world}", ranks=number, world=ranks.world)
    where = tr(" on {devices}", devices=named("device", ranks.devices)) if ranks.devices else ""
    start = ranks.starts[0]
    shown = " ".join(map(quoted, [start.tool, *start.words]))
    return one_line(
        tr(
            "{script} starts {ranks}{where}: {command}",
            script=one_line(script),
            ranks=number,
            where=where,
            command=shown,
        )
    )


def of_ranks(command: Command, ranks: Ranks, text: bytes) -> Command:
    """The command with words for the plan that say the same as the script; `text`: what every rank runs."""
    descriptor, path = tempfile.mkstemp(prefix="launch-zoo-", suffix=".sh")
    try:
        with open(descriptor, "wb") as file:
            file.write(text)
    except OSError as error:
        os.unlink(path)
        raise refused("{folder} cannot be written: {reason}", folder=one_line(path), reason=strerror(error)) from error
    words = [f"ranks_file={path}", f"n={len(ranks.starts)}"]
    if source := rank_file.source(ranks.starts[0]):
        words.append(f"ranks_source={source}")
    if ranks.world > len(ranks.starts):  # a server of several
        words += (
            "placement=server",
            f"rank_table_file={ranks.table}",
            f"rank_size={ranks.world}",
            f"rank_start={ranks.first}",
        )
    else:
        words += (f"devices={','.join(map(str, ranks.devices))}",) if ranks.devices else ()
        words += ("alone=1",) if ranks.alone else (f"rank_table={ranks.table}",) if ranks.table else ()
    split = command.words.index("--")
    return command.replace(words=[*command.words[:split], *words, *command.words[split:]])


def forget(command: Command) -> None:
    """Removes the draft of the ranks' file, which a launch that was refused has left."""
    path = option(command, "ranks_file")
    if os.path.exists(path):
        os.unlink(path)


def become(start: Start, options: list[str], say: Callable[[str], None]) -> NoReturn:
    """The launch by our script for mpirun or msrun, with the words and the environment that the script gives it."""
    script = project.path("scripts", OURS[start.tool])
    options = [word for word in options if word not in ("--zoo", "--")]
    words = ["bash", script, *options, *start.words]
    say(
        tr(
            "the script starts {tool}; this launch goes on as: {command}",
            tool=start.tool,
            command=" ".join(map(quoted, words)),
        )
    )
    os.chdir(start.folder)
    environ = {name: value for name, value in start.environ.items() if name not in ("_", "PWD", "OLDPWD")}
    os.execve(noting.bash(), words, {**environ, "PWD": start.folder})
