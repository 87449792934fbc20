"""Finds the host and device of each rank if only launch.json, pages of hosts or other ranks show it."""

from __future__ import annotations

import os
import re

from hccl_tools.common import documents
from hccl_tools.common.record import Row
from hccl_tools.table import formats, rank_table
from hccl_tools.table.view import View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tools.diagnosis.processes import Process

_NPU = re.compile(r"hccn_tool -i (\d{1,3}) -ip -g\s+ipaddr: ?([0-9A-Fa-f.:]+)")
_WORKER = re.compile(r"(?:.*/)?([^/]*?(\d+))/[^/]*$")


def by_launch(processes: list[Process], launch: dict[str, Any] | None) -> None:
    """Fills in the device and host of each rank in a run of ours."""
    rows = {row.get("rank"): row for row in documents.objects(launch, "ranks")}
    for process in processes:
        row = rows.get(process.rank)
        if row and launch:
            process.host = str(row.get("host") or launch.get("host") or "") or process.host
            process.device = row["device"] if isinstance(row.get("device"), int) else process.device


def by_hosts(processes: list[Process], hosts: list[Host]) -> None:
    """Host and address of a device, from ModelArts' page of each worker: worker N has ranks 8N to 8N+7."""
    by_number = {host.number: host for host in hosts}
    for process in processes:
        if process.rank is None or process.device is None or not hosts:
            continue
        host = by_number.get(process.rank // len(hosts[0].addresses))
        if host:
            process.host = host.name
            process.address = process.address or host.addresses.get(str(process.device))


def by_links(processes: list[Process]) -> None:
    """Fills in ranks that no log states, from the table of links, which may be of a smaller communicator."""
    if any(process.rank is not None for process in processes):
        return
    said = [{event.values["own"] for event in one.events if event.kind == "link"} for one in processes]
    numbers = [int(next(iter(own))) for own in said if len(own) == 1]
    if len(set(numbers)) == len(numbers):
        for process, own in zip(processes, said):
            process.rank = int(next(iter(own))) if len(own) == 1 else None


# ---- Files that state which rank and address a device has: rank tables of any version, and ModelArts' pages of hosts.


class Place(Row):
    """A rank, its device, the device's address and its host; empty where the file does not state it."""

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
    """The devices of all rank tables among the files; validate_hccl.py reports files that are not rank tables."""
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
