"""An agent's request to the one that forks its rank, and why the ranks of a host cannot be forks of one process."""

from __future__ import annotations

import os

from hccl_tools.common.record import Row
from tools.forking.importing import Fork

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.rank.environment import Environment
    from tools.rank.told import Told


class Order(Row):
    """A rank that must become a fork.

    found: its whole environment; pid: of its agent, as that sees it; cgroups: of its agent.
    """

    name: str
    words: list[str]
    found: Environment
    log: str
    cores: list[int]
    pid: int
    cgroups: bytes


def of(told: Told, words: list[str], found: Environment, log: str) -> Order:
    """The order of this process, which has the cores of the rank now."""
    cores = sorted(os.sched_getaffinity(0))
    return Order(told.name, words, dict(found), os.path.abspath(log), cores, os.getpid(), _cgroups())


def _cgroups() -> bytes:
    try:
        with open("/proc/self/cgroup", "rb") as file:
            return file.read()
    except OSError:
        return b""  # this kernel has none


def why_not(orders: Sequence[Order], *, forced: bool) -> str:
    """Why these ranks cannot be forks, as reasons.py has it; empty: they can.

    The engine may give each rank a cgroup of its own, which a fork does not have.  On CPU only the accounting differs;
    a cgroup may also hold the devices of its rank.
    """
    if len({len(order.cores) for order in orders}) > 1:
        return "cores - -"
    if len({_nodes(order.words) for order in orders}) > 1:
        return "memory - -"
    if forced and len({order.cgroups for order in orders}) > 1:
        return "processes - -"
    return ""


def _nodes(words: Sequence[str]) -> str:
    """The NUMA nodes of the rank's memory, as rank_words.py puts them before its command."""
    return words[2] if words[:2] == ["numactl", "--membind"] else ""


def forks(orders: Sequence[Order]) -> tuple[Environment, list[Fork]]:
    """(the part that all ranks share, the forks with the individual part of each)."""
    first, *others = (order.found for order in orders)
    common = {name: value for name, value in first.items() if all(other.get(name) == value for other in others)}
    found = []
    for order in orders:
        own = {name: value for name, value in order.found.items() if name not in common}
        found.append(Fork(order.name, order.words, own, order.log, order.cores))
    return common, found
