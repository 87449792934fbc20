"""Identifies the processes of a job from their logs: the rank, the host and the device of each."""

from __future__ import annotations

from functools import cached_property

from hccl_tools.common import documents
from hccl_tools.common.record import Record
from tools.diagnosis import lives
from tools.logs import owners

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tools.logs.events import Event
    from tools.logs.scan import Findings


class Process:
    """A process of the job, or a rank whose log is not here (`findings` is empty)."""

    def __init__(self, folder: str, pid: int | None) -> None:
        self.folder, self.pid = folder, pid
        self.findings: list[Findings] = []
        self.rank: int | None = None
        self.ranks = 0  # of its largest communicator
        self.host: str | None = None
        self.server: str | None = None  # its host's address
        self.device: int | None = None
        self.address: str | None = None  # its device's
        self.vnics: set[str] = set()  # its device's within its host
        self.groups: dict[str, int] = {}  # its rank in each communicator
        self.place = 0  # of the first of its logs, so that the order of answers is always the same

    @classmethod
    def absent(cls, rank: int, host: str | None) -> Process:
        """A process without any log here."""
        process = cls("", None)
        process.rank, process.host = rank, host
        return process

    @cached_property
    def events(self) -> list[Event]:
        """The events of all its logs, by time; call it when the process has all its logs."""
        found = [event for one in self.findings for event in one.events]
        return sorted(found, key=lambda event: event.time or 0.0)

    def take(self, other: Process) -> None:
        """Takes over the logs of the other one."""
        self.findings = [*self.findings, *other.findings]
        self.rank = other.rank if self.rank is None else self.rank
        self.ranks = max(self.ranks, other.ranks)
        self.__dict__.pop("events", None)

    @property
    def tells_rank(self) -> bool:
        """Whether its own log states which rank it is, with a number that the job's scheduler gave it."""
        return {event.values["rank"] for event in self.events if event.kind == "own_rank"} == {str(self.rank)}

    @property
    def errors(self) -> int:
        """How many lines are errors."""
        return sum(one.errors for one in self.findings)

    @property
    def ended(self) -> float:
        """When the last line of its logs that has a time was written, as far as that is known."""
        times = [event.time for event in self.events]
        times += [time for one in self.findings for time in (one.first, one.last)]
        return max((time for time in times if time is not None), default=0.0)

    @property
    def began(self) -> float | None:
        """When its first error was written, of any kind."""
        return min((one.first for one in self.findings if one.errors and one.first is not None), default=None)


class Job(Record):
    """The processes of one job, and who has which address."""

    processes: list[Process]
    ranks: int  # of the job; 0: no log states it
    others: int  # logs of earlier jobs that were left out
    by_rank: dict[int, Process]
    by_address: dict[str, Process]
    by_place: dict[tuple[str, int], Process]  # a host's name or address, and a device
    by_group: dict[tuple[str, int], Process]
    by_vnic: dict[tuple[str, str], Process]  # a host's name or address, and an address that only this host knows
    witnesses: list[Process]  # what speaks of ranks without being one: a scheduler, what started the ranks

    @property
    def complete(self) -> bool:
        """Whether the number of ranks is known, and each has a log."""
        return 0 < self.ranks <= len(self.by_rank) and all(
            rank in self.by_rank and bool(self.by_rank[rank].findings) for rank in range(self.ranks)
        )

    def hosts(self) -> set[str]:
        """The names of the hosts."""
        return {process.host for process in self.processes if process.host}


def job_of(findings: list[Findings], files: dict[str, bytes], launch: dict[str, Any] | None = None) -> Job:
    """The job that the logs are of; of several, the one that began last.

    files: rank tables and the like, by name, see lives.py.  launch: launch.json, if it is a run of ours.
    """
    own, witnesses = _processes(findings)
    for process in [*own, *witnesses]:
        _identify(process)
    mine, earlier = lives.newest(own)
    found = _with_their_output(mine)
    lives.by_launch(found, launch)
    lives.by_hosts(found, lives.of_hosts(files))
    lives.by_links(found)
    found, twice = _without_doubles(found)
    others = sum(len(process.findings) for process in earlier) + twice
    return _indexed(found, others, launch, files, witnesses)


def _processes(findings: list[Findings]) -> tuple[list[Process], list[Process]]:
    """The processes that may be ranks, and those that only speak of ranks: a scheduler, what started the ranks."""
    groups: dict[tuple[str, str, int | None, int | None], list[Findings]] = {}
    for one in findings:
        if one.kind == owners.HOST or one.owner.role == owners.SYSTEM:
            continue
        # a rank's own folder has the plogs of its children, too
        pid = one.owner.pid if one.kind != owners.TRAIN and one.owner.rank is None else None
        role = one.owner.role if one.kind == owners.TRAIN else owners.RANK
        groups.setdefault((role, one.owner.folder, pid, one.owner.rank if pid is None else None), []).append(one)
    found: list[Process] = []
    witnesses: list[Process] = []
    for (role, folder, pid, rank), logs in groups.items():
        output = [one for one in logs if one.kind == owners.TRAIN]
        plogs = [one for one in logs if one.kind != owners.TRAIN]
        for life in [*(lives.of_process(plogs) if plogs else []), *([output] if output else [])]:
            process = Process(folder, pid)
            process.findings = life
            speaks = role != owners.RANK or (rank is None and _speaks_of_ranks(process))
            (witnesses if speaks else found).append(process)
            process.place = len(found) + len(witnesses)
    return found, witnesses


def _speaks_of_ranks(process: Process) -> bool:
    """Whether it is the log of a scheduler, or of what starts ranks, under any name."""
    return any(
        event.kind in ("registered", "node_lost", "worker_ended", "first_failure", "started")
        for event in process.events
    )


def _with_their_output(processes: list[Process]) -> list[Process]:
    """What a rank printed belongs to its process, where its folder, the rank's number or the PID shows it."""
    output = [process for process in processes if all(one.kind == owners.TRAIN for one in process.findings)]
    others = [process for process in processes if any(one.kind != owners.TRAIN for one in process.findings)]
    by_folder: dict[str, list[Process]] = {}
    by_rank: dict[int, list[Process]] = {}
    by_pid: dict[int, list[Process]] = {}
    for process in others:
        by_folder.setdefault(process.folder, []).append(process)
        if process.rank is not None:
            by_rank.setdefault(process.rank, []).append(process)
        if process.pid is not None:
            by_pid.setdefault(process.pid, []).append(process)
    kept = []
    for process in output:
        rank = process.rank
        same = by_rank.get(rank, []) if rank is not None else by_folder.get(process.folder, [])
        if len(same) != 1:
            pids = {pid for one in process.findings for pid in one.pids}
            same = [one for pid in pids for one in by_pid.get(pid, []) if rank is None or one.rank in (None, rank)]
        if len(same) == 1:
            same[0].take(process)
        else:
            kept.append(process)
    return others + kept


def _identify(process: Process) -> None:
    owner = process.findings[0].owner
    process.host, process.rank = owner.host, owner.rank
    for event in process.events:
        if event.kind == "own_rank" and process.rank is None and not event.values.get("pid"):
            process.rank = int(event.values["rank"])
        elif event.kind == "vnic":
            process.vnics.add(event.values["ip"])
        elif event.kind == "registered" and event.values.get("ranks"):
            process.ranks = int(event.values["ranks"])
        if event.kind not in ("member", "member_failed", "together"):
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


def _without_doubles(processes: list[Process]) -> tuple[list[Process], int]:
    """Of several processes with one rank the last to end, and the number of the others' logs: those of another job.

    Only ranks that the logs tell count: in names of files each host may begin with 0.
    """
    last: dict[int, Process] = {}
    told = {id(process) for process in processes if process.ranks or process.tells_rank}
    for process in processes:
        if process.rank is not None and id(process) in told:
            other = last.get(process.rank)
            if other is None or other.ended < process.ended:
                last[process.rank] = process
    kept = [one for one in processes if one.rank is None or id(one) not in told or last[one.rank] is one]
    return kept, sum(len(one.findings) for one in processes) - sum(len(one.findings) for one in kept)


def _indexed(
    processes: list[Process],
    others: int,
    launch: dict[str, Any] | None,
    files: dict[str, bytes],
    witnesses: list[Process],
) -> Job:
    by_rank: dict[int, Process] = {}
    for process in processes:
        if process.rank is not None:
            by_rank.setdefault(process.rank, process)
    absent, listed = _named_only(by_rank, launch, files)
    by_address: dict[str, Process] = {}
    by_place: dict[tuple[str, int], Process] = {}
    by_group: dict[tuple[str, int], Process] = {}
    by_vnic: dict[tuple[str, str], Process] = {}
    twice: set[str] = set()
    for process in [*processes, *absent]:
        if process.address:
            if process.address in by_address:
                twice.add(process.address)
            by_address[process.address] = process
        hosts = [host for host in (process.host, process.server) if host]
        if process.device is not None:
            by_place.update(((host, process.device), process) for host in hosts)
        by_vnic.update(((host, address), process) for host in hosts for address in process.vnics)
        by_group.update(((group, rank), process) for group, rank in process.groups.items())
    for address in twice:  # an address of two devices states nothing
        del by_address[address]
    return Job(
        processes=processes,
        ranks=max([listed, *(process.ranks for process in [*processes, *witnesses])]),
        others=others,
        by_rank=by_rank,
        by_address=by_address,
        by_place=by_place,
        by_group=by_group,
        by_vnic=by_vnic,
        witnesses=witnesses,
    )


def _named_only(
    by_rank: dict[int, Process], launch: dict[str, Any] | None, files: dict[str, bytes]
) -> tuple[list[Process], int]:
    """Ranks of the rank table and of launch.json without any log, and how many ranks these list.

    All ranks get what these state of them.
    """
    rows = lives.of_tables(files)
    for row in documents.objects(launch, "ranks"):
        if isinstance(row.get("rank"), int) and isinstance(row.get("device"), int):
            host = str(row.get("host") or (launch or {}).get("host") or "")
            rows.append(lives.Place(row["rank"], row["device"], "", host))
    absent = []
    for rank, device, address, host in rows:
        process = by_rank.get(rank)
        if process is None:
            process = by_rank[rank] = Process.absent(rank, None)
            absent.append(process)
        process.address = process.address or address or None
        process.device = device if process.device is None else process.device
        process.host = process.host or host or None
    return absent, len({row[0] for row in rows})
