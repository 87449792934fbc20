"""Which cores are near the devices of this host: npu-smi and nvidia-smi tell the PCI addresses, /sys the NUMA nodes."""

from __future__ import annotations

import re

from hccl_tools.common.numbers import whole_number
from hccl_tools.machine import driver, host, programs
from tools.launch.devices import topology

SECONDS = 30  # limit of one program

_PCI_ADDRESS = re.compile(r"(?:[0-9a-f]{4})?([0-9a-f]{4}):([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])")


def near(target: str, root: str = topology.SYS) -> dict[int, set[int]]:
    """{device: the cores of its NUMA node}, for all devices of this host; no cores if the node is not known.

    Nothing at all on CPU, and where the devices cannot be found.
    """
    addresses = {"Ascend": _addresses_of_npus, "GPU": _addresses_of_gpus}.get(target, dict)()
    return {device: set(topology.cores_near(address, root)) for device, address in addresses.items()}


def _addresses_of_npus() -> dict[int, str]:
    """As msrun finds them: `npu-smi info -t board` says where on the PCI bus a chip is."""
    program = driver.find(driver.NPU_SMI)
    if program is None:
        return {}
    chips = host.npu_chips(programs.ask([program, "info", "-m"], SECONDS).stdout)
    board = [program, "info", "-t", "board", "-i"]
    answers = programs.ask_all(
        {device: [*board, str(npu), "-c", str(chip)] for device, (npu, chip) in chips.items()}, SECONDS
    )
    lines = {
        device: "".join(line for line in ended.stdout.splitlines() if "PCIe Bus Info" in line)
        for device, ended in answers.items()
    }
    return {device: _address(line) for device, line in lines.items()}


def _addresses_of_gpus() -> dict[int, str]:
    if not programs.on_path("nvidia-smi"):
        return {}
    asked = programs.ask(["nvidia-smi", "--query-gpu=index,pci.bus_id", "--format=csv,noheader"], SECONDS)
    rows = [line.partition(",") for line in asked.stdout.splitlines()]
    found = {whole_number(index.strip()): _address(address) for index, _, address in rows}
    return {device: address for device, address in found.items() if device is not None}


def _address(text: str) -> str:
    """The PCI address in `text`, as /sys writes it; both print capitals, nvidia-smi eight digits for the domain."""
    found = _PCI_ADDRESS.search(text.lower())
    return "{}:{}:{}.{}".format(*found.groups()) if found else "-"
