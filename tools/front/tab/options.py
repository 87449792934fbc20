"""The options of the commands that launch nothing, from a table, because their --help takes up to a second.

python -m tools.pages.tab_options >tools/front/tab/options.tsv
"""

from __future__ import annotations

import os

from hccl_tools.common.record import Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "options.tsv")


class Known(Row):
    """An option or an argument: a line of the table."""

    names: Sequence[str]  # such as --config and -c; none: an argument
    takes: str  # as --help has it, such as FILE; empty: a flag


def of(file: str) -> list[Known]:
    """What the command takes whose file in the project is `file`; arguments are in their order."""
    with open(PATH, encoding="utf-8") as table:
        rows = [line.rstrip("\n").split("\t") for line in table]
    return [Known(names.split(), takes) for name, names, takes in rows if name == file]
