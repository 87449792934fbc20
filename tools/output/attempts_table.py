"""The attempts of a restarted job, one line per attempt: its progress, whether its restart counts, why it ended."""

from __future__ import annotations

from hccl_tools.common import colours
from hccl_tools.common.colours import columns, padded
from hccl_tools.common.language import tr
from hccl_tools.common.quoting import harmless
from hccl_tools.common.record import Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

MOST = 16  # attempts that are shown: of more, the first one and the last ones
_LONGEST = 160  # characters of why it ended


class Attempt(Row):
    """One attempt."""

    steps: int | None  # that it made; None: no log has one
    reached: int  # the step that it came to, from the start of the run; 0: the same
    vain: int  # how many restarts in a row made no progress, with this one; 0: it does not count
    why: str  # it ended; "": with 0
    status: int


def of(outcome: dict[str, Any], why: str, vain: int) -> Attempt:
    """The attempt of an outcome for launch.json."""
    progress = outcome["progress"]
    counted = vain if progress["counted"] else 0
    return Attempt(progress["steps"], progress.get("reached", 0), counted, why, outcome["exit"])


def lines(attempts: Sequence[Attempt], most: int) -> list[str]:
    """The table.  most: --max_restarts."""
    heads = (tr("attempt"), tr("steps"), tr("up to"), tr("without progress"), tr("why it ended"))
    every = [_cells(number, attempt, most) for number, attempt in enumerate(attempts, 1)]
    if len(every) > MOST:
        every = [every[0], ("...", "", "", "", ""), *every[2 - MOST :]]
    widths = [max(map(columns, column)) for column in zip(heads, *every)]
    rows = ["  ".join(padded(cell, width) for cell, width in zip(cells, widths)).rstrip() for cells in (heads, *every)]
    return [colours.styled(rows[0], colours.HEAD), *rows[1:]]


def _cells(number: int, attempt: Attempt, most: int) -> tuple[str, ...]:
    why = attempt.why or (tr("exit code {status}", status=attempt.status) if attempt.status else tr("ended well"))
    why = harmless(why)
    return (
        str(number),
        "-" if attempt.steps is None else str(attempt.steps),
        str(attempt.reached or "-"),
        tr("{number} of {most}", number=attempt.vain, most=most) if attempt.vain else tr("no"),
        why if len(why) <= _LONGEST else why[: _LONGEST - 3] + "...",
    )
