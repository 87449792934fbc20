"""Notes before the start about arguments of a program that seem to be meant for single ranks or for the launcher.

In the loops of start scripts a shell expands them: --device_id=$DEVICE_ID.  Here no shell reads the program's
arguments.  The shell in which the command was typed has no rank's variables, so it leaves nothing after the equals
sign.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from hccl_tools.common.language import tr
from hccl_tools.common.quoting import quote
from hccl_tools.common.typed import starter
from tools.launch.programs import command_words, rank_words, sources
from tools.launch.request import Request

# Variables that scripts give to each rank, and names of options for them: what --per_rank_words has for it.
_MEANINGS = {
    "device": "device_id device gpu_id npu_id ascend_device_id",
    "rank": "rank_id rank global_rank ompi_comm_world_rank slurm_procid ms_node_id",
    "local_rank": "local_rank ompi_comm_world_local_rank slurm_localid",
    "world_size": "rank_size world_size device_num group_size ompi_comm_world_size slurm_ntasks",
}
_BY_NAME = {name: meaning for meaning, names in _MEANINGS.items() for name in names.split()}
_SURE = ("device_id", "rank_id", "local_rank")  # options that always have a value, which differs from rank to rank
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
# Options of ours that no program has by chance.
_OUR_OPTIONS = (
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


def remarks(request: Request, ranks: int) -> list[str]:
    """The notes, at most one for each kind of word."""
    words = list(request.trainer_arguments)
    if request.program and command_words.shell_text(words) is not None:
        return []  # that shell runs in each rank
    found = {kind: text for kind, text in reversed(list(_notes(words, request, ranks)))}
    return list(found.values())[::-1]


def _notes(words: Sequence[str], request: Request, ranks: int) -> Iterator[tuple[str, str]]:
    """(kind, note) in the order of the words."""
    if request.per_rank_words and not any(map(rank_words.has_any, words)):
        names = " ".join(f"{{{name}}}" for name in rank_words.NAMES)
        yield "none", tr("note: --per_rank_words: the program's arguments contain none of {names}", names=names)
    yield from _notes_behind(words, request, ranks)
    for index, word in enumerate(words):
        following = words[index + 1] if index + 1 < len(words) else None
        yield from _of_word(word, words[index - 1] if index else "", following, request, ranks)


def _of_word(word: str, before: str, following: str | None, request: Request, ranks: int) -> Iterator[tuple[str, str]]:
    option, equals, value = word.partition("=")
    name = _name(option)
    meaning = f"{{{_BY_NAME.get(name, '')}}}"
    expanded = _expanded(word, _BY_NAME.get(name or _name(before), "device"))
    missing = not value if equals else name in _SURE and (following is None or following.startswith("-"))
    if expanded != word:
        yield (
            "letters",
            tr(
                "note: no shell expands the program's arguments, so every rank gets {word} literally; for a value "
                "per rank, write --per_rank_words before the program and {expanded} after it, or start it with "
                "bash -c 'PROGRAM {word}'",
                word=word,
                expanded=expanded,
            ),
        )
    elif name in _BY_NAME and missing:
        yield (
            "empty",
            tr(
                "note: {option} has no value: your shell does not have the variables of a rank; write "
                "--per_rank_words before the program and {option}={meaning} after it",
                option=option,
                meaning=meaning,
            ),
        )
    elif name in _SURE and ranks > 1 and (value if equals else following or "").isdigit():
        yield (
            "same",
            tr(
                "note: all {ranks} ranks get {word}; for a value per rank, write --per_rank_words before the "
                "program and {option}={meaning} after it",
                ranks=ranks,
                word=quote(word if equals else f"{word}={following}"),
                option=option,
                meaning=meaning,
            ),
        )
    elif not request.per_rank_words and rank_words.has_any(word):
        text = tr(
            "note: every rank gets {word} unchanged; --per_rank_words replaces what is in braces", word=quote(word)
        )
        yield "braces", text


def _name(option: str) -> str:
    """The name of an option, as the table has it; empty for another word."""
    return option.lstrip("-").replace("-", "_").lower() if option.startswith("-") else ""


def _expanded(word: str, counted: str) -> str:
    """The word with placeholders for the variables that differ from rank to rank; counted: the meaning of $i."""

    def placeholder(variable: re.Match[str]) -> str:
        name = (variable.group(1) or variable.group(2)).lower()
        meaning = counted if name == "i" else _BY_NAME.get(name)
        return f"{{{meaning}}}" if meaning else variable.group()

    return _VARIABLE.sub(placeholder, word)


def _notes_behind(words: Sequence[str], request: Request, ranks: int) -> Iterator[tuple[str, str]]:
    """The note about the first of our options behind a Python file that does not know it, and so gets it."""
    at = _file(words)
    if not request.program or at is None:
        return
    for place in range(at + 1, len(words)):
        option, equals, value = words[place].partition("=")
        name = _option(option)
        taken = 1
        if not equals and place + 1 < len(words) and not words[place + 1].startswith("-"):
            value, taken = words[place + 1], 2
        if _is_meant(name, value, request, ranks) and not _knows(words[at], name):
            yield "behind", _note_behind(words, request, words[at], list(words[place : place + taken]))
            return


def _option(word: str) -> str:
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
    return name in _OUR_OPTIONS or name in ("devices", "exclude")


def _note_behind(words: Sequence[str], request: Request, program: str, option: list[str]) -> str:
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
    if not words or not command_words.is_python(words[0]):
        return None
    kind, named, before = command_words.python_parts(words[1:])
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
