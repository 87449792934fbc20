"""Which ranks a job has on which host and device, where only launch.json, pages of hosts or other ranks say it."""

from __future__ import annotations

from hccl_tools.common import any_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tools.diagnosis.papers import Host
    from tools.diagnosis.processes import Process


def by_launch(processes: list[Process], launch: dict[str, Any] | None) -> None:
    """Device and host of the ranks of a run of ours."""
    rows = {row.get("rank"): row for row in any_json.objects(launch, "ranks")}
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
    """Where no log tells a rank: that of the table of links, which may be of a smaller communicator."""
    if any(process.rank is not None for process in processes):
        return
    said = [{event.values["own"] for event in one.events if event.kind == "link"} for one in processes]
    numbers = [int(next(iter(own))) for own in said if len(own) == 1]
    if len(set(numbers)) == len(numbers):
        for process, own in zip(processes, said):
            process.rank = int(next(iter(own))) if len(own) == 1 else None
