"""Where the ranks of a table are, as columns, and which of them went elsewhere in another table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hccl_tools.common.documents import JsonObject
from hccl_tools.compare.side import Side
from hccl_tools.table.address import packed


class Places:
    """The devices of a table as columns, one entry per device in the table's order.

    keys: what a device has in common with itself in another table: server and number.  Where one of the tables has no
    servers this is the rank, under the server "".
    """

    def __init__(self, side: Side, renamed: dict[str, str], by_rank: bool) -> None:
        job = side.job
        self.identity = ("rank_id",) if by_rank else ("rank_id", "device_id")
        self.entries_of_devices = job.devices
        self.ranks = [int(device["rank_id"]) for device in job.devices]
        own = [] if by_rank else [str(server["server_id"]).strip() for server in job.servers]
        listed = [renamed.get(name, name) for name in own]
        self.entries: dict[str, JsonObject] = dict(zip(listed, job.servers))
        self.names = [""] * len(job.devices) if by_rank else [listed[owner] for owner in job.owners]
        self.devices = self.ranks if by_rank else [_number(device) for device in job.devices]
        self.keys = list(zip(self.names, self.devices))
        self.index = {key: n for n, key in enumerate(self.keys)}
        self.by_rank = {rank: n for n, rank in enumerate(self.ranks)}
        self.servers: dict[str, list[int]] = {name: [] for name in listed or [""]}
        for n, name in enumerate(self.names):
            self.servers[name].append(n)

    def device_of_rank(self, rank: int) -> int:
        """The number of its device."""
        return self.devices[self.by_rank[rank]]


def _number(device: JsonObject) -> int:
    """Its number; several ranks of a server may be on its processors, as device -1, and are told by their ranks."""
    number = int(device["device_id"])
    return number if number >= 0 else -1 - int(device["rank_id"])


def of(a: Side, b: Side) -> tuple[Places, Places, dict[str, str]]:
    """The places of both, under the names of the second, and {name of a server in the first: in the second}."""
    by_rank = not (a.has_servers and b.has_servers)
    renamed = {} if by_rank else _renamed(a, b)
    return Places(a, renamed, by_rank), Places(b, {}, by_rank), renamed


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
