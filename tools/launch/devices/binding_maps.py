"""Parses maps for --bind_core and --bind_numa in msrun's form: on the command line, or in a JSON file.

    {"device0": ["0-11"], "device1": ["12-23"], "scheduler": ["24"]}      cores, or NUMA nodes for --bind_numa
    {"bind_config": {"bind_cpu_mode": "cpu", "bind_memory_mode": "numa"},  the same in a file, and the memory's nodes
     "bind_cpu": {"device0": {"main": "0-11"}}, "bind_memory": {"device0": 0}}

A device is named by its physical id. numactl binds the memory, and then becomes the rank.
"""

from __future__ import annotations

import hashlib
import json
import os
import re

from hccl_tools.common import documents
from hccl_tools.common.language import strerror, tr
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import REFUSED, USAGE, Refusal, misused
from hccl_tools.common.words import clauses, one_line, ranges, shown
from hccl_tools.machine import programs
from tools.launch.devices import core_shares

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

SCHEDULER = "scheduler"
FLAG = "1"  # of an option without a map
_KEY = re.compile(r"device_?([0-9]{1,5})")
_LIST = re.compile(r"[0-9]{1,6}(-[0-9]{1,6})?(,[0-9]{1,6}(-[0-9]{1,6})?)*")
_MODES = {"bind_cpu_mode": ("cpu", "numa", "none"), "bind_memory_mode": ("numa", "none")}


class Maps(Record):
    """What the user wants: {device: its numbers}; the scheduler has the key -1."""

    cores: dict[int, list[int]] = {}
    nodes: dict[int, list[int]] = {}  # whose cores it gets
    memory: dict[int, list[int]] = {}  # NUMA nodes
    exports: dict[str, str] = {}  # what MindSpore's set_cpu_affinity reads

    def cores_of(self, device: int, of_node: Callable[[int], list[int]]) -> list[int]:
        """The cores of the rank on this device; none if it is not bound."""
        if self.cores:
            return self.cores.get(device, [])
        return sorted({core for node in self.nodes.get(device, ()) for core in of_node(node)})


def is_map(value: str | None) -> bool:
    """Whether the value of the option is a map or the name of a file."""
    return bool(value) and value != FLAG


def read(core: str | None, numa: str | None) -> Maps:
    """Reads --bind_core and --bind_numa, at least one of which is a map.  Raises Refusal."""
    found = Maps()
    if is_map(numa):
        found = _of_numa(str(numa))
    if is_map(core):
        what = f"--bind_core {_named(str(core))}"
        found = found.replace(cores=_devices(what, _parsed("--bind_core", str(core))[0]))
    if found.memory and not programs.on_path("numactl"):
        text = tr("--bind_numa: numactl, which binds the memory of ranks, is not on PATH")
        raise Refusal(REFUSED, clauses(text, tr("install the package numactl")))
    return found


def _of_numa(value: str) -> Maps:
    document, text = _parsed("--bind_numa", value)
    what = f"--bind_numa {_named(value)}"
    if not {"bind_config", "bind_cpu", "bind_memory"} & set(document):
        nodes = _devices(what, document)
        return Maps(nodes=nodes, memory=nodes)
    modes = _part(what, document, "bind_config")
    for name, choices in _MODES.items():
        mode = str(modes.get(name, "none")).lower()
        if mode not in choices:
            raise Refusal(USAGE, _at(what, f"bind_config.{name}", shown(mode), " | ".join(choices)))
        modes[name] = mode
    cpu, memory = _part(what, document, "bind_cpu"), _part(what, document, "bind_memory")
    found = Maps()
    if not value.startswith("{"):
        digest = hashlib.sha256(text.encode("utf-8")).hexdigest()
        found = found.replace(exports={"MSRUN_BIND_FILE": os.path.abspath(value), "MSRUN_BIND_FILE_HASH": digest})
    if modes["bind_cpu_mode"] == "cpu":
        main = {name: each.get("main") if isinstance(each, dict) else each for name, each in cpu.items()}
        found = found.replace(cores=_devices(what, {name: each for name, each in main.items() if each is not None}))
    elif modes["bind_cpu_mode"] == "numa":
        found = found.replace(nodes=_devices(what, cpu))
    if modes["bind_memory_mode"] == "numa":
        found = found.replace(memory=_devices(what, memory))
    return found


def _parsed(option: str, value: str) -> tuple[dict[str, Any], str]:
    """The object in the value, or in the file that it names, and its text.  Raises Refusal."""
    text = value
    if not value.startswith("{"):
        try:
            documents.refuse_special(value)
            with open(value, encoding="utf-8") as file:
                text = file.read()
        except (OSError, ValueError) as error:
            reason = strerror(error)
            raise misused(
                "{option} {file}: cannot be read: {reason}",
                option=option,
                file=one_line(value),
                reason=one_line(reason),
            ) from error
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        what = tr("{option} {file}: is not JSON: {reason}", option=option, file=_named(value), reason=one_line(error))
        raise Refusal(USAGE, clauses(what, _example())) from error
    if not isinstance(document, dict):
        what = tr("{option} {file}: is JSON, but not an object", option=option, file=_named(value))
        raise Refusal(USAGE, clauses(what, _example()))
    return document, text


def _part(what: str, document: Mapping[str, Any], name: str) -> dict[str, Any]:
    part = document.get(name, {})
    if not isinstance(part, dict):
        raise Refusal(USAGE, _at(what, name, shown(part), "{...}"))
    return dict(part)


def _devices(what: str, document: Mapping[str, Any]) -> dict[int, list[int]]:
    """{device: its numbers} of {"device0": "0-3", "device1": ["4,5"], "device2": 6}.  Raises Refusal."""
    found = {}
    for name, value in document.items():
        match = _KEY.fullmatch(name)
        if not match and name != SCHEDULER:
            raise Refusal(USAGE, _at(what, one_line(name), shown(name), "device0, device1, scheduler"))
        parts = value if isinstance(value, list) else [value]
        texts = [str(part) if type(part) is int else part for part in parts]
        if not all(isinstance(text, str) and _LIST.fullmatch(re.sub(r"\s", "", text)) for text in texts):
            raise Refusal(USAGE, _at(what, one_line(name), shown(value), '"0-3" | "0,1"'))
        numbers = core_shares.parse_list(re.sub(r"\s", "", ",".join(texts)))
        found[int(match.group(1)) if match else -1] = numbers
    return found


def check_cores(what: str, maps: Maps, allowed: set[int], devices: list[int]) -> None:
    """Raises Refusal for cores and NUMA nodes that this host has not, or that the launch may not use."""
    for device in (*devices, -1):
        wrong = set(maps.cores.get(device, ())) - allowed
        if wrong:
            text = tr("{what}: this launch may not use the cores {cores}", what=what, cores=ranges(wrong))
            raise Refusal(REFUSED, clauses(text, tr("it may use {cores}", cores=ranges(allowed))))
        known = set(core_shares.node_numbers())
        missing = (set(maps.nodes.get(device, ())) | set(maps.memory.get(device, ()))) - known
        if missing:
            text = tr("{what}: this host has no NUMA nodes {nodes}", what=what, nodes=ranges(missing))
            raise Refusal(REFUSED, clauses(text, tr("it has {nodes}", nodes=ranges(known) or "-")))


def _named(value: str) -> str:
    return tr("MAP") if value.startswith("{") else one_line(value)


def _at(what: str, place: str, found: str, wanted: str) -> str:
    return tr("{what}: {place} is {found}; write one of: {wanted}", what=what, place=place, found=found, wanted=wanted)


def _example() -> str:
    return tr("write such as {example}", example="""'{"device0": ["0-3"], "device1": ["4-7"]}'""")
