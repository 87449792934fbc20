"""Files that say which rank and address a device has: rank tables of any version, and ModelArts' pages of its hosts."""

from __future__ import annotations

import os
import re

from hccl_tools.common.record import Row
from hccl_tools.table import formats, rank_table
from hccl_tools.table.view import View

_NPU = re.compile(r"hccn_tool -i (\d{1,3}) -ip -g\s+ipaddr: ?([0-9A-Fa-f.:]+)")
_WORKER = re.compile(r"(?:.*/)?([^/]*?(\d+))/[^/]*$")


class Place(Row):
    """A rank, its device, the device's address and its host; empty where the file does not say it."""

    rank: int
    device: int
    address: str
    host: str


class Host(Row):
    """A page of one host: its name, the number in its name, and {device: address}."""

    name: str
    number: int
    addresses: dict[str, str]


def of_tables(papers: dict[str, bytes]) -> list[Place]:
    """The devices of all rank tables among the files; validate_hccl.py says what is wrong with one that is none."""
    found: list[Place] = []
    for name, content in papers.items():
        if not name.endswith(".json") or os.path.basename(name) == "launch.json":
            continue
        table, _ = rank_table.parse(content)
        form, problem = formats.detect(table) if isinstance(table, dict) else ("", None)
        if isinstance(table, dict) and problem is None and form:
            found += _devices(View(table, form))
    return found


def _devices(view: View) -> list[Place]:
    host_of = {place: server.name or "" for server in view.servers for place in server.devices}
    return [
        Place(int(rank), int(device), view.ips[place] or "", host_of.get(place, ""))
        for place, (rank, device) in enumerate(zip(view.ranks, view.ids))
        if rank and device and rank.isdigit() and device.isdigit()
    ]


def of_hosts(papers: dict[str, bytes]) -> list[Host]:
    """The addresses of hosts' devices, as ModelArts keeps them: environment_check/worker-9/npu_info_after.txt."""
    found = []
    for name, content in papers.items():
        addresses = dict(_NPU.findall(content.decode("utf-8", "replace")))
        worker = _WORKER.match(name)
        if addresses and worker:
            found.append(Host(worker[1], int(worker[2]), addresses))
    return found
