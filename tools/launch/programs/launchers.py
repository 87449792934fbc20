"""Detects programs that start ranks themselves, such as msrun: as the program of every rank they start a job in each.

People put the new launcher before the line that they have.  So a launch of several ranks refuses such a program, and
prints the line that does what was meant.
"""

from __future__ import annotations

import os

from hccl_tools.common import project, typed
from hccl_tools.common.language import tr
from hccl_tools.common.quoting import quote
from hccl_tools.common.record import Row
from hccl_tools.common.refusal import USAGE, Refusal
from hccl_tools.common.words import clauses, one_line
from tools.launch.programs import command_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.launch.request import Request

MSRUN, MPIRUN, SRUN, TORCHRUN, OTHER, OURS = "msrun", "mpirun", "srun", "torchrun", "other", "ours"
NAMES = {
    "msrun": MSRUN,
    **dict.fromkeys(("mpirun", "mpiexec", "orterun", "prun", "prterun", "mpirun.openmpi", "mpiexec.openmpi"), MPIRUN),
    "srun": SRUN,
    "torchrun": TORCHRUN,
    **dict.fromkeys(("deepspeed", "horovodrun", "accelerate", "colossalai", "dlrover-run"), OTHER),
}
BY_ZOO = {name: kind for name, kind in NAMES.items() if kind in (MPIRUN, MSRUN)}  # --zoo notes these in a script
MODULES = {
    "mindspore.parallel.cluster.run": MSRUN,
    "torch.distributed.run": TORCHRUN,
    "torch.distributed.launch": TORCHRUN,
    "torch_npu.distributed.run": TORCHRUN,
    "accelerate.commands.launch": OTHER,
    "deepspeed.launcher.runner": OTHER,
    "horovod.runner.launch": OTHER,
}
_SCRIPTS = {
    MSRUN: "run_msrun.sh",
    MPIRUN: "run_mpirun.sh",
    SRUN: "run_slurm.sh",
    TORCHRUN: "launch.sh",
    OTHER: "launch.sh",
}
SUBCOMMANDS = {"accelerate": "launch", "colossalai": "run"}  # their other words start no ranks
_NO_RANKS = ("doctor.sh", "preflight.sh", "check_network.sh", "completion.sh")  # of our scripts
_NUMBERS = ("--num_processes", "--num-processes", "--num_gpus", "--nproc_per_node", "--nproc-per-node", "-np")
_MOST = 2000  # characters of a line that is worth pasting


class Launcher(Row):
    """A launcher among the words of a command."""

    name: str  # for people
    kind: str
    before: tuple[str, ...]  # the words before it, such as env NAME=VALUE
    words: tuple[str, ...]  # the words after it; of our own scripts all of them
    whole: bool = True  # False: it is somewhere in the text of a shell


def find(words: Sequence[str]) -> Launcher | None:
    """The launcher that this command is, also behind env, nohup and the like; None: it is none, or is only asked."""
    found = _find(words)
    return None if found and found.words and found.words[0] in command_words.ASKS else found


def _find(words: Sequence[str]) -> Launcher | None:
    at = command_words.program(words)
    if at >= len(words):
        return None
    name, rest = os.path.basename(words[at]), tuple(words[at + 1 :])
    before = tuple(words[:at])
    if name in NAMES:
        wanted = SUBCOMMANDS.get(name)
        if wanted is None:
            return Launcher(name, NAMES[name], before, rest)
        return Launcher(f"{name} {wanted}", NAMES[name], before, rest[1:]) if rest[:1] == (wanted,) else None
    if name == "-m" or command_words.is_python(name):
        return _of_python(name, before, rest if name != "-m" else tuple(words[at:]))
    if _is_ours(words[at]):
        return Launcher(name, OURS, before, tuple(words[at:]))
    return _of_shell(before, tuple(words[at:])) if command_words.is_shell(name) else None


def _of_python(python: str, before: tuple[str, ...], words: tuple[str, ...]) -> Launcher | None:
    """One that Python runs as a module, or as the file that is on PATH."""
    kind, named, at = command_words.python_parts(words)
    if kind == "module" and named in MODULES:
        name = f"{'python' if python == '-m' else python} -m {named}"
        return Launcher(name, MODULES[named], before, words[at:])
    return _script(before, named, words[at:]) if kind == "file" else None


def _script(before: tuple[str, ...], path: str, words: tuple[str, ...]) -> Launcher | None:
    """One that is a script, such as a mpirun that a package has installed."""
    name = os.path.basename(path)
    kind = NAMES.get(name)
    return Launcher(name, kind, before, words) if kind and kind != OTHER else None


def script(words: Sequence[str]) -> int | None:
    """The place of the shell script that these words run; None: they run none that is here."""
    if command_words.is_shell(words[0]):
        at = command_words.shell_script(words)
        return at if at is not None and os.path.isfile(words[at]) else None
    return 0 if words[0].endswith(".sh") and os.path.isfile(words[0]) else None


def _is_ours(path: str) -> bool:
    folder, name = os.path.split(os.path.realpath(path))
    return folder == project.path("scripts") and name.endswith(".sh") and name not in _NO_RANKS


def _of_shell(before: tuple[str, ...], words: tuple[str, ...]) -> Launcher | None:
    """One of our scripts, or a launcher in the text after -c."""
    text = command_words.shell_text(words)
    if text is not None:
        return _in_text(text)
    at = command_words.shell_script(words)
    if at is None:
        return None
    if _is_ours(words[at]):
        return Launcher(os.path.basename(words[at]), OURS, before, words)
    return _script(before, words[at], words[at + 1 :])


def _in_text(text: str) -> Launcher | None:
    """The first launcher among the commands of a shell's text."""
    import shlex  # few launches need it

    lexer = shlex.shlex(text.replace("\n", ";"), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    command: list[str] = []
    try:
        words = [*lexer, ";"]
    except ValueError:  # a quote is not closed: the shell states this
        return None
    for word in words:
        if word.strip("();<>|&") and word not in ("then", "do", "else", "{"):
            command.append(word)
            continue
        start = next((at for at, each in enumerate(command) if not command_words.is_assignment(each)), len(command))
        found = find(command[start:])
        if found:
            return found._replace(whole=False)
        command = []
    return None


# ---- what the launch says of it --------------------------------------------------------------------------------------


def check(request: Request, ranks: int | None) -> None:
    """Raises Refusal if each of several ranks would be a launcher; ranks: None if their number is unknown."""
    found = find(request.trainer_arguments) if request.program and ranks != 1 else None
    if found is None:
        return
    line = instead(found, request, ranks)
    name = one_line(found.name)
    if ranks is None:
        text = tr(
            "{launcher} starts ranks itself: with it as the program, each rank would start a whole job", launcher=name
        )
    else:
        text = tr(
            "{launcher} starts ranks itself: with it as the program, each of the {number} ranks would start a "
            "whole job",
            launcher=name,
            number=ranks,
        )
    if line and len(line) <= _MOST:
        remedy = tr("type instead: {command}", command=line)
    else:
        remedy = tr("type {command} instead of it, with its arguments, and not before it", command=ours(found.kind))
        if not found.whole:  # it was found in a text, which only a shell can read for sure
            remedy = clauses(remedy, tr("to run it in every rank nevertheless: --no_check"))
    raise Refusal(USAGE, clauses(text, remedy))


def ours(kind: str) -> str:
    """Our command in place of launchers of this kind."""
    return typed.command(f"scripts/{_SCRIPTS.get(kind, 'launch.sh')}")


def instead(found: Launcher, request: Request, ranks: int | None) -> str:
    """The line that does what was meant; empty: it cannot be determined."""
    if not found.whole:
        return ""
    if found.kind == OURS:
        words = [*found.before, *([] if command_words.is_shell(found.words[0]) else ["bash"]), *found.words]
        return " ".join(map(quote, words))
    bash = typed.words(f"scripts/{_SCRIPTS[found.kind]}")
    if request.device_target != "Ascend" and not request.target_found:
        bash += ["--device_target", request.device_target]
    words = list(found.words)
    if found.kind in (SRUN, OTHER):
        at = next((at for at, word in enumerate(words) if _begins_program(word)), None)
        if at is None:
            return ""
        options, program = words[:at], words[at:]
        if found.kind == SRUN:
            bash, words = ([] if os.environ.get("SLURM_JOB_ID") else ["salloc", *options]) + bash, program
        else:
            words = ["-n", _number(options) or str(ranks or 1), *program]
    return " ".join(map(quote, [*found.before, *bash, *words]))


def _begins_program(word: str) -> bool:
    return word.endswith((".py", ".sh")) or word == "-m" or command_words.is_python(word)


def _number(options: Sequence[str]) -> str:
    """The number of ranks among the options of a launcher."""
    for option, following in zip(options, [*options[1:], ""]):
        name, _, value = option.partition("=")
        value = value or following
        if name in _NUMBERS and value.isascii() and value.isdigit():
            return value
    return ""


def remarks(request: Request) -> list[str]:
    """Notes if the only rank is a launcher."""
    found = find(request.trainer_arguments)
    if found is None:
        return []
    return [
        tr(
            "note: {launcher} starts ranks itself: this launch sees one rank, but none of those",
            launcher=one_line(found.name),
        )
    ]
