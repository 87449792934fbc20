"""Detects a start script that starts a launcher, from its text before every rank runs it.  A loop: own_loop.py."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hccl_tools.common.language import tr
from hccl_tools.common.words import clauses, one_line
from tools.launch.programs import command_words, launchers, own_loop

_BY_NAME = {re.escape(name): launchers.SUBCOMMANDS.get(name) for name in sorted(launchers.NAMES, reverse=True)}
_NAMES = "|".join(f"{name} +{wanted}" if wanted else name for name, wanted in _BY_NAME.items())
_ASKS = "|".join(map(re.escape, command_words.ASKS))
_MODULES = "|".join(map(re.escape, launchers.MODULES))
_COMMAND = re.compile(
    r"(?:^|[;&|({`]|\b(?:then|do|else|exec|nohup|time|env|eval))\s*(?:[A-Za-z_]\w*=\S*\s+)*"
    rf"(?:(?:[\w./~-]*/)?(?P<name>{_NAMES})|python[\d.]*\s+(?:-\S+\s+)*-m\s*(?P<module>{_MODULES}))"
    rf"(?=\s|$)(?!\s+(?:{_ASKS})(?![\w-]))"
)


def remarks(words: Sequence[str], ranks: int) -> list[str]:
    """Notes before this command runs in every rank."""
    at = launchers.script(words)
    if at is None:
        return []
    for number, line in enumerate(own_loop.text_of(words[at]).split("\n"), 1):
        match = _COMMAND.search(re.sub(r"(^|\s)#.*", "", line))
        if match:
            text = tr(
                "note: {place} starts {launcher}, which starts ranks itself, and each of the {number} ranks runs this"
                " script",
                place=f"{one_line(words[at])}:{number}",
                launcher=match["name"] or f"python -m {match['module']}",
                number=ranks,
            )
            return [clauses(text, _remedy(match, words[at], words[at + 1 :]))]
    return []


def _remedy(match: re.Match[str], script: str, words: Sequence[str]) -> str:
    """What to do: --zoo has a stand-in for some launchers, and others would really start."""
    name, _, _ = (match["name"] or "").partition(" ")
    kind = launchers.NAMES[name] if name else launchers.MODULES[match["module"]]
    if name in launchers.BY_ZOO:
        return tr("to launch what it starts: {command}", command=own_loop.with_zoo(script, words))
    return tr("in the script, write {command} in its place", command=launchers.ours(kind))
