"""Programs that start ranks themselves, such as msrun: as the program of every rank they start a job in each.

People put the new launcher before the line that they have.  So a launch of several ranks refuses such a program, and
prints the line that does what was meant.
"""

from __future__ import annotations

import os
import re

from hccl_tools.common import project
from hccl_tools.common.language import tr
from hccl_tools.common.quoting import quote
from hccl_tools.common.record import Row
from hccl_tools.common.refusal import USAGE, Refusal
from hccl_tools.common.words import clauses, one_line, short_path

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
_SUBCOMMANDS = {"accelerate": "launch", "colossalai": "run"}  # their other words start no ranks
SHELLS = ("sh", "bash", "dash", "zsh", "ksh")
# Programs that start the one in their words: letters of options with a value, and how many words come before it.
_BEFORE = {
    **dict.fromkeys(("nohup", "setsid", "stdbuf", "time", "exec", "command"), ("ioefa", 0)),
    **{"nice": ("n", 0), "ionice": ("cn", 0), "numactl": ("NmCp", 0), "timeout": ("ks", 1), "taskset": ("", 1)},
}
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_PYTHON = re.compile(r"python[\d.]*|pypy[\d.]*")
_NO_RANKS = ("doctor.sh", "check_network.sh", "completion.sh")  # of our scripts
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
    """The launcher that this command is, also behind env, nohup and the like; None if it is none."""
    at = _start(words)
    if at >= len(words):
        return None
    name, rest = os.path.basename(words[at]), tuple(words[at + 1 :])
    before = tuple(words[:at])
    if name in NAMES:
        wanted = _SUBCOMMANDS.get(name)
        if wanted is None:
            return Launcher(name, NAMES[name], before, rest)
        return Launcher(f"{name} {wanted}", NAMES[name], before, rest[1:]) if rest[:1] == (wanted,) else None
    if name == "-m" or _PYTHON.fullmatch(name):
        return _of_python(name, before, rest if name != "-m" else tuple(words[at:]))
    if _is_ours(words[at]):
        return Launcher(name, OURS, before, tuple(words[at:]))
    return _of_shell(before, tuple(words[at:])) if name in SHELLS else None


def _start(words: Sequence[str]) -> int:
    """Where the program is, behind those that only start it."""
    at = 0
    while at < len(words):
        name = os.path.basename(words[at])
        if name == "env":
            at = _after_options(words, at + 1, "uC")
        elif name in _BEFORE:
            letters, more = _BEFORE[name]
            at = _after_options(words, at + 1, letters) + more
        elif at and _ASSIGNMENT.match(words[at]):
            at += 1
        else:
            break
    return at


def _after_options(words: Sequence[str], at: int, letters: str) -> int:
    while at < len(words) and words[at].startswith("-"):
        at += 2 if len(words[at]) == 2 and words[at][1] in letters else 1
    return at


def _of_python(python: str, before: tuple[str, ...], words: tuple[str, ...]) -> Launcher | None:
    """One that Python runs as a module, or as the file that is on PATH."""
    at = 0
    while at < len(words) and words[at].startswith("-") and not words[at].startswith("-m"):
        at += 2 if words[at] in ("-X", "-W") else 1
    if at >= len(words):
        return None
    word, rest = words[at], words[at + 1 :]
    if word.startswith("-m"):
        module, rest = (word[2:], rest) if len(word) > 2 else (rest[0] if rest else "", rest[1:])
        kind = MODULES.get(module)
        return Launcher(f"{'python' if python == '-m' else python} -m {module}", kind, before, rest) if kind else None
    kind = NAMES.get(os.path.basename(word))
    return Launcher(os.path.basename(word), kind, before, rest) if kind and kind != OTHER else None


def script(words: Sequence[str]) -> int | None:
    """The place of the shell script that these words run; None: they run none that is here."""
    if os.path.basename(words[0]) in SHELLS:
        at = next((at for at, word in enumerate(words) if at and not word.startswith("-")), None)
        return at if at and os.path.isfile(words[at]) and "-c" not in words[1:at] else None
    return 0 if words[0].endswith(".sh") and os.path.isfile(words[0]) else None


def _is_ours(path: str) -> bool:
    folder, name = os.path.split(os.path.realpath(path))
    return folder == project.path("scripts") and name.endswith(".sh") and name not in _NO_RANKS


def _of_shell(before: tuple[str, ...], words: tuple[str, ...]) -> Launcher | None:
    """One of our scripts, or a launcher in the text after -c."""
    for at, word in enumerate(words[1:], 1):
        if not word.startswith("-"):
            if _is_ours(word):
                return Launcher(os.path.basename(word), OURS, before, words)
            kind = NAMES.get(os.path.basename(word))  # mpirun may be a script
            return Launcher(os.path.basename(word), kind, before, words[at + 1 :]) if kind and kind != OTHER else None
        if "c" in word and not word.startswith("--") and at + 1 < len(words):
            return _in_text(words[at + 1])
    return None


def _in_text(text: str) -> Launcher | None:
    """The first launcher among the commands of a shell's text."""
    import shlex  # few launches need it

    lexer = shlex.shlex(text.replace("\n", ";"), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    command: list[str] = []
    try:
        words = [*lexer, ";"]
    except ValueError:  # a quote is not closed: the shell says so
        return None
    for word in words:
        if word.strip("();<>|&") and word not in ("then", "do", "else", "{"):
            command.append(word)
            continue
        start = next((at for at, each in enumerate(command) if not _ASSIGNMENT.match(each)), len(command))
        found = find(command[start:])
        if found:
            return found._replace(whole=False)
        command = []
    return None


# ---- what the launch says of it --------------------------------------------------------------------------------------


def check(request: Request, ranks: int | None) -> None:
    """Raises Refusal if each of several ranks would be a launcher; ranks: None where nobody has said how many."""
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
        script = short_path(project.path("scripts", _SCRIPTS.get(found.kind, "launch.sh")))
        remedy = tr("type bash {script} in its place, with its words, and not before it", script=quote(script))
    raise Refusal(USAGE, clauses(text, remedy))


def instead(found: Launcher, request: Request, ranks: int | None) -> str:
    """The line that does what was meant; empty: it cannot be told."""
    if not found.whole:
        return ""
    if found.kind == OURS:
        words = [*found.before, *([] if found.words[0] in SHELLS else ["bash"]), *found.words]
        return " ".join(map(quote, words))
    bash = ["bash", short_path(project.path("scripts", _SCRIPTS[found.kind]))]
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
    return word.endswith((".py", ".sh")) or word == "-m" or bool(_PYTHON.fullmatch(os.path.basename(word)))


def _number(options: Sequence[str]) -> str:
    """The number of ranks among the options of a launcher."""
    for option, following in zip(options, [*options[1:], ""]):
        name, _, value = option.partition("=")
        value = value or following
        if name in _NUMBERS and value.isascii() and value.isdigit():
            return value
    return ""


def remarks(request: Request) -> list[str]:
    """What to know where the only rank is a launcher."""
    found = find(request.trainer_arguments)
    if found is None:
        return []
    return [
        tr(
            "note: {launcher} starts ranks itself: this launch sees one rank, and not those",
            launcher=one_line(found.name),
        )
    ]
