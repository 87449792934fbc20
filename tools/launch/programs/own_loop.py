"""Detects a shell script that starts the ranks of a job itself, in a loop, from its text; nothing is run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from hccl_tools.common import typed
from hccl_tools.common.quoting import quoted
from hccl_tools.common.refusal import refused
from hccl_tools.common.words import one_line
from tools.launch.programs import launchers

_MOST = 1 << 18  # bytes of a script that are looked at
_MOST_PLACES = 20  # a real script sets RANK_ID once or twice
_LOOP = re.compile(
    r"^\s*for\s*(?:\(\(\s*)?([A-Za-z_]\w*)\s*(?:=|in\b)"
    r"|^\s*(?:while|until)\b[^\n]*?\b([A-Za-z_]\w*)\}?\"?\s*(?:-[lg][te]\b|-eq\b|[<>=])",
    re.MULTILINE,
)
_RANK = re.compile(r"^[^#\n]*\bRANK_ID=(\$\(\([^)\n]*\)\)|`[^`\n]*`|[^\s;]+)", re.MULTILINE)
_BEHIND = re.compile(r"^(?!\s*#).*[^&]&\s*(?:done)?\s*$", re.MULTILINE)


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
