"""The processes of a job, from what their logs say: which rank each one is, on which host and device."""

from __future__ import annotations

from functools import cached_property

from hccl_tools.common.record import Record
from tools.diagnosis import papers
from tools.logs import kinds
from tools.logs.events import FOLLOWS
from tools.logs.scan import Seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tools.logs.events import Event
    from tools.logs.scan import Findings

_APART = 600  # seconds: logs of one job overlap in time, but for clocks that differ and ranks that start late


class Process:
    """A process of the job, or a rank of which no log is here (`findings` is empty)."""

    def __init__(self, folder: str, pid: int | None) -> None:
        self.folder, self.pid = folder, pid
        self.findings: list[Findings] = []
        self.rank: int | None = None
        self.ranks = 0  # of its largest communicator
        self.host: str | None = None
        self.server: str | None = None  # its host's address
        self.device: int | None = None
        self.address: str | None = None  # its device's
        self.groups: dict[str, int] = {}  # its rank in each communicator
        self.place = 0  # of the first of its logs, so that the order of answers is always the same

    @cached_property
    def events(self) -> list[Event]:
        """Those of all its logs, by time; for when it has all its logs."""
        found = [event for one in self.findings for event in one.events]
        return sorted(found, key=lambda event: event.time or 0.0)

    @property
    def error(self) -> Seen | None:
        """Its first error that does not follow from a wait."""
        errors = [one.error for one in self.findings if one.error]
        if not errors:
            errors = [seen for seen in map(_raised, self.findings) if seen]
        return min(errors, key=lambda seen: (seen.time is None, seen.time or 0.0), default=None)

    @property
    def errors(self) -> int:
        """How many lines are errors."""
        return sum(one.errors for one in self.findings)

    @property
    def ended(self) -> float:
        """When the last line of its logs was written."""
        return max((one.last for one in self.findings if one.last is not None), default=0.0)

    @property
    def began(self) -> float | None:
        """When its first error was written, of any kind."""
        return min((one.first for one in self.findings if one.errors and one.first is not None), default=None)


def _raised(one: Findings) -> Seen | None:
    """The exception that ended a program, unless it says that a wait has ended."""
    raised = one.exception
    if raised is None or FOLLOWS.search(raised.text):
        return None
    return Seen(None, raised.row + 1, raised.text)


class Job(Record):
    """The processes of one job, and who has which address."""

    processes: list[Process]
    ranks: int  # of the job; 0: no log says it
    others: int  # logs of earlier jobs that were left out
    by_rank: dict[int, Process]
    by_address: dict[str, Process]
    by_place: dict[tuple[str, int], Process]  # a host's name or address, and a device
    by_group: dict[tuple[str, int], Process]

    def hosts(self) -> set[str]:
        """The names of the hosts."""
        return {process.host for process in self.processes if process.host}


def job_of(findings: list[Findings], files: dict[str, bytes], launch: dict[str, Any] | None = None) -> Job:
    """The job that the logs are of; of several, the one that ended last.

    files: rank tables and the like, by name, see papers.py.  launch: launch.json, if it is a run of ours.
    """
    mine, others = _newest(findings)
    processes: dict[tuple[str, int | None, int | None], Process] = {}
    for one in mine:
        if one.kind == kinds.HOST:
            continue
        # a rank's own folder has the plogs of its children, too
        pid = one.owner.pid if one.kind != kinds.TRAIN and one.owner.rank is None else None
        key = (one.owner.folder, pid, one.owner.rank if pid is None else None)
        process = processes.setdefault(key, Process(one.owner.folder, pid))
        process.place = process.place or len(processes)
        process.findings.append(one)
    found = _with_their_output(list(processes.values()))
    for process in found:
        _identify(process)
    _place_by_launch(found, launch)
    _place_by_hosts(found, papers.of_hosts(files))
    found, twice = _without_doubles(found)
    return _indexed(found, others + twice, launch, files)


def _newest(findings: list[Findings]) -> tuple[list[Findings], int]:
    """The logs that overlap in time with the newest one, and the number of the others; those without times are kept."""
    timed = [(_begun(one), one.last if one.last is not None else one.first, one) for one in findings if one.first]
    plogs = sorted(
        (row for row in timed if row[2].kind in (kinds.PLOG, kinds.DEVICE)), key=lambda row: -(row[1] or 0.0)
    )
    if not plogs:
        return findings, 0
    begin = plogs[0][0] or 0.0
    left_out = []
    for first, last, one in plogs:
        if (last or 0.0) + _APART < begin:
            left_out.append(one)
        else:
            begin = min(begin, first or begin)
    old = {id(one) for one in left_out}
    return [one for one in findings if id(one) not in old], len(old)


def _begun(one: Findings) -> float:
    first = one.first or 0.0
    return first if one.owner.begun is None else min(first, one.owner.begun)


def _with_their_output(processes: list[Process]) -> list[Process]:
    """What a rank printed belongs to its process, where the folder or the rank's number shows it."""
    output = [process for process in processes if all(one.kind == kinds.TRAIN for one in process.findings)]
    others = [process for process in processes if any(one.kind != kinds.TRAIN for one in process.findings)]
    by_folder: dict[str, list[Process]] = {}
    by_rank: dict[int, list[Process]] = {}
    for process in others:
        by_folder.setdefault(process.folder, []).append(process)
        rank = process.findings[0].owner.rank
        if rank is not None:
            by_rank.setdefault(rank, []).append(process)
    kept = []
    for process in output:
        rank = process.findings[0].owner.rank
        same = by_rank.get(rank, []) if rank is not None else by_folder.get(process.folder, [])
        if len(same) == 1:
            same[0].findings += process.findings
        else:
            kept.append(process)
    return others + kept


def _identify(process: Process) -> None:
    owner = process.findings[0].owner
    process.host, process.rank = owner.host, owner.rank
    for event in process.events:
        if event.kind not in ("member", "together"):
            continue
        said = event.values
        ranks = int(said["ranks"]) if said.get("ranks", "").isdigit() else 0
        rank = int(said["rank"])
        if "group" in said:
            process.groups[said["group"]] = rank
        if ranks >= process.ranks and owner.rank is None:
            process.rank = rank
        process.ranks = max(process.ranks, ranks)
        process.server = said.get("server", process.server)
        process.address = said.get("device_ip", process.address)
        if said.get("device", "").isdigit():
            process.device = int(said["device"])


def _place_by_launch(processes: list[Process], launch: dict[str, Any] | None) -> None:
    """Device and host of the ranks of a run of ours."""
    listed = launch.get("ranks") if launch else None
    rows = {row.get("rank"): row for row in listed if isinstance(row, dict)} if isinstance(listed, list) else {}
    for process in processes:
        row = rows.get(process.rank)
        if row and launch:
            process.host = str(row.get("host") or launch.get("host") or "") or process.host
            process.device = row["device"] if isinstance(row.get("device"), int) else process.device


def _place_by_hosts(processes: list[Process], hosts: list[papers.Host]) -> None:
    """Host and address of a device, from ModelArts' page of each worker: worker N has ranks 8N to 8N+7."""
    by_number = {host.number: host for host in hosts}
    for process in processes:
        if process.rank is None or process.device is None or not hosts:
            continue
        host = by_number.get(process.rank // len(hosts[0].addresses))
        if host:
            process.host = host.name
            process.address = process.address or host.addresses.get(str(process.device))


def _without_doubles(processes: list[Process]) -> tuple[list[Process], int]:
    """Of several processes with one rank the last to end, and the number of the others' logs: those of another job."""
    last: dict[int, Process] = {}
    for process in processes:
        if process.rank is not None and process.ranks:
            other = last.get(process.rank)
            if other is None or other.ended < process.ended:
                last[process.rank] = process
    kept = [one for one in processes if one.rank is None or not one.ranks or last[one.rank] is one]
    return kept, sum(len(one.findings) for one in processes) - sum(len(one.findings) for one in kept)


def _indexed(processes: list[Process], others: int, launch: dict[str, Any] | None, files: dict[str, bytes]) -> Job:
    by_rank: dict[int, Process] = {}
    for process in processes:
        if process.rank is not None:
            by_rank.setdefault(process.rank, process)
    absent = _named_only(by_rank, launch, files)
    by_address: dict[str, Process] = {}
    by_place: dict[tuple[str, int], Process] = {}
    by_group: dict[tuple[str, int], Process] = {}
    twice: set[str] = set()
    for process in [*processes, *absent]:
        if process.address:
            if process.address in by_address:
                twice.add(process.address)
            by_address[process.address] = process
        for host in (process.host, process.server):
            if host and process.device is not None:
                by_place[(host, process.device)] = process
        for group, rank in process.groups.items():
            by_group[(group, rank)] = process
    for address in twice:  # an address of two devices says nothing
        del by_address[address]
    return Job(
        processes=processes,
        ranks=max([len(by_rank) if absent else 0, *(process.ranks for process in processes)]),
        others=others,
        by_rank=by_rank,
        by_address=by_address,
        by_place=by_place,
        by_group=by_group,
    )


def _named_only(by_rank: dict[int, Process], launch: dict[str, Any] | None, files: dict[str, bytes]) -> list[Process]:
    """Ranks of the rank table and of launch.json without any log; all get what these say of them."""
    rows = papers.of_tables(files)
    listed = launch.get("ranks") if launch else None
    for row in listed if isinstance(listed, list) else []:
        if isinstance(row, dict) and isinstance(row.get("rank"), int) and isinstance(row.get("device"), int):
            host = str(row.get("host") or (launch or {}).get("host") or "")
            rows.append(papers.Place(row["rank"], row["device"], "", host))
    absent = []
    for rank, device, address, host in rows:
        process = by_rank.get(rank)
        if process is None:
            process = by_rank[rank] = Process("", None)
            process.rank = rank
            absent.append(process)
        process.address = process.address or address or None
        process.device = device if process.device is None else process.device
        process.host = process.host or host or None
    return absent
