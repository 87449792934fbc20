"""Shares the cores of a host among its ranks: for --bind_core each has its own, for --bind_numa those of a NUMA node.

Near its device where that is known, else in the order of the NUMA nodes, in whole physical cores where possible.
"""

from __future__ import annotations

from collections.abc import Iterable

from tools.launch.devices import device_places, topology

CORE, NUMA = "core", "numa"


def of_this_host(
    mode: str, target: str, devices: list[int], allowed: set[int], taken: set[int], root: str = topology.SYS
) -> list[list[int]]:
    """The cores of the rank on each of `devices`, by physical ids, all ranks of this host; none if none is left for it.

    allowed: the cores that the job may use; taken: those of them that other jobs have.
    """
    places = {device: cores & allowed for device, cores in device_places.near(target, root).items()}
    known = set(devices) <= set(places)
    if known and not set(topology.online(root)) <= allowed:  # Slurm, say, has chosen cores for this job alone
        places = {device: places[device] for device in devices}
    if known and all(places.values()):
        part = places if mode == NUMA else _parts(places, root)
        return [sorted(set(part[device]) - taken) for device in devices]
    if mode == NUMA:
        return _by_node(len(devices), allowed - taken, root)
    if known:  # other jobs may run on the other devices, whatever is known of their places
        part = _parts(dict.fromkeys(places, allowed), root)
        return [sorted(set(part[device]) - taken) for device in devices]
    return split(topology.physical_cores(allowed - taken, root), len(devices))


def split(physical: list[list[int]], parts: int) -> list[list[int]]:
    """The cores in so many parts of one size, or of two that differ by one; none for each if there are too few.

    Physical cores stay whole if there are enough of them.
    """
    units = physical if len(physical) >= parts else [[core] for cores in physical for core in cores]
    if len(units) < parts:
        return [[] for _ in range(parts)]
    bounds = [index * len(units) // parts for index in range(parts + 1)]
    return [sorted(_all(units[start:end])) for start, end in zip(bounds, bounds[1:])]


def _parts(places: dict[int, set[int]], root: str) -> dict[int, list[int]]:
    """{device: its part of the cores near it}, which all devices of the host near the same cores share."""
    found: dict[int, list[int]] = {}
    for place in {frozenset(cores) for cores in places.values()}:
        devices = sorted(device for device, cores in places.items() if cores == place)
        found.update(zip(devices, split(topology.physical_cores(place, root), len(devices))))
    return found


def _by_node(ranks: int, free: set[int], root: str) -> list[list[int]]:
    """For ranks without a place: as many ranks on each NUMA node, or as many nodes for each rank."""
    nodes = [cores for node in topology.nodes(root) if (cores := [core for core in node if core in free])]
    nodes = nodes or [sorted(free)]
    starts = [rank * len(nodes) // ranks for rank in range(ranks + 1)]
    return [sorted(_all(nodes[start : max(end, start + 1)])) for start, end in zip(starts, starts[1:])]


def _all(units: Iterable[list[int]]) -> list[int]:
    return [core for unit in units for core in unit]
