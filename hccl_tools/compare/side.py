"""One side of a comparison: the job that a table or a list of hosts describes, and the places of its ranks as columns.

Two tables are compared by the facts about a rank's place that both have:

servers   its server, and the number of its device.
hosts     its server, and its position among the server's ranks: a list of hosts has no more.
networks  its inner network, and its local_id there: two tables of version 2.0.
ranks     only its number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from hccl_tools.check import schema_check, verdict
from hccl_tools.common.documents import JsonObject
from hccl_tools.common.language import tr
from hccl_tools.common.problem import errors
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import USAGE, Refusal
from hccl_tools.common.words import one_line, some
from hccl_tools.convert import filling, reading
from hccl_tools.convert.job import HOSTS, NO_SERVER, Job
from hccl_tools.table import formats
from hccl_tools.table.address import packed
from hccl_tools.table.view import names_of

GROUPS = {"super_pod_list": "super_pod_id", "cluster_list": "cluster_id"}  # of servers, and what names one
_UNREAD = ("host_nic_ip",)  # HCCL never reads it, and tools write it or do not
SERVERS, BY_HOSTS, NETWORKS, RANKS = "servers", "hosts", "networks", "ranks"
_IDENTITY = {
    SERVERS: ("rank_id", "device_id"),
    BY_HOSTS: ("rank_id",),
    NETWORKS: ("rank_id", "local_id"),
    RANKS: ("rank_id",),
}


class Side(Record):
    """A table to compare.

    name:    its file, as messages name it.
    table:   the document.
    job:     what it states; its servers have super_pod_id and cluster_id, too.
    head:    the values of the table itself, with its groups of servers as {id: what else is known of it}.
    warning: a line about what is wrong with it, or empty.
    """

    name: str
    table: JsonObject
    job: Job
    head: JsonObject
    warning: str

    @property
    def has_servers(self) -> bool:
        """Whether the table states on which server each rank is."""
        return NO_SERVER not in self.job.owners


def of(data: bytes, name: str) -> Side:
    """The Side of a table's bytes.  A bad table is taken if its ranks and devices are clear.  Raises Refusal."""
    if reading.is_list_of_hosts(data):
        return _of_hosts(data, name)
    table, problems = verdict.check_bytes(data)
    if table is None or (bad := errors(problems)) and not _has_form(table):
        raise reading.refusal(USAGE, errors(problems), name)
    form, _ = formats.detect(table)
    if bad and form.startswith("legacy"):  # HCCL numbers its ranks by all that is in it
        raise reading.refusal(USAGE, errors(problems), name)
    job = reading.of_table(table)
    if bad and not _is_clear(job):
        raise reading.refusal(USAGE, errors(problems), name)
    head = {key: value for key, value in job.head.items() if key not in GROUPS}
    if "status" in table:
        head["status"] = table["status"]
    servers = [{key: value for key, value in server.items() if key not in _UNREAD} for server in job.servers]
    for key, name_key in GROUPS.items():
        if key in job.head:
            head[key] = _described(job.head[key], name_key)
            servers = _members(servers, job.head[key], name_key)
    job = job.replace(servers=servers)
    return Side(name=name, table=table, job=job, head=head, warning=verdict.advice(bad) if bad else "")


def _of_hosts(data: bytes, name: str) -> Side:
    try:
        job, lost = reading.read(data, name)
    except Refusal as refusal:
        raise Refusal(USAGE, *refusal.lines) from refusal
    hosts = [(server["server_id"], len(devices)) for server, devices in job.groups()]
    warning = tr("not compared: {keys}", keys=some(lost, len(lost))) if lost else ""
    return Side(name=name, table={HOSTS: hosts}, job=job, head={}, warning=warning)


def with_places(side: Side, facts: filling.Facts) -> Side:
    """The side, whose ranks get the servers and devices that they lack from the facts.  Raises Refusal."""
    try:
        return side.replace(job=filling.placed(side.job, facts))
    except Refusal as refusal:
        raise Refusal(USAGE, *(f"{one_line(side.name)}: {line}" for line in refusal.lines)) from refusal


def _has_form(table: object) -> bool:
    form, foreign = formats.detect(table)
    return not foreign and not schema_check.problems_by_name(table, "rank_table_" + form)


def _is_clear(job: Job) -> bool:
    """Whether each rank is on one device, and each server and device is there once."""
    places = {(owner, device["device_id"]) for owner, device in zip(job.owners, job.devices)}
    processors = any(device["device_id"] == "-1" for device in job.devices)
    ranks = {device["rank_id"] for device in job.devices}
    names = {server["server_id"] for server in job.servers}
    one_place_each = len(places) == len(job.devices) or NO_SERVER in job.owners or processors
    return one_place_each and len(ranks) == len(job.devices) and len(names) == len(job.servers)


def _described(groups: Sequence[JsonObject], name_key: str) -> JsonObject:
    """{id: its keys but the id and the servers}"""
    return {
        group[name_key]: {key: value for key, value in group.items() if key not in (name_key, "server_list")}
        for group in groups
    }


def _members(servers: Sequence[JsonObject], groups: Sequence[JsonObject], name_key: str) -> list[JsonObject]:
    """The servers with the group that each is in."""
    group_of = {each["server_id"]: group[name_key] for group in groups for each in group["server_list"]}
    return [
        {**server, name_key: group_of[server["server_id"]]} if server["server_id"] in group_of else server
        for server in servers
    ]


class Places:
    """The devices of a table as columns, one entry per device in the table's order.

    keys: what a device has in common with itself in another table: (server, number), of which both depend on `by`.
    """

    def __init__(self, side: Side, renamed: dict[str, str], by: str) -> None:
        job = side.job
        self.identity = _IDENTITY[by]
        self.entries_of_devices = job.devices
        self.ranks = [int(device["rank_id"]) for device in job.devices]
        own = [_name(server) for server in job.servers] if by in (SERVERS, BY_HOSTS) else []
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
        return SERVERS if all("device_id" in device for side in sides for device in side.job.devices) else BY_HOSTS
    if any(side.job.source != "v2.0" for side in sides):
        return RANKS
    places = ([_network(device) for device in side.job.devices] for side in sides)
    return NETWORKS if all(len(set(each)) == len(each) for each in places) else RANKS


def _number(device: JsonObject) -> int:
    """Its number; several ranks of a server may be on its processors, as device -1, and are told by their ranks."""
    number = int(device["device_id"])
    return number if number >= 0 else -1 - int(device["rank_id"])


def places_of(a: Side, b: Side) -> tuple[Places, Places, dict[str, str], str]:
    """The places of both, under the names of the second; {name of a server in the first: in the second}; by what."""
    by = _by(a, b)
    renamed = {SERVERS: _renamed, BY_HOSTS: _known_by}[by](a, b) if by in (SERVERS, BY_HOSTS) else {}
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
