"""Determines which logs are of one process, and which processes are of one job, by folders, PIDs, starts and ranks.

CANN writes what a process did (run/plog) at its start and what failed (debug/plog) at its end, maybe days later.  So a
gap in time does not separate processes.  CANN makes one file of each kind per process, and begins another only when the
file is full.  So a second file of the same kind is from another process that got the same PID.

Also finds the host and device of each rank if only launch.json, pages of hosts or other ranks show it.
"""

from __future__ import annotations

import os
import re

from hccl_tools.common import documents
from hccl_tools.common.grouping import grouped
from hccl_tools.common.record import Row
from hccl_tools.table import formats, rank_table
from hccl_tools.table.view import View
from tools.logs import owners

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tools.diagnosis.processes import Process
    from tools.logs.scan import Findings

_FULL = 1 << 20  # bytes: the smallest size at which CANN goes on in another file
_MOMENT = 60.0  # seconds from a line to the next, where one file goes on in another
_APART = 600.0  # seconds without any line: another job may begin after that
_LONGEST_WAIT = 1836.0 + _APART  # HCCL_EXEC_TIMEOUT's default: ranks that waited speak that much later
_ZONES = 86400.0  # clocks of hosts may be in any time zone
_KIND = re.compile(r"(?:^|/)(debug|run|security|device-\d+)/")
_ATTEMPT = re.compile(r"^(.*?)(?<![^/])attempt_(\d{1,7})(?:/|$)")  # torchrun's folder of a start of all ranks
_NAMES_OF_ALL = ("", "hccl_world_group")  # communicators that every job has
_NPU = re.compile(r"hccn_tool -i (\d{1,3}) -ip -g\s+ipaddr: ?([0-9A-Fa-f.:]+)")
_WORKER = re.compile(r"(?:.*/)?([^/]*?(\d+))/[^/]*$")


def begun(one: Findings) -> float:
    """When a log was begun, in seconds: by its name or by its first line."""
    first = one.first or 0.0
    if one.owner.begun is None:
        return first
    return min(first, one.owner.begun) if first else one.owner.begun


def _ended(one: Findings) -> float:
    return max(one.last or 0.0, one.first or 0.0, begun(one))


def _is_start(one: Findings) -> bool:
    """Whether it is the log that a process begins at its start."""
    return _kind(one) == "run" or any(event.kind in ("member", "together") for event in one.events)


def _kind(one: Findings) -> str:
    found = _KIND.search(one.path)
    return found[1] if found else ""


def of_process(logs: list[Findings]) -> list[list[Findings]]:
    """The logs of one PID in one folder, or of a rank's own folder, a list for each process that had it."""
    by_pid = grouped((one.owner.pid, one) for one in logs)
    found = [life for same in by_pid.values() for life in _of_pid(same)]
    return found if len(found) < 2 or len(by_pid) < 2 else _with_children(found)


def _of_pid(logs: list[Findings]) -> list[list[Findings]]:
    found: list[list[Findings]] = []
    last_of: dict[str, Findings] = {}
    for one in sorted(logs, key=lambda log: (begun(log), not _is_start(log), log.path)):
        kind = _kind(one)
        before = last_of.get(kind)
        again = before is not None and before.size < _FULL and begun(one) > _ended(before) + _MOMENT
        earlier = found and _kind(one) == "run" and "run" not in last_of and begun(one) > max(map(_ended, found[-1]))
        if not found or again or earlier:
            found.append([])
            last_of = {}
        found[-1].append(one)
        last_of[kind] = one
    return found


def _with_children(found: list[list[Findings]]) -> list[list[Findings]]:
    """Those of a rank's folder: its children have plogs, too; a child is begun after its rank and before the next."""
    found.sort(key=lambda life: min(map(begun, life)))
    starts = [any(event.kind == "member" for one in life for event in one.events) for life in found]
    joined: list[list[Findings]] = []
    led = end = 0.0
    for life, is_rank in zip(found, starts):
        begin = min(map(begun, life))
        alone = not any(starts) and begin > end + _LONGEST_WAIT
        before = not led and any(starts) and joined and begin > end + _APART
        if not joined or (is_rank and led) or alone or before:
            joined.append([])
            end = 0.0
        led = max(led, begin if is_rank else 0.0)
        joined[-1] += life
        end = max(end, *map(_ended, life))
    return joined


# --- which processes are of the newest job ----------------------------------------------------------------------------


def newest(processes: list[Process]) -> tuple[list[Process], list[Process]]:
    """The processes of the job that began last, and those of earlier ones; processes without times are kept."""
    timed, kept = [], []
    repeated = _repeated(processes)
    for process in processes:
        if id(process) in repeated:
            continue
        logs = [one for one in process.findings if one.kind in (owners.PLOG, owners.DEVICE) and begun(one)]
        if logs:
            timed.append((min(map(begun, logs)), max(map(_ended, logs)), process))
        else:
            kept.append(process)
    groups = _epochs(timed)
    earlier = [process for process in processes if id(process) in repeated]
    if not groups:
        return kept, earlier
    job = groups[-1]
    for group in reversed(groups[:-1]):
        if _belongs(group, job):
            job = [*group, *job]
        else:
            earlier += [process for _, _, process in group]
    mine = {id(process) for _, _, process in job} | {id(process) for process in kept}
    return [process for process in processes if id(process) in mine], earlier


def _repeated(processes: list[Process]) -> set[int]:
    """Those of attempts after which torchrun began another one, whose ranks have said something."""
    named = [(found, process) for process in processes for found in [_ATTEMPT.match(process.folder)] if found]
    last: dict[str, int] = {}
    for found, process in named:
        if any(one.size for one in process.findings):
            last[found[1]] = max(last.get(found[1], 0), int(found[2]))
    return {id(process) for found, process in named if int(found[2]) < last.get(found[1], 0)}


def _epochs(timed: list[tuple[float, float, Process]]) -> list[list[tuple[float, float, Process]]]:
    """Processes whose times overlap, or nearly so."""
    groups: list[list[tuple[float, float, Process]]] = []
    end = 0.0
    for row in sorted(timed, key=lambda row: (row[0], row[2].place)):
        if not groups or row[0] > end + _APART:
            groups.append([])
        groups[-1].append(row)
        end = max(end, row[1])
    return groups


def _belongs(group: list[tuple[float, float, Process]], job: list[tuple[float, float, Process]]) -> bool:
    """Whether processes that fell silent long before the others began are of their job all the same."""
    mine, others = [row[2] for row in group], [row[2] for row in job]
    if _named(mine, _communicators) & _named(others, _communicators):
        return True
    gap = min(row[0] for row in job) - max(row[1] for row in group)
    here, there = _named(mine, _rank), _named(others, _rank)
    if here & there or gap > _ZONES:
        return False
    sizes = {process.ranks for process in [*mine, *others] if process.ranks}
    if len(sizes) > 1 or (sizes and len(there) == max(sizes)):
        return False
    if len(here) == len(mine):
        return len(there) == len(others)
    return gap < _LONGEST_WAIT and len(mine) < len(others)


def _named(processes: list[Process], names: Callable[[Process], set[object]]) -> set[object]:
    return {name for process in processes for name in names(process)}


def _communicators(process: Process) -> set[object]:
    return {group for group in process.groups if group not in _NAMES_OF_ALL}


def _rank(process: Process) -> set[object]:
    return set() if process.rank is None else {process.rank}


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
