"""Notes before the start about arguments of a program that seem to be meant for single ranks or for the launcher.

In the loops of start scripts a shell expands them: --device_id=$DEVICE_ID.  Here no shell reads the program's
arguments.  The shell in which the command was typed has no rank's variables, so it leaves nothing after the equals
sign.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hccl_tools.common.language import tr
from hccl_tools.common.quoting import quote
from tools.launch.programs import command_words, rank_words, words_behind
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
    yield from words_behind.notes(words, request, ranks)
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
