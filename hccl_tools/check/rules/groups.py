"""Determines which devices of a 910A host can run one job, for the launcher and the rank-table tools."""

from __future__ import annotations

from collections.abc import Sequence

from hccl_tools.common.language import tr
from hccl_tools.common.words import count, named, ranges

# The sets of four devices that HCCL's code accepts on 910A (topoinfo_parse.cc).  It accepts every pair,
# but only devices 0-3 and 4-7 are wired to each other, and the manual forbids pairs across.
_FOURS_910A = (
    (0, 1, 2, 3),
    (4, 5, 6, 7),
    (0, 1, 4, 5),
    (0, 2, 4, 6),
    (0, 3, 4, 7),
    (1, 2, 5, 6),
    (1, 3, 5, 7),
    (2, 3, 6, 7),
)


def group_problem_910a(ids: Sequence[int]) -> tuple[str, str] | None:
    """(text, remedy) when a 910A host cannot run one job on the devices `ids`, else None."""
    if ids and max(ids) > 7:
        return tr("device {device} does not exist on a 910A host", device=max(ids)), tr("its devices are 0 to 7")
    if len(ids) not in (1, 2, 4, 8):
        return tr("{devices} ({ids}) on a 910A host", devices=count(len(ids), "device"), ids=ranges(ids)), tr(
            "use 1, 2, 4 or 8 devices"
        )
    if len(ids) == 2 and ids[0] // 4 != ids[1] // 4:
        remedy = tr("use both from 0-3 or both from 4-7")
    elif len(ids) == 4 and tuple(sorted(ids)) not in _FOURS_910A:
        remedy = tr('use "[0,4)", "[4,8)" or two linked pairs such as 0,1,4,5')
    else:
        return None
    return tr("{devices} are not linked on a 910A host", devices=named("device", ids)), remedy
