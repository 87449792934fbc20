"""Finds the candidates for TAB in a command line that begins with mslaunch, or with a file of this project."""

from __future__ import annotations

import os

from hccl_tools.common import project, typed
from hccl_tools.common.record import Row
from tools.front import commands, pages
from tools.front.tab import launch_line, offer, values
from tools.front.tab.offer import Offer
from tools.front.tab.script import SHELLS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.front.tab.offer import Offer

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "options.tsv")
_HELP = ("-h", "--help", "help")
_COMPLETION = "--completion"


def of_front(words: Sequence[str], begun: str) -> Offer:
    """What may follow ``mslaunch WORD...``."""
    if not words:
        return _first(begun)
    if words[0] in _HELP:
        every = [*commands.names(), *pages.topics(), "launch", "scripts"]
        return offer.words(sorted(set(every)), begun) if len(words) == 1 else Offer()
    if words[0] == _COMPLETION:
        return offer.words(SHELLS, begun)
    file, name, number = commands.find(words)
    if file == "?":
        return offer.words(commands.groups()[name], begun) if len(words) == 1 else Offer()
    return _of_command(file, words[number:], begun)


def of_file(words: Sequence[str], begun: str) -> Offer:
    """What may follow ``bash scripts/ascend4p.sh WORD...`` or ``python tools/watch.py WORD...``."""
    for at, word in enumerate(words):
        path = os.path.realpath(os.path.expanduser(word))
        folder = os.path.dirname(path)
        if path.endswith((".sh", ".py")) and folder in map(project.path, ("scripts", "tools", "hccl_tools")):
            file = os.path.relpath(path, project.ROOT)
            return _of_command(file, words[at + 1 :], begun)
    return Offer(native=offer.FILES)


def _first(begun: str) -> Offer:
    if begun.startswith(f"{_COMPLETION}="):
        return offer.words((f"{_COMPLETION}={shell}" for shell in SHELLS), begun)
    found = launch_line.find("", (), begun)
    if begun.startswith("-"):
        return found if "=" in begun else found.replace(words=(*found.words, *_front_options(begun)))
    return found.replace(words=offer.words(commands.names(), begun).words)


def _front_options(begun: str) -> tuple[str, ...]:
    return values.names((_COMPLETION,), begun).words


def _of_command(file: str, words: Sequence[str], begun: str) -> Offer:
    known = known_of(file) or known_of(_script_of(file))
    if known:
        return of_tool(known, words, begun)
    return (
        launch_line.find(file, words, begun) if not file or file.startswith("scripts/") else Offer(native=offer.FILES)
    )


def _script_of(file: str) -> str:
    """The script that starts the Python file, and is typed as it; empty without one."""
    words = typed.WORDS.get(file)
    return next((each for each, name in typed.WORDS.items() if name == words and each.startswith("scripts/")), "")


def of_tool(known: Sequence[Known], words: Sequence[str], begun: str) -> Offer:
    """The candidates after the words of a tool with the options `known`."""
    takes = {name: values.BY_NAME.get(name.lstrip("-"), each.takes) for each in known for name in each.names}
    arguments = [each.takes for each in known if not each.names]
    given, waits = 0, ""
    for word in words:
        if waits:
            waits = ""
        elif word.startswith("-") and word != "-":
            waits = "" if "=" in word else takes.get(values.plain_name(word), "")
        else:
            given += 1
    if waits:
        return values.of(waits, begun)
    if begun.startswith("--") and "=" in begun:
        return values.assigned(begun, takes.get(values.plain_name(begun), ""))
    if begun.startswith("-"):
        return values.names([*takes, "--help"], begun)
    if given < len(arguments):
        return values.of(arguments[given], begun)
    # the last one may be repeated; a choice may not
    return values.of(arguments[-1], begun) if arguments and not values.choices(arguments[-1]) else offer.Offer()


# ---- The options of the commands that launch nothing, from a table, because their --help takes up to a second.
#
# python -m tools.pages.tab_options >tools/front/tab/options.tsv


class Known(Row):
    """An option or an argument: a line of the table."""

    names: Sequence[str]  # such as --config and -c; none: an argument
    takes: str  # as --help has it, such as FILE; empty: a flag


def known_of(file: str) -> list[Known]:
    """The options and arguments of the command whose file in the project is `file`; arguments are in their order."""
    with open(PATH, encoding="utf-8") as table:
        rows = [line.rstrip("\n").split("\t") for line in table]
    return [Known(names.split(), takes) for name, names, takes in rows if name == file]
