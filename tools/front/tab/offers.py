"""What TAB offers in a command line that begins with mslaunch, or with a file of this project."""

from __future__ import annotations

import os

from hccl_tools.common import project, typed
from tools.front import commands, pages
from tools.front.tab import launch_line, names, offer, options, tool_line
from tools.front.tab.offer import Offer
from tools.front.tab.script import SHELLS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

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
    return names.offered((_COMPLETION,), begun).words


def _of_command(file: str, words: Sequence[str], begun: str) -> Offer:
    known = options.of(file) or options.of(_script_of(file))
    if known:
        return tool_line.find(known, words, begun)
    return (
        launch_line.find(file, words, begun) if not file or file.startswith("scripts/") else Offer(native=offer.FILES)
    )


def _script_of(file: str) -> str:
    """The script that starts the Python file, and is typed as it; empty without one."""
    words = typed.WORDS.get(file)
    return next((each for each, name in typed.WORDS.items() if name == words and each.startswith("scripts/")), "")
