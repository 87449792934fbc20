"""Reads the processors of this host from /sys: physical cores, NUMA nodes, and the places of devices.

`root` is /sys, or a simulated one in tests.  A "core", as in taskset and msrun, is a processor that Linux numbers.
With hyperthreading two of them are one physical core.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from hccl_tools.machine import system_files

SYS = "/sys"
MOST_CORES = 1 << 16


def physical_cores(cores: Iterable[int], root: str = SYS) -> list[list[int]]:
    """The `cores`, grouped by physical core, in the order of the NUMA nodes."""
    left = set(cores)
    found = []
    for core in [core for node in (*nodes(root), sorted(left)) for core in node]:
        if core in left:
            siblings = _numbers(root, f"devices/system/cpu/cpu{core}/topology/thread_siblings_list")
            found.append(sorted({core, *siblings} & left))
            left.difference_update(found[-1])
    return found


def nodes(root: str = SYS) -> list[list[int]]:
    """The cores of each NUMA node that has some."""
    return [cores for node in node_numbers(root) if (cores := cores_of_node(node, root))]


def node_numbers(root: str = SYS) -> list[int]:
    """The numbers of the NUMA nodes that work."""
    return _numbers(root, "devices/system/node/online")


def cores_of_node(node: int, root: str = SYS) -> list[int]:
    """The cores of the NUMA node of this number."""
    return _numbers(root, f"devices/system/node/node{node}/cpulist")


def online(root: str = SYS) -> list[int]:
    """All cores that work, whether or not we may use them."""
    return _numbers(root, "devices/system/cpu/online")


def cores_near(address: str, root: str = SYS) -> list[int]:
    """The cores of the NUMA node of the PCI device at `address`; none if it has no node."""
    node = _text(root, f"bus/pci/devices/{address}/numa_node")
    return cores_of_node(int(node), root) if node.isdecimal() else []


def parse(text: str) -> list[int]:
    """The numbers of a list such as ``0-3,8``, sorted; none if it is not such a list."""
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or dash and not last.isdecimal():
            return []
        found.update(range(int(first), min(int(last if dash else first), MOST_CORES) + 1))
    return sorted(found)


def _numbers(root: str, path: str) -> list[int]:
    return parse(_text(root, path))


def _text(root: str, path: str) -> str:
    """What the file states; nothing where there is none, as in some containers."""
    return system_files.read(os.path.join(root, path)) or ""
