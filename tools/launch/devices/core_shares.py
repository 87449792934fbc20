"""Divides the cores of a host among its ranks: --bind_core gives each rank its own, --bind_numa those of a NUMA node.

The cores are near the rank's device if that place is known, otherwise in the order of the NUMA nodes. They are whole
physical cores where possible. npu-smi and nvidia-smi report where a device is on the PCI bus, and /sys the NUMA node of
that place.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from hccl_tools.common.numbers import whole_number
from hccl_tools.machine import driver, host, programs, system_files
from tools.launch.devices import device_locks

CORE, NUMA = "core", "numa"
_SECONDS = 30  # limit of one program
_PCI_ADDRESS = re.compile(r"(?:[0-9a-f]{4})?([0-9a-f]{4}):([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])")
SYS = "/sys"
MOST_CORES = 1 << 16


def of_this_host(
    mode: str, target: str, devices: list[int], allowed: set[int], taken: set[int], root: str = SYS
) -> list[list[int]]:
    """The cores of the rank on each of `devices`, by physical ids, all ranks of this host; none if none is left for it.

    allowed: the cores that the job may use; taken: those of them that other jobs have.
    """
    places = {device: cores & allowed for device, cores in _near(target, root).items()}
    known = set(devices) <= set(places)
    if known and not set(online(root)) <= allowed:  # Slurm, say, has chosen cores for this job alone
        places = {device: places[device] for device in devices}
    if known and all(places.values()):
        part = places if mode == NUMA else _parts(places, root)
        return [sorted(set(part[device]) - taken) for device in devices]
    if mode == NUMA:
        return _by_node(len(devices), allowed - taken, root)
    if known:  # other jobs may run on the other devices, whatever is known of their places
        part = _parts(dict.fromkeys(places, allowed), root)
        return [sorted(set(part[device]) - taken) for device in devices]
    return split(physical_cores(allowed - taken, root), len(devices))


def split(physical: list[list[int]], parts: int) -> list[list[int]]:
    """The cores in this number of parts, whose sizes differ by one at most; empty parts if there are too few cores.

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
        found.update(zip(devices, split(physical_cores(place, root), len(devices))))
    return found


def _by_node(ranks: int, free: set[int], root: str) -> list[list[int]]:
    """For ranks without a place: as many ranks on each NUMA node, or as many nodes for each rank."""
    nodes = [cores for node in numa_nodes(root) if (cores := [core for core in node if core in free])]
    nodes = nodes or [sorted(free)]
    starts = [rank * len(nodes) // ranks for rank in range(ranks + 1)]
    return [sorted(_all(nodes[start : max(end, start + 1)])) for start, end in zip(starts, starts[1:])]


def _all(units: Iterable[list[int]]) -> list[int]:
    return [core for unit in units for core in unit]


def _near(target: str, root: str) -> dict[int, set[int]]:
    """{device: the cores of its NUMA node}, for all devices of this host; no cores if the node is not known.

    Nothing at all on CPU, and where the devices cannot be found.
    """
    addresses = {"Ascend": _addresses_of_npus, "GPU": _addresses_of_gpus}.get(target, dict)()
    return {device: set(cores_near(address, root)) for device, address in addresses.items()}


def _addresses_of_npus() -> dict[int, str]:
    """As msrun finds them: `npu-smi info -t board` states where on the PCI bus a chip is."""
    program = driver.find(driver.NPU_SMI)
    if program is None:
        return {}
    chips = host.npu_chips(programs.ask([program, "info", "-m"], _SECONDS).stdout)
    board = [program, "info", "-t", "board", "-i"]
    answers = programs.ask_all(
        {device: [*board, str(npu), "-c", str(chip)] for device, (npu, chip) in chips.items()}, _SECONDS
    )
    lines = {
        device: "".join(line for line in ended.stdout.splitlines() if "PCIe Bus Info" in line)
        for device, ended in answers.items()
    }
    return {device: _address(line) for device, line in lines.items()}


def _addresses_of_gpus() -> dict[int, str]:
    if not programs.on_path("nvidia-smi"):
        return {}
    asked = programs.ask(["nvidia-smi", "--query-gpu=index,pci.bus_id", "--format=csv,noheader"], _SECONDS)
    rows = [line.partition(",") for line in asked.stdout.splitlines()]
    found = {whole_number(index.strip()): _address(address) for index, _, address in rows}
    return {device: address for device, address in found.items() if device is not None}


def _address(text: str) -> str:
    """The PCI address in `text`, as /sys writes it; both print capitals, nvidia-smi eight digits for the domain."""
    found = _PCI_ADDRESS.search(text.lower())
    return "{}:{}:{}.{}".format(*found.groups()) if found else "-"


def here(mode: str, target: str, local_rank: int, ranks: int, devices: list[int]) -> list[int]:
    """The cores of rank number `local_rank` of the `ranks` on this host; empty if none are found for it.

    The rank's agent calls this, on a host that the plan did not see.
    mode: core or numa; target: the device target.
    """
    try:
        others = [holder for holder in device_locks.asked() if holder.job != os.environ.get("LOG_DIR")]
        taken = {core for holder in others for core in holder.cores}
    except OSError:
        taken = set()
    here = devices[:ranks]
    shares = of_this_host(mode, target, here, os.sched_getaffinity(0), taken)
    return sorted(shares[local_rank])


def physical_cores(cores: Iterable[int], root: str = SYS) -> list[list[int]]:
    """The `cores`, grouped by physical core, in the order of the NUMA nodes."""
    left = set(cores)
    found = []
    for core in [core for node in (*numa_nodes(root), sorted(left)) for core in node]:
        if core in left:
            siblings = _numbers(root, f"devices/system/cpu/cpu{core}/topology/thread_siblings_list")
            found.append(sorted({core, *siblings} & left))
            left.difference_update(found[-1])
    return found


def numa_nodes(root: str = SYS) -> list[list[int]]:
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


def parse_list(text: str) -> list[int]:
    """The numbers of a list such as ``0-3,8``, sorted; none if it is not such a list."""
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or dash and not last.isdecimal():
            return []
        found.update(range(int(first), min(int(last if dash else first), MOST_CORES) + 1))
    return sorted(found)


def _numbers(root: str, path: str) -> list[int]:
    return parse_list(_text(root, path))


def _text(root: str, path: str) -> str:
    """What the file states; nothing where there is none, as in some containers."""
    return system_files.read(os.path.join(root, path)) or ""
