"""The places of a table's ranks, as columns, and which of these ranks moved in another table.

Two tables are compared by the facts about a rank's place that both have:

servers   its server, and the number of its device.
hosts     its server, and its position among the server's ranks: a list of hosts has no more.
networks  its inner network, and its local_id there: two tables of version 2.0.
ranks     only its number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hccl_tools.common.documents import JsonObject
from hccl_tools.compare.side import Side
from hccl_tools.convert.job import Job
from hccl_tools.table.address import packed
from hccl_tools.table.view import names_of

SERVERS, HOSTS, NETWORKS, RANKS = "servers", "hosts", "networks", "ranks"
_IDENTITY = {
    SERVERS: ("rank_id", "device_id"),
    HOSTS: ("rank_id",),
    NETWORKS: ("rank_id", "local_id"),
    RANKS: ("rank_id",),
}


class Places:
    """The devices of a table as columns, one entry per device in the table's order.

    keys: what a device has in common with itself in another table: (server, number), of which both depend on `by`.
    """

    def __init__(self, side: Side, renamed: dict[str, str], by: str) -> None:
        job = side.job
        self.identity = _IDENTITY[by]
        self.entries_of_devices = job.devices
        self.ranks = [int(device["rank_id"]) for device in job.devices]
        own = [_name(server) for server in job.servers] if by in (SERVERS, HOSTS) else []
        listed = [renamed.get(name, name) for name in own]
        self.entries: dict[str, JsonObject] = dict(zip(listed, job.servers))
        if own:
            self.names = [listed[owner] for owner in job.owners]
        else:
            self.names = [_network(device)[0] for device in job.devices] if by == NETWORKS else [""] * len(job.devices)
        self.devices = self._numbers(job, by)
        self.keys = list(zip(self.names, self.devices))
        self.index = {key: n for n, key in enumerate(self.keys)}
        self.by_rank = {rank: n for n, rank in enumerate(self.ranks)}
        self.servers: dict[str, list[int]] = {name: [] for name in listed or self.names}
        for n, name in enumerate(self.names):
            self.servers[name].append(n)

    def _numbers(self, job: Job, by: str) -> list[int]:
        if by == SERVERS:
            return [_number(device) for device in job.devices]
        if by == NETWORKS:
            return [_network(device)[1] for device in job.devices]
        if by == RANKS:
            return self.ranks
        found, counted = list(self.ranks), dict.fromkeys(self.names, 0)
        for n in sorted(range(len(self.ranks)), key=self.ranks.__getitem__):
            found[n] = counted[self.names[n]]
            counted[self.names[n]] += 1
        return found

    def device_of_rank(self, rank: int) -> int:
        """The number of its device."""
        return self.devices[self.by_rank[rank]]


def _name(server: JsonObject) -> str:
    return str(server["server_id"]).strip()


def _network(device: JsonObject) -> tuple[str, int]:
    """(the name of its innermost network, its local_id), of a table of version 2.0."""
    levels = device["level_list"]
    return str(levels[0]["net_instance_id"]) if levels else "", int(device["local_id"])


def _by(a: Side, b: Side) -> str:
    """By what both can be compared."""
    sides = (a, b)
    if all(side.has_servers for side in sides):
        return SERVERS if all("device_id" in device for side in sides for device in side.job.devices) else HOSTS
    if any(side.job.source != "v2.0" for side in sides):
        return RANKS
    places = ([_network(device) for device in side.job.devices] for side in sides)
    return NETWORKS if all(len(set(each)) == len(each) for each in places) else RANKS


def _number(device: JsonObject) -> int:
    """Its number; several ranks of a server may be on its processors, as device -1, and are told by their ranks."""
    number = int(device["device_id"])
    return number if number >= 0 else -1 - int(device["rank_id"])


def of(a: Side, b: Side) -> tuple[Places, Places, dict[str, str], str]:
    """The places of both, under the names of the second; {name of a server in the first: in the second}; by what."""
    by = _by(a, b)
    renamed = {SERVERS: _renamed, HOSTS: _known_by}[by](a, b) if by in (SERVERS, HOSTS) else {}
    return Places(a, renamed, by), Places(b, {}, by), renamed, by


def _known_by(a: Side, b: Side) -> dict[str, str]:
    """Servers that have another name in a list of hosts, and are known by it: by an address in addition to the name."""
    there = {name: _name(server) for server in b.job.servers for name in names_of(server, _name(server))}
    found = {_name(server): names_of(server, _name(server)) for server in a.job.servers}
    known = {name: next((there[each] for each in names if each in there), name) for name, names in found.items()}
    return {name: other for name, other in known.items() if name != other}


def _renamed(a: Side, b: Side) -> dict[str, str]:
    """Servers that have another name and the same devices at the same addresses."""
    here, there = _by_name(a), _by_name(b)
    new = {_cards(devices): name for name, devices in there.items() if name not in here}
    found = {name: new.get(_cards(devices), "") for name, devices in here.items() if name not in there and new}
    return {name: other for name, other in found.items() if other and _cards(here[name])}


def _by_name(side: Side) -> dict[str, list[JsonObject]]:
    return {str(server["server_id"]).strip(): devices for server, devices in side.job.groups()}


def _cards(devices: Iterable[JsonObject]) -> frozenset[tuple[str, bytes]]:
    """(number, address) of each device; empty if one has no address: numbers alone are the same everywhere."""
    cards = [(each["device_id"], packed(each.get("device_ip", "").partition(",")[0])) for each in devices]
    return frozenset(cards) if all(address for _, address in cards) else frozenset()


def common(here: Places, there: Places) -> list[tuple[int, tuple[str, int]]]:
    """(position in the first, key) of the devices that both tables have."""
    return [(n, key) for n, key in enumerate(here.keys) if key in there.index]


def moved(here: Places, there: Places) -> Iterator[int]:
    """The ranks that left a device which the second table lacks, for one which the first table lacks, in order."""
    for rank in sorted(here.by_rank):
        if rank in there.by_rank:
            before, after = here.keys[here.by_rank[rank]], there.keys[there.by_rank[rank]]
            if before not in there.index and after not in here.index:
                yield rank


def runs_of_moves(here: Places, there: Places, ranks: Iterable[int]) -> Iterator[tuple[str, str, list[int]]]:
    """(server before, server after, ranks) of consecutive ranks that moved together."""
    run: list[int] = []
    ends: tuple[str, str] = ("", "")
    for rank in ranks:
        pair = here.names[here.by_rank[rank]], there.names[there.by_rank[rank]]
        if run and (pair != ends or rank != run[-1] + 1):
            yield (*ends, run)
            run = []
        ends = pair
        run.append(rank)
    if run:
        yield (*ends, run)
