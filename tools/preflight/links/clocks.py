"""The clocks of all hosts against the median one: links give differences, and a walk over the links adds them up."""

from __future__ import annotations

import heapq
import statistics

from hccl_tools.common.record import Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from tools.preflight.links.answers import Link


class Clock(Row):
    """How far a clock is ahead of the median one, in seconds, and by how much that may be wrong."""

    offset: float
    error: float


def of(links: Iterable[Link]) -> dict[str, Clock]:
    """{host: its clock}; hosts between which no link is measured have each a median of their own."""
    near: dict[str, list[tuple[float, float, str]]] = {}  # {host: (error, offset of the other one, other host)}
    for link in links:
        if link.trip is not None and link.offset is not None:
            near.setdefault(link.source, []).append((link.trip / 2, link.offset, link.target))
            near.setdefault(link.target, []).append((link.trip / 2, -link.offset, link.source))
    found: dict[str, Clock] = {}
    for host in near:
        if host not in found:
            found.update(_against_median(_walk(host, near)))
    return found


def _walk(first: str, near: dict[str, list[tuple[float, float, str]]]) -> dict[str, Clock]:
    """The clocks of all hosts that links join to the first one, against its clock, by the ways of the least error."""
    found: dict[str, Clock] = {}
    open_ends = [(0.0, 0.0, first)]
    while open_ends:
        error, offset, host = heapq.heappop(open_ends)
        if host in found:
            continue
        found[host] = Clock(offset, error)
        for more, ahead, other in near[host]:
            if other not in found:
                heapq.heappush(open_ends, (error + more, offset + ahead, other))
    return found


def _against_median(clocks: dict[str, Clock]) -> dict[str, Clock]:
    middle = statistics.median_low(clocks.values())
    return {host: Clock(clock.offset - middle.offset, clock.error + middle.error) for host, clock in clocks.items()}
