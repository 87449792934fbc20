"""The commands of mslaunch, in the groups of its --help; hccl_tools/common/typed.py has the file of each one."""

from __future__ import annotations

import os

from hccl_tools.common import project, typed
from hccl_tools.common.language import marked
from hccl_tools.common.record import Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class Shown(Row):
    """A line of --help: what is typed after mslaunch, and what it is for, in English."""

    typed: str
    purpose: str


GROUPS: tuple[tuple[str, tuple[Shown, ...]], ...] = (
    (
        marked("Start a training"),
        (
            Shown("-n 8 train.py --lr 0.1", marked("8 ranks of a program, supervised")),
            Shown("ascend8p CONFIG", marked("a script of this project, by its name")),
        ),
    ),
    (
        marked("Watch it"),
        (
            Shown("watch [RUN]", marked("a job's ranks, live: slow, silent or gone")),
            Shown("runs", marked("earlier runs: when, how long, how they ended")),
            Shown("report|plot RUN", marked("a page about a run; its losses as curves")),
        ),
    ),
    (
        marked("Find out what is wrong"),
        (
            Shown("diagnose [RUN]", marked("which rank failed first, why, and what to do")),
            Shown("doctor|check -H HOSTS", marked("check this machine; compare hosts")),
            Shown("network TABLE", marked("test the network between the devices of a table")),
        ),
    ),
    (
        marked("Rank tables"),
        (
            Shown("table build|merge|convert", marked("build, merge or convert tables")),
            Shown("table check|show|diff", marked("validate a table; show it; compare two tables")),
        ),
    ),
    (
        marked("Checkpoints and sample trainer"),
        (
            Shown("ckpt FOLDER NEW", marked("checkpoints for another number of ranks")),
            Shown("eval|predict|export|strategy", marked("use a checkpoint, or plan how it is cut")),
            Shown("prepare digits|cifar10|text", marked("generate sample data")),
        ),
    ),
)


def find(words: Sequence[str]) -> tuple[str, str, int]:
    """(file in the project, words of the command, how many words it is) of the command at the front.

    The file is empty if the words are a launch.  A group without its command, such as ``table``, has the file ``?``.
    """
    if words and words[0] == "launch" and not os.path.exists("launch"):
        return "", "", 1  # what follows may have the name of a command
    for file, name in typed.WORDS.items():
        parts = name.split()
        if parts and list(words[: len(parts)]) == parts and _is_here(file):
            return file, name, len(parts)
    if words and words[0] in groups():
        return "?", words[0], 1
    script = f"scripts/{words[0]}.sh" if words and words[0].isidentifier() else ""
    if script and script not in typed.WORDS and _is_here(script):
        return script, words[0], 1
    return "", "", 0


def groups() -> dict[str, list[str]]:
    """{first word: the second words} of the commands that have two."""
    found: dict[str, list[str]] = {}
    for file, name in typed.WORDS.items():
        first, _, second = name.partition(" ")
        if second and _is_here(file):
            found.setdefault(first, []).append(second)
    return found


def names() -> list[str]:
    """Every word that may come first."""
    scripts = sorted(name[:-3] for name in os.listdir(project.path("scripts")) if name.endswith(".sh"))
    ours = [name.partition(" ")[0] for name in typed.WORDS.values() if name]
    hidden = {f"scripts/{name}.sh" for name in scripts} & set(typed.WORDS)
    return list(
        dict.fromkeys([*ours, "help", "launch", *(name for name in scripts if f"scripts/{name}.sh" not in hidden)])
    )


def _is_here(file: str) -> bool:
    return os.path.exists(project.path(file))
