"""What the text of a start script shows before every rank runs it: it starts a launcher.  A loop: own_loop.py."""

from __future__ import annotations

import re

from hccl_tools.common.language import tr
from hccl_tools.common.words import one_line
from tools.launch.programs import launchers, own_loop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_NAMES = "|".join(map(re.escape, sorted((*launchers.NAMES, "accelerate launch", "colossalai run"), reverse=True)))
_MODULES = "|".join(map(re.escape, launchers.MODULES))
_COMMAND = re.compile(
    r"(?:^|[;&|({`]|\b(?:then|do|else|exec|nohup|time|env|eval))\s*(?:[A-Za-z_]\w*=\S*\s+)*"
    rf"(?:(?:[\w./~-]*/)?(?P<name>{_NAMES})|python[\d.]*\s+(?:-\S+\s+)*-m\s*(?P<module>{_MODULES}))(?=\s|$)"
)


def remarks(words: Sequence[str], ranks: int) -> list[str]:
    """What to know before this command runs in every rank."""
    at = launchers.script(words)
    if at is None:
        return []
    for number, line in enumerate(own_loop.text_of(words[at]).split("\n"), 1):
        match = _COMMAND.search(re.sub(r"(^|\s)#.*", "", line))
        if match:
            text = tr(
                "note: {place} starts {launcher}, which starts ranks itself, and each of the {number} ranks runs this"
                " script; to launch what it starts: {command}",
                place=f"{one_line(words[at])}:{number}",
                launcher=match["name"] or f"python -m {match['module']}",
                number=ranks,
                command=own_loop.with_zoo(words[at], words[at + 1 :]),
            )
            return [text]
    return []
