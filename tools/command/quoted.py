"""Parses the command line of msrun_launcher.sh: one quoted command, then the arguments of mindformers' script.

That script has the same name. Its arguments become our options, and the plan splits the command.
"""

from __future__ import annotations

from hccl_tools.common.language import tr
from hccl_tools.common.quoting import quote
from tools.command.line import Line
from tools.command.options import take_option

# The names of our options for so many words, in their order; join is none of ours.
_ORDERS = (
    "",
    "worker_num",
    "worker_num master_port log_dir join cluster_time_out",
    "worker_num local_worker_num master_addr master_port node_rank log_dir join cluster_time_out",
)
_NAMES = {len(names): names for names in map(str.split, _ORDERS)}
_PATIENCE = "7200"  # seconds, as in mindformers' script


def arguments(line: Line) -> tuple[str, ...]:
    """Takes the command and the words after it; returns COMMAND if it is missing."""
    if not line.arguments:
        return ("COMMAND",)
    command, *words = line.arguments
    names = _NAMES.get(len(words))
    if names is None:
        raise line.misused(
            "{number} arguments after the command; write none, WORKER_NUM alone, 5 or 8", number=len(words)
        )
    line.program = [command]
    needless: tuple[str, ...] = ()
    if "node_rank" in names and words[0] == words[1]:
        line.note(
            tr("note: all {number} ranks are on this host: MASTER_ADDR and NODE_RANK are not used", number=words[0])
        )
        needless = ("master_addr", "node_rank")
    given = dict(zip(names, words))
    join = given.pop("join", "False")
    for name, word in given.items():
        if name not in needless:
            _take(line, name, word)
    _join(line, join)
    if "MS_TOPO_TIMEOUT" not in line.environ:
        line.environment.setdefault("MS_TOPO_TIMEOUT", _PATIENCE)
    line.arguments = []
    return ()


def _take(line: Line, name: str, word: str) -> None:
    """The option that a word stands for."""
    typed = line.value(name, word)
    if typed != word:
        raise line.misused(
            "--{option} {value} and the word {word} after the command contradict each other; give one of them",
            option=name,
            value=typed,
            word=word,
        )
    take_option(line, [f"--{name}={word}"])


def _join(line: Line, word: str) -> None:
    if word == "False":
        line.note(
            tr(
                "note: the launch waits for its ranks, even with JOIN False; to continue at once, end the command"
                " line with &"
            )
        )
    elif word != "True":
        raise line.misused("JOIN {word}: write True or False", word=quote(word))
