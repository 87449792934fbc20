"""Finds where the program begins on a command line, and which of the script's own arguments it replaces.

A launch has options, then the script's arguments. After them come nothing, -- and arguments for the trainer, or a
program. A program takes all arguments after it unchanged. The kind of an argument follows from its text and from the
file of that name:

  *.yaml *.yml            a config
  *.py *.sh, -m MODULE    a program
  a file with the run bit, or a name on PATH: a program in the place of CONFIG, after the last argument, and, if it is
                          neither a folder nor a number, in the place of the last argument (DATA_PATH may be missing)
  another file in the place of CONFIG: refused, with both spellings
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from hccl_tools.common.language import tr
from hccl_tools.common.quoting import quote
from hccl_tools.common.refusal import Refusal
from hccl_tools.common.words import with_home
from hccl_tools.machine import programs
from tools.command.line import Line, is_number

_PROGRAMS, _CONFIGS = (".py", ".sh"), (".yaml", ".yml")
# Options whose value may well end so.
TAKE_FILES = ("config", "train_script", "pytest", "rank_table", "hostfile", "hccn_conf", "restart_args")


def takes(line: Line, words: Sequence[str]) -> bool:
    """Whether the first word begins a program; then all of them are kept."""
    config = line.names == ("CONFIG",)
    if config and line.arguments:
        return False  # the config is there
    word = with_home(words[0])
    if word != "-m" and not word.endswith(_PROGRAMS):
        if word.startswith("-") or word.endswith(_CONFIGS) or not _may_begin_at(line, word):
            return False
        if not _runs(word) and not _is_launcher(word):
            if config and os.path.isfile(word):
                raise _unclear(line, word)
            return False
    if option := _named(line):
        raise line.misused(
            "{program} is a program, and --{option} names another one; give one of them",
            program=word.rpartition("/")[2],
            option=option,
        )
    line.program = [word, *words[1:]]
    return True


def takes_after_dashes(line: Line, words: Sequence[str]) -> bool:
    """The same for the words after --, which are a program where no trainer is named."""
    free = line.names == ("CONFIG",) and not line.arguments and not _named(line)
    return bool(words) and free and takes(line, words)


def arguments(line: Line) -> tuple[str, ...]:
    """The names of the arguments that must be given.

    They are the script's without what the user has left out and may: CONFIG if an option or a program replaces it,
    DATA_PATH before a program or with --pytest, HOSTS for this host, and HOSTS or HOSTFILE if an option names hosts.
    """
    names, given = line.names, len(line.arguments)
    if line.given("pytest") and line.given("train_script"):
        raise line.misused("--train_script and --pytest name two programs; give one of them")
    if _has_hosts(line):
        if given:
            what = f"{' '.join(names)} {line.arguments[0]}"
            raise line.misused("{argument}: an option names hosts, too; name them once", argument=what)
        return ()
    if names == ("HOSTS",) and not given:
        line.note(tr("note: no HOSTS are named: all ranks run on this host"))
        return ()
    if names == ("CONFIG",):
        return _config_argument(line)
    needless = bool(line.program) or line.given("pytest")
    if needless and given == len(names) - 1 and not _has_data_path(line) and names[0] == "DATA_PATH":
        return names[1:]
    return names


def check_first(line: Line, more: bool = False) -> None:
    """Refuses a word in place of a program or a config that is wrong itself; `more`: others follow it.

    Without that, a message would name the word behind it, which may be right.
    """
    rest = [*line.arguments, *line.program]
    for at, word in enumerate(line.arguments):
        name, equals, _ = word.partition("=")
        if equals and name.isascii() and name.isidentifier() and not os.path.exists(word):
            raise _variable(line, word, rest[at + 1 :])
    first = line.arguments[0] if line.arguments else ""
    if line.names != ("CONFIG",) or not first or first.endswith(_CONFIGS) or os.path.exists(first):
        return
    if more or len(rest) > 1:
        from tools.command import meant  # for a mistake

        text = meant.number(line) or tr(
            "{word}: there is no program of this name on PATH, and no such file{instead}",
            word=quote(first),
            instead=meant.program(first),
        )
        raise line.mistake(text)


def _variable(line: Line, word: str, behind: Sequence[str]) -> Refusal:
    """Refuses a variable in the place of a program: behind bash, a shell takes it for a word."""
    before = f"{quote(word)} {line.declaration.command_line()}"
    text = tr("{word} is a variable: write it before the command, as in {command}", word=quote(word), command=before)
    if behind:
        command = " ".join(map(quote, ("env", word, *behind[:5])))
        text = tr("{text}, or start the program by env: {command}", text=text, command=command)
    return line.mistake(text)


def as_value(line: Line) -> str:
    """If an option has taken what looks like a program or a config: the end of a message about that."""
    found = ""
    for name, value in line.options:
        if value.endswith((*_PROGRAMS, *_CONFIGS)) and name not in TAKE_FILES:
            found = tr("; --{option} took {value} as its value", option=name, value=quote(value))
    return found


def instead_of(line: Line, option: str) -> str:
    """What to do without the option, which the script does not have, as the end of a message."""
    hint = ""
    if option in ("rank_table", "hccn_conf"):
        if "RANK_TABLE_FILE" in line.names:
            hint = tr(": the rank table is the argument RANK_TABLE_FILE, or with --hostfile the option --rank_table")
        else:
            hint = tr(
                ": {script} needs no rank table, because its ranks find each other without one; for a launch with "
                "a rank table: scripts/ascend8p.sh and similar scripts, on several hosts scripts/run_cluster.sh",
                script=line.declaration.name,
            )
    return hint + as_value(line)


def is_run(line: Line, word: str) -> bool:
    """Whether the word after --resume is the folder of a run, or of its checkpoints.

    Refuses a word that is not an argument either: a mistyped name should not start a training from the beginning, or
    from another run.
    """
    if os.path.exists(f"{word}/launch.json") or os.path.isdir(f"{word}/rank_0"):
        return True
    if word.startswith("-") or word.endswith((*_PROGRAMS, *_CONFIGS)) or os.path.isfile(word):
        return False
    is_path, is_folder = "/" in word, os.path.isdir(word)
    if line.names != ("CONFIG",):
        if not is_path or is_folder:  # DATA_PATH, HOSTS or a number
            return False
    elif not is_path and not is_folder and not line.arguments and word and programs.on_path(word):
        return False
    raise line.misused(
        "--resume {run}: this is not the folder of a run (it has no launch.json); for another run: "
        "--resume=FOLDER; for the newest run, with {run} as an argument: --resume=newest {run}",
        run=quote(word),
    )


def _named(line: Line) -> str:
    """The option that states what to start; empty if none does."""
    return next((name for name in ("config", "train_script", "pytest") if line.given(name)), "")


def _config_argument(line: Line) -> tuple[str, ...]:
    if line.given("pytest") and (line.arguments or line.given("config")):
        raise line.misused("--pytest runs tests, which do not take a config; give only one of the two")
    if not line.arguments and (line.program or _named(line)):
        return ()
    if line.given("config"):
        raise line.misused("--config and the argument CONFIG name two configs; give one of them")
    return line.names


def _may_begin_at(line: Line, word: str) -> bool:
    """Whether a program may begin in this place: in that of CONFIG, or where no argument is expected."""
    names = () if _has_hosts(line) else line.names
    at = len(line.arguments)
    if at >= len(names) or names[at] == "CONFIG":
        return True
    return at == len(names) - 1 and _replaces_argument(line, word)


def _replaces_argument(line: Line, word: str) -> bool:
    """Whether the word, where the last argument is expected, can only be a program."""
    if line.names[0] == "DATA_PATH":
        return not os.path.isdir(word) and not is_number(word)
    return line.names == ("HOSTS",) and ":" not in word


def _runs(word: str) -> bool:
    """Whether it is a file with the run bit, or a name on PATH."""
    if os.path.isfile(word):
        return os.access(word, os.X_OK)
    return word != "" and "/" not in word and programs.on_path(word)


def _is_launcher(word: str) -> bool:
    """Whether it is the name of a launcher, which need not be here: the launch states what to type instead."""
    from tools.launch.programs import launchers  # few command lines need it

    return os.path.basename(word) in launchers.NAMES


def _has_data_path(line: Line) -> bool:
    """Whether the first argument is a folder and not a number: then another argument is missing."""
    first = line.arguments[0] if line.arguments else ""
    return os.path.isdir(first) and not (first.isascii() and first.isdigit())


def _has_hosts(line: Line) -> bool:
    """Whether the script takes hosts as its argument, and an option of mpirun names them."""
    return line.names[:1] in (("HOSTS",), ("HOSTFILE",)) and (line.given("hosts") or line.given("hostfile"))


def _unclear(line: Line, word: str) -> Refusal:
    """Refuses a file that may be either."""
    return line.misused(
        "{file}: is this a config or a program? For a config: --config {file}; for a program: python {file}, or "
        "make the file executable",
        file=quote(word),
    )
