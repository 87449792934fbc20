"""Describes what is wrong with links: one entry for all hosts with the same problem."""

from __future__ import annotations

from hccl_tools.common.language import tr
from hccl_tools.common.quoting import quote
from hccl_tools.common.record import Row
from hccl_tools.common.words import clauses
from hccl_tools.hosts import node_sets

BLOCKS, SLOWS, SURPRISES = "blocks", "slows", "surprises"
_MOST_NAMED = 6  # sets of hosts in a line


class Broken(Row):
    """One problem.

    level:  BLOCKS, SLOWS or SURPRISES.  key: link, mtu, slow, clock, address, port, untested or answer.
    hosts:  of which `text` states something.  peers: the other ends; empty: all others.  ports: where it is so.
    remedy: what to do, often a command.
    """

    level: str
    key: str
    hosts: tuple[str, ...]
    peers: tuple[str, ...]
    ports: tuple[int, ...]
    text: str
    remedy: str

    def line(self) -> str:
        """The problem as one line."""
        return clauses(f"{named(self.hosts)}: {self.text}", self.remedy)


def slow_remedy(host: str) -> str:
    """What to do about a slow host or link."""
    return tr("look for errors, drops and load: {command}", command=f"ssh {quote(host)} 'ip -s link; tc qdisc'")


def named(hosts: tuple[str, ...]) -> str:
    """The hosts as sets: node[3,7-9]."""
    return node_sets.folded(hosts, _MOST_NAMED)
