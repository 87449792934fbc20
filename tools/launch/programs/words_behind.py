"""Notes before the start about a launcher option that comes after the program, and so goes to the program."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from hccl_tools.common.language import tr
from hccl_tools.common.quoting import quote
from hccl_tools.common.typed import starter
from tools.launch.programs import python_words, sources
from tools.launch.request import Request

# Options of ours that no program has by chance.
_OURS = (
    *("dry_run", "console", "keep_going", "hang_timeout", "max_restarts", "restart_args", "watch_plogs", "keep_plogs"),
    *("wait_for_devices", "hccn_conf", "no_check", "straggler", "per_rank_words", "bind_core", "bind_numa"),
    *("worker_num", "local_worker_num", "nproc_per_node", "npernode", "ntasks_per_node", "num_processes"),
    "stop_before",
)
_RANKS = ("n", "np", "nproc", "worker_num", "nproc_per_node", "num_processes")  # of these the value states how many
_COMMON = ("n", "np", "nproc", "devices", "device_target", "exclude")  # programs may have them, too
# A parser that makes options of names in the code, or of the keys of a file.
_MAKES_OPTIONS = re.compile(
    rb"""\b(?:fire|hydra|tyro|jsonargparse|simple_parsing|HfArgumentParser|absl|getopt)\b|["']--?["']"""
)
_MOST = 1 << 20  # bytes of a file that are looked at
_MOST_FILES = 64  # next to the program
_LONGEST = 300  # characters of a command in a message


def notes(words: Sequence[str], request: Request, ranks: int) -> Iterator[tuple[str, str]]:
    """The note about the first of them behind a Python file that does not know it."""
    at = _file(words)
    if not request.program or at is None:
        return
    for place in range(at + 1, len(words)):
        option, equals, value = words[place].partition("=")
        name = _name(option)
        taken = 1
        if not equals and place + 1 < len(words) and not words[place + 1].startswith("-"):
            value, taken = words[place + 1], 2
        if _is_meant(name, value, request, ranks) and not _knows(words[at], name):
            yield "behind", _note(words, request, words[at], list(words[place : place + taken]))
            return


def _name(word: str) -> str:
    """The name of an option, as our table has it; empty for another word."""
    bare = word.lstrip("-")
    dashes = len(word) - len(bare)
    is_option = dashes == 2 or (dashes == 1 and bare in ("n", "np"))
    return bare.replace("-", "_").lower() if is_option else ""


def _is_meant(name: str, value: str, request: Request, ranks: int) -> bool:
    """Whether the option seems to be for us: the launch would be another one with it."""
    if name in _RANKS and name in _COMMON:
        return value.isdecimal() and value != str(ranks)
    if name == "device_target":
        return value.lower() in ("ascend", "gpu", "cpu") and value.lower() != request.device_target.lower()
    return name in _OURS or name in ("devices", "exclude")


def _note(words: Sequence[str], request: Request, program: str, option: list[str]) -> str:
    """The note about the words of the option; with the command that has them in front, if it is not too long."""
    text = tr(
        "note: {option} comes after {program}, so the program gets it",
        option=" ".join(map(quote, option)),
        program=quote(program),
    )
    command = _in_front(words, request, option)
    if not command:
        return tr("{text}; options of {script} come before the program", text=text, script=request.script)
    return tr("{text}; for the launcher write it before: {command}", text=text, command=command)


def _in_front(words: Sequence[str], request: Request, option: list[str]) -> str:
    """The command line with the option before the program; empty if it is too long, or not known."""
    import shlex  # few command lines have such an option

    typed = shlex.split(request.typed) if request.typed.isprintable() else []
    before, behind = typed[: -len(words)], typed[-len(words) :]
    if behind != list(words) or not before:
        return ""
    end = before.index("--") if "--" in before else len(before)
    place = next(at for at in range(len(words)) if list(words[at : at + len(option)]) == option)
    rest = [*words[:place], *words[place + len(option) :]]
    command = starter(before[0]) + " ".join(map(quote, (*before[:end], *option, *before[end:], *rest)))
    return command if len(command) <= _LONGEST else ""


def _file(words: Sequence[str]) -> int | None:
    """The place of the Python file that is run; None: another program is."""
    if words and words[0].endswith(".py"):
        return 0
    if not words or not python_words.is_python(words[0]):
        return None
    kind, named, before = python_words.parts(words[1:])
    return before if kind == "file" and named.endswith(".py") else None


def _knows(path: str, name: str) -> bool:
    """Whether the option is in the program, in what it imports, or in a file next to it that may read the words."""
    texts = [text.replace(b"-", b"_") if name not in _COMMON else text for text in _texts(path)]
    if name not in _COMMON:
        return not texts or any(name.encode() in text for text in texts)
    spelt = name.replace("_", "[-_]").encode()
    more = rb"\w*" if len(name) == 1 else b""
    defined = re.compile(rb"""["']-{0,2}%s%s["']|^[ \t]*%s[ \t]*:""" % (spelt, more, spelt), re.MULTILINE)
    return not texts or any(defined.search(text) or _MAKES_OPTIONS.search(text) for text in texts)


def _texts(path: str) -> list[bytes]:
    """Those files; none: the program cannot be read."""
    if not os.access(path, os.R_OK):
        return []
    folder = os.path.dirname(path) or "."
    found = dict(sources.contents(path))
    try:
        beside = [os.path.join(folder, each) for each in sorted(os.listdir(folder))]
        for each in [other for other in beside if other.endswith((".py", ".yaml", ".yml"))][:_MOST_FILES]:
            if each not in found and os.path.isfile(each):
                with open(each, "rb") as file:
                    found[each] = file.read(_MOST)
    except OSError:
        return []
    return list(found.values())
