"""MSLAUNCH_OPTIONS: options from the user's environment for every launch; options on the command line override them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from hccl_tools.common.language import tr
from hccl_tools.common.quoting import harmless, quote
from hccl_tools.common.refusal import Refusal
from tools.command import options, table
from tools.command.line import Line

VARIABLE = "MSLAUNCH_OPTIONS"
# What a launch runs, and how the words are read, is typed.
_TYPED = ("config", "train_script", "pytest", "zoo", "help", "no_defaults")
# Of these a typed one takes the others' places, too: both would contradict each other.
_EITHER = (
    ("keep_going", "max_restarts", "restart_args", "restart_limit", "restart_wait"),
    ("bind_core", "bind_numa"),
    ("n", "devices"),
    ("hosts", "hostfile"),
)
_TOGETHER = ("max_restarts", "restart_args", "restart_limit", "restart_wait")  # of one group, and no contradiction


def add(line: Line) -> None:
    """Puts the options of the variable before the typed ones.  Raises Refusal, which names the variable."""
    text = line.environ.get(VARIABLE, "")
    if not text.strip() or line.given("no_defaults"):
        return
    from tools.launch import request  # few users have the variable

    try:
        found = list(_read(line, request.split_words(text, VARIABLE)))
    except Refusal as refusal:
        lines = [said if said.startswith(VARIABLE) else f"{VARIABLE}: {said}" for said in refusal.lines]
        raise Refusal(refusal.status, *lines) from refusal
    typed = {name for name, _ in line.options} | {line.per_device[1]} - {""}
    kept = [(name, value) for name, value in found if name in line.table and not _is_replaced(line, name, typed)]
    line.defaults = [word for name, value in kept for word in _words(line, name, value)]
    line.options[:0] = kept


def _read(line: Line, words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(name, value) of the options, of whichever script.  Raises Refusal."""
    every, at = table.of([key.partition(" ")[0] for key in table.NAMED], ()), 0
    while at < len(words):
        word = words[at]
        if not word.startswith("-") or word == "--":
            raise line.misused("{word} is not an option; type programs, configs and their arguments", word=quote(word))
        long = word if word.startswith("--") else f"-{word}"
        name = table.bare(long)
        if name in _TYPED:
            raise line.misused("{option} is for a single launch; type it in the command", option=table.typed(name))
        if name not in every or (len(name) == 1) is word.startswith("--"):
            raise line.misused("unknown option {option}{instead}", option=quote(word), instead=_near(name, every))
        value, taken = options.value_of(line, every[name].takes, [long, *words[at + 1 :]])
        yield name, value
        at += taken


def _near(name: str, names: Iterable[str]) -> str:
    from tools.command import meant  # for a mistake

    return meant.near(name, names)


def _is_replaced(line: Line, name: str, typed: set[str]) -> bool:
    """Whether the user has typed this option, or one that contradicts it."""
    if name in ("hosts", "hostfile") and line.names[:1] in (("HOSTS",), ("HOSTFILE",)) and line.arguments:
        return True
    for group in _EITHER:
        others = set(group) - set(_TOGETHER if name in _TOGETHER else ()) | {name}
        if name in group and others & typed:
            return True
    return name in typed


def _words(line: Line, name: str, value: str) -> list[str]:
    """The option as a person would type it."""
    takes = line.table[name].takes
    if takes == "[MODULES]":
        return [f"{table.typed(name)}={value}"]
    if takes == "-" or takes.startswith("[True"):
        typed = table.typed(name)
        return [{"1": typed, "": f"{typed}=False"}.get(value, f"{typed}={value}")]
    return [table.typed(name), value]


def shown(words: Iterable[str]) -> str:
    """The options as a shell reads them; empty without any."""
    return " ".join(map(quote, words))


def told(words: Iterable[str]) -> str:
    """Where these options come from, for the user."""
    text = tr("from {variable}: {options}; --no_defaults ignores them", variable=VARIABLE, options=shown(words))
    return harmless(text)


def blamed(refusal: Refusal, words: Sequence[str]) -> Refusal:
    """The refusal, with where the options `words` come from if it is about one of them."""
    said = " ".join(refusal.lines)
    if any(word.partition("=")[0] in said for word in words if word.startswith("-")):
        return Refusal(refusal.status, *refusal.lines, told(words))
    return refusal
