"""Finds the differences between a job's hosts in the reports of their first agents (tools/rank/likeness.py)."""

from __future__ import annotations

from hccl_tools.common.grouping import grouped
from tools.together import findings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from tools.together.findings import Row

_MOST_HOSTS = 8  # that are named for each thing


def differing(told: Mapping[str, Mapping[str, str]], ranks: Mapping[str, list[int]]) -> list[Row]:
    """told: {host: {what: what it has of it}}; ranks: those of each host.

    What most hosts have is taken for right; of as many it is what the host of the lowest rank has.
    """
    rows: list[Row] = []
    told = {host: told[host] for host in sorted(told, key=lambda host: min(ranks.get(host, [1 << 30])))}
    for what in dict.fromkeys(name for has in told.values() for name in has):
        values = grouped((has[what], host) for host, has in told.items() if what in has)
        usual = max(values, key=lambda value: len(values[value]))
        others = [(host, value) for value, hosts in values.items() if value != usual for host in hosts]
        rows += [
            findings.row("differs", ranks[host], what=what, here=usual, there=value, host=host)
            for host, value in others[:_MOST_HOSTS]
            if ranks.get(host)
        ]
    return rows
