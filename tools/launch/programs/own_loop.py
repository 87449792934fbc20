"""Detects a start script that starts ranks itself, in a loop or by a launcher, from its text; nothing is run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from hccl_tools.common import typed
from hccl_tools.common.language import tr
from hccl_tools.common.quoting import quoted
from hccl_tools.common.refusal import refused
from hccl_tools.common.words import clauses, one_line
from tools.launch.programs import command_words, launchers

_MOST = 1 << 18  # bytes of a script that are looked at
_MOST_PLACES = 20  # a real script sets RANK_ID once or twice
_LOOP = re.compile(
    r"^\s*for\s*(?:\(\(\s*)?([A-Za-z_]\w*)\s*(?:=|in\b)"
    r"|^\s*(?:while|until)\b[^\n]*?\b([A-Za-z_]\w*)\}?\"?\s*(?:-[lg][te]\b|-eq\b|[<>=])",
    re.MULTILINE,
)
_RANK = re.compile(r"^[^#\n]*\bRANK_ID=(\$\(\([^)\n]*\)\)|`[^`\n]*`|[^\s;]+)", re.MULTILINE)
_BEHIND = re.compile(r"^(?!\s*#).*[^&]&\s*(?:done)?\s*$", re.MULTILINE)
_BY_NAME = {re.escape(name): launchers.SUBCOMMANDS.get(name) for name in sorted(launchers.NAMES, reverse=True)}
_NAMES = "|".join(f"{name} +{wanted}" if wanted else name for name, wanted in _BY_NAME.items())
_ASKS = "|".join(map(re.escape, command_words.ASKS))
_MODULES = "|".join(map(re.escape, launchers.MODULES))
_COMMAND = re.compile(
    r"(?:^|[;&|({`]|\b(?:then|do|else|exec|nohup|time|env|eval))\s*(?:[A-Za-z_]\w*=\S*\s+)*"
    rf"(?:(?:[\w./~-]*/)?(?P<name>{_NAMES})|python[\d.]*\s+(?:-\S+\s+)*-m\s*(?P<module>{_MODULES}))"
    rf"(?=\s|$)(?!\s+(?:{_ASKS})(?![\w-]))"
)


def check(words: Sequence[str]) -> None:
    """Raises Refusal if these words of a program are a script that gives RANK_ID its numbers, and starts them with &.

    Every rank would start all of the ranks again, and remove the folders of the others' ranks.
    """
    at = launchers.script(words)
    if at is None:
        return
    script = words[at]
    line = place(text_of(script))
    if not line:
        return
    raise refused(
        "{script}:{line}: the script itself starts the ranks, in a loop with RANK_ID, so every rank would start all of"
        " them; to launch what it starts: {command}; to run it in every rank nevertheless: --no_check",
        script=one_line(script),
        line=line,
        command=with_zoo(script, words[at + 1 :]),
    )


def with_zoo(script: str, words: Sequence[str]) -> str:
    """The command that launches what a script starts with these words."""
    shell = [] if script.endswith(".sh") else ["bash"]  # without it, it may be a config as well
    return " ".join(
        map(quoted, [*typed.words("scripts/launch.sh"), "--zoo", *shell, script.removeprefix("./"), *words])
    )


def text_of(path: str) -> str:
    """The text of the script; empty if it cannot be read as text: other checks report what cannot be started."""
    try:
        with open(path, "rb") as file:
            return file.read(_MOST).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""


def place(text: str) -> int:
    """The line in which RANK_ID gets a number of a loop whose commands do not wait for one another; 0: none."""
    for rank in islice(_RANK.finditer(text), _MOST_PLACES):
        loops = [loop for loop in _LOOP.finditer(text) if loop.start() < rank.start(1)]
        names = {loop[1] or loop[2] for loop in loops}
        # also by way of another variable: rank=$((i+8)), then RANK_ID=$rank
        names |= {found for name in list(names) for found in re.findall(rf"(\w+)=\S*\b{name}\b", text)}
        used = {name for name in re.findall(r"[A-Za-z_]\w*", rank[1]) if name in names and name != "RANK_ID"}
        if used and _BEHIND.search(text, loops[0].start()):
            return text.count("\n", 0, rank.start(1)) + 1
    return 0


def launcher_remarks(words: Sequence[str], ranks: int) -> list[str]:
    """Notes before every rank runs a start script that starts a launcher."""
    at = launchers.script(words)
    if at is None:
        return []
    for number, line in enumerate(text_of(words[at]).split("\n"), 1):
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
        return tr("to launch what it starts: {command}", command=with_zoo(script, words))
    return tr("in the script, write {command} in its place", command=launchers.ours(kind))
