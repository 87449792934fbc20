"""Reads the --help text of a script from its header comment, in the user's language."""

from __future__ import annotations

import itertools
import re

from hccl_tools.common.language import speaks_chinese, tr
from hccl_tools.common.typed import as_typed

# A line that has a command: blanks, the words before it, and the rest.
COMMANDS = re.compile(r"^( *)(Usage:|Example:|on [^:]+:)?( +\S.*|$)", re.MULTILINE)


def header(path: str) -> list[str]:
    """The lines of the comment, without its signs.  Raises OSError."""
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        lines = itertools.takewhile(lambda line: line.startswith("#"), file)
        return [line.rstrip("\n")[1:].removeprefix(" ") for line in lines if not line.startswith("#!")]


def paragraphs(path: str) -> list[str]:
    """The same, by the empty lines in it.  Raises OSError."""
    return "\n".join(header(path)).split("\n\n")


def page(path: str) -> list[str]:
    """The lines as the user reads them: commands as this user types them.  Raises OSError."""
    if not speaks_chinese():
        return [as_typed(line) for line in header(path)]
    found = []
    for paragraph in paragraphs(path):
        if COMMANDS.search(paragraph):
            text = COMMANDS.sub(lambda part: part[1] + (tr(part[2]) if part[2] else "") + part[3], paragraph)
            found += [as_typed(line) for line in text.split("\n")]
        else:
            found.append(tr(paragraph.replace("\n", " ")))
        found.append("")
    return found[:-1]
