"""Reads from HCCL's time-outs who waits for whom: arrows from a process to the one that it waited for."""

from __future__ import annotations

from hccl_tools.common.grouping import grouped
from hccl_tools.common.record import Record, Row
from tools.diagnosis.processes import Job, Process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.logs.events import Event

_LOCAL = ("local", "4294967295")  # HCCL's words for "this device itself"
_UNKNOWN = ("unknown",)
CONNECT_SECONDS = 120  # HCCL_CONNECT_TIMEOUT's default
EXEC_SECONDS = 1836  # HCCL_EXEC_TIMEOUT's default since CANN 8


class Target(Row):
    """The target of a wait: a process of the job, or the known facts about another one."""

    process: Process | None
    rank: int | None
    address: str | None
    device: int | None


class Wait(Record):
    """A process waited for another that did not come."""

    source: Process
    target: Target
    kind: str
    time: float | None
    tag: str = ""  # the collective's
    group: str = ""  # its communicator
    index: int | None = None  # which of them, in its communicator
    tls: str = ""
    text: str = ""


def waits_of(job: Job) -> list[Wait]:
    """All waits, in the order of the processes, each once."""
    found: list[Wait] = []
    for process in job.processes:
        mine: dict[object, Wait] = {}
        for wait in _of_process(job, process):
            mine.setdefault((wait.kind == "notify", wait.target), wait)
        found += mine.values()
    return found


def _of_process(job: Job, process: Process) -> list[Wait]:
    found: list[Wait] = []
    notify: list[Event] = []  # the lines of one failed task: base, then para, then group
    for event in process.events:
        if event.kind == "notify":
            found += _notify(job, process, notify)
            notify = [event]
        elif event.kind in ("remote", "group", "operation") and notify:
            notify.append(event)
        elif event.kind in ("link", "transport", "p2p", "root", "aicpu", "detected"):
            found += _link(job, process, event)
    return found + _notify(job, process, notify)


def _notify(job: Job, process: Process, lines: list[Event]) -> list[Wait]:
    if not lines:
        return []
    said = {name: value for event in reversed(lines) for name, value in event.values.items()}
    rank = said.get("rank", "unknown")
    target = _by_rank(job, process, rank, said.get("group"))
    index = int(said["index"]) if said.get("index") else None
    tag, _, group = said.get("tag", "").partition("_")
    first = lines[0]
    wait = Wait(
        source=process,
        target=target,
        kind="notify",
        time=first.time,
        tag=tag,
        group=said.get("group") or group,
        index=index,
        text=first.text,
    )
    return [wait]


def _link(job: Job, process: Process, event: Event) -> list[Wait]:
    said = event.values
    if event.kind == "link" and said["status"].strip() == "connected":
        return []
    rank, address, device = said.get("rank"), said.get("ip"), said.get("device")
    found = None
    if event.kind == "p2p":
        host = process.server or process.host
        found = job.by_place.get((host or "", int(said["device"])))
        address = None
    elif address and device is not None:
        found = job.by_place.get((address, int(device)))
    elif address:
        found = job.by_address.get(address) or _within_host(job, process, address)
    if event.kind == "root":
        rank, address = "0", None if found else address
    known = _by_rank(job, process, rank, None) if rank is not None else None
    if (
        found is None
        and known
        and (
            address is None
            or known.process is None
            or known.process.address in (None, address)
            or _is_other_network(process, said)
        )
    ):
        found = known.process
    if found is None and event.kind == "aicpu":
        return []
    target = Target(
        found,
        found.rank if found else (known.rank if known else None),
        None if found else address,
        None if found or device is None else int(device),
    )
    if target.process is process and event.kind != "aicpu":
        return []
    return [
        Wait(source=process, target=target, kind=event.kind, time=event.time, tls=said.get("tls", ""), text=event.text)
    ]


def _within_host(job: Job, process: Process, address: str) -> Process | None:
    """Who listens at an address that only the process's host knows: cards of one host have a network of their own."""
    hosts = [host for host in (process.server, process.host) if host]
    return next((job.by_vnic[(host, address)] for host in hosts if (host, address) in job.by_vnic), None)


def _is_other_network(process: Process, said: dict[str, str]) -> bool:
    """Whether a line names addresses of another network than that of the cards: its own address is not its card's.

    They are those within a host, of the hosts themselves, or of containers.  Then the rank in the line counts.
    """
    own = said.get("own_ip")
    mine = own is not None and process.address is not None and own != process.address
    return mine and said.get("own") == str(process.rank) and len(process.groups) < 2


def _by_rank(job: Job, process: Process, rank: str, group: str | None) -> Target:
    """The process of a rank in a communicator; without one, in the source's largest."""
    if rank in _LOCAL:
        return Target(process, process.rank, None, None)
    if rank in _UNKNOWN or not rank.isdigit():
        return Target(None, None, None, None)
    number = int(rank)
    found = job.by_group.get((group, number)) if group else None
    if found is None and (group is None or group in process.groups and len(process.groups) == 1):
        found = job.by_rank.get(number)
    return Target(found, found.rank if found else number, None, None)


# --- following them ---------------------------------------------------------------------------------------------------


class End(Record):
    """Where chains of waits lead: to one that does not wait, or into a circle."""

    members: list[object]  # Process, or Target without one; several: they wait for one another
    waiters: list[Process]  # all that lead there, the first to give up first
    direct: list[Wait]


def ends(waits: list[Wait]) -> list[End]:
    """The ends, the one that most processes lead to first.  Each process follows its first wait."""
    follow: dict[int, Wait] = {}
    for wait in sorted(waits, key=lambda one: (one.time is None, one.time or 0.0)):
        if wait.target.process is not None or wait.target[1:] != (None, None, None):
            follow.setdefault(id(wait.source), wait)
    end_of: dict[int, tuple[object, ...]] = {}
    for wait in follow.values():
        _walk(wait.source, follow, end_of)
    groups: dict[object, list[Process]] = {}
    for wait in follow.values():
        end = end_of[id(wait.source)]
        groups.setdefault(end[0] if len(end) == 1 else id(end), []).append(wait.source)  # a circle is found once
    found = []
    direct = grouped((_node(wait), wait) for wait in follow.values())
    for waiters in groups.values():
        members = end_of[id(waiters[0])]
        waiters.sort(key=lambda one: (one.began is None, one.began or 0.0, one.place))
        here = [wait for member in members for wait in direct.get(member, ())]
        found.append(End(members=list(members), waiters=waiters, direct=here))
    found.sort(key=lambda end: (-len(end.waiters), end.waiters[0].began or 0.0, end.waiters[0].place))
    return found


def _node(wait: Wait) -> object:
    return wait.target.process if wait.target.process is not None else wait.target


def _by_number(process: Process) -> tuple[bool, int, int]:
    return process.rank is None, process.rank or 0, process.place


def _walk(start: Process, follow: dict[int, Wait], end_of: dict[int, tuple[object, ...]]) -> None:
    """Writes the end of `start`, and of all on the way, into `end_of`: each process is visited once."""
    way: list[Process] = []
    places: dict[int, int] = {}
    node: object = start
    while isinstance(node, Process) and id(node) in follow and id(node) not in end_of and id(node) not in places:
        places[id(node)] = len(way)
        way.append(node)
        node = _node(follow[id(node)])
    if isinstance(node, Process) and id(node) in end_of:
        end = end_of[id(node)]
    elif isinstance(node, Process) and id(node) in places:
        circle = sorted(way[places[id(node)] :], key=_by_number)
        end = tuple(circle)
    else:
        end = (node,)
    for process in way:
        end_of[id(process)] = end
