"""The view of a rank table in show_hccl.py: its servers, with consecutive servers that are alike in one line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from hccl_tools.check import verdict
from hccl_tools.common.documents import JsonObject
from hccl_tools.common.language import tr
from hccl_tools.common.numbers import whole_number
from hccl_tools.common.problem import errors
from hccl_tools.common.record import Record, Row
from hccl_tools.common.words import clauses, listed, one_line
from hccl_tools.table.view import objects

MAX_DETAILED = 32  # devices; a reader cannot take in more lines than that at a glance
_NONE = "-"


class Device(Row):
    """A device, in the texts of the table; "-" where it has none."""

    number: str
    address: str
    rank: str
    super_device_id: str
    local_id: str = "-"


class Server(Record):
    """A server that has devices; pod: its super_pod_id, None where it is in no super pod.

    Of a version 2.0 table, which has no servers, it is the innermost network of the ranks.
    """

    name: str
    devices: list[Device]
    pod: str | None


class Overview(Record):
    """The data of a table that is shown.

    version:  the table's, as text.        headline: the table in one line.
    warnings: what is wrong with it, as lines.
    servers:  all, in the order of ranks.  runs: lists of consecutive servers that are alike.
    group_of: the group of a device, from its number.
    ranks:    of a version 2.0 table its ranks for --json, whose `servers` are networks; otherwise None.
    """

    version: str
    headline: str
    warnings: list[str]
    servers: list[Server]
    runs: list[list[Server]]
    group_of: Callable[[str], int]
    ranks: list[JsonObject] | None = None


def of(table: object, generation: str | None = None) -> Overview:
    """The Overview of a parsed table, good or bad; without servers where it has none of the lists that are shown."""
    pods = {
        text_of(server, "server_id"): text_of(pod, "super_pod_id")
        for _, pod in objects(table, "super_pod_list")
        for _, server in objects(pod, "server_list")
    }
    lists_ranks = bool(objects(table, "rank_list"))
    found = list(_networks(table)) if lists_ranks else list(_servers(table, pods))
    servers = sorted((server for server in found if server.devices), key=_first_rank)
    counts = {"version": text_of(table, "version"), "ranks": sum(len(server.devices) for server in servers)}
    if lists_ranks:
        headline = tr("version {version}, inner networks: {number}, ranks: {ranks}", number=len(servers), **counts)
    else:
        headline = tr("version {version}, servers: {servers}, ranks: {ranks}", servers=len(servers), **counts)
    if pods:
        headline += tr(", super pods: {number}", number=len(set(pods.values())))
    faults = errors(verdict.check(table, generation)) if servers else []
    warnings = [verdict.advice(faults)] if faults else []
    return Overview(
        version=text_of(table, "version"),
        headline=headline,
        warnings=warnings,
        servers=servers,
        runs=_runs(servers),
        group_of=_group_of(generation),
        ranks=list(_documents(table)) if lists_ranks else None,
    )


def document(view: Overview, file: str) -> JsonObject:
    """The Overview for --json; None is what the table has not.  file: what the user named."""
    head = {"file": file, "version": _known(view.version)}
    if view.ranks is not None:
        counts = {"servers": None, "ranks": len(view.ranks)}
        return {**head, **counts, "server_list": [], "rank_list": view.ranks, "warnings": view.warnings}
    servers = [
        {
            "server_id": _known(server.name),
            "super_pod_id": _known(server.pod),
            "devices": [_document_of(device) for device in server.devices],
        }
        for server in view.servers
    ]
    ranks = sum(len(server.devices) for server in view.servers)
    return {**head, "servers": len(servers), "ranks": ranks, "server_list": servers, "warnings": view.warnings}


def _document_of(device: Device) -> JsonObject:
    return {
        "rank_id": _number(device.rank),
        "device_id": _number(device.number),
        "device_ip": _known(device.address),
        "super_device_id": _number(device.super_device_id),
    }


def _known(text: str | None) -> str | None:
    return None if text == "-" else text


def _number(text: str) -> int | str | None:
    """A number where it is one; a bad table may have any text."""
    number = whole_number(text)
    return _known(text) if number is None else number


# (the list, a server's name, its devices, the address of one): versions 1.0 and 1.2, and version 1.1
_LISTS = (("server_list", "server_id", "device", "device_ip"), ("node_list", "node_addr", "ranks", "rank_ip"))


def _servers(table: object, pods: Mapping[str, str]) -> Iterator[Server]:
    for key, name_key, devices_key, address_key in _LISTS:
        keys = ("device_id", address_key, "rank_id", "super_device_id")
        for _, entry in objects(table, key):
            devices = [Device(*(text_of(device, each) for each in keys)) for _, device in objects(entry, devices_key)]
            name = text_of(entry, name_key)
            yield Server(name=name, devices=devices, pod=pods.get(name))


def _networks(table: object) -> Iterator[Server]:
    """The innermost networks of a list of ranks, which are the first ones, with the ranks in each."""
    found: dict[str, list[Device]] = {}
    for _, rank in objects(table, "rank_list"):
        levels = _levels(rank)
        texts = (text_of(rank, "device_id"), _addresses(levels), text_of(rank, "rank_id"))
        device = Device(*texts, "-", text_of(rank, "local_id"))
        found.setdefault(levels[0].name if levels else _NONE, []).append(device)
    for name, devices in found.items():
        devices.sort(key=lambda device: whole_number(device.rank) or 0)
        yield Server(name=name, devices=devices, pod=None)


def _first_rank(server: Server) -> int:
    ranks = [whole_number(device.rank) for device in server.devices]
    return min((rank for rank in ranks if rank is not None), default=0)


# ---- alike ---------------------------------------------------------------------------------------


def _runs(servers: Iterable[Server]) -> list[list[Server]]:
    """`servers` cut into lists of servers with the same devices, whose ranks go on without a gap."""
    runs: list[list[Server]] = []
    for server in servers:
        if runs and _alike(runs[-1][-1], server):
            runs[-1].append(server)
        else:
            runs.append([server])
    return runs


def _alike(before: Server, server: Server) -> bool:
    if before.pod != server.pod or _kinds(before) != _kinds(server):
        return False
    steps = {_distance(one.rank, other.rank) for one, other in zip(before.devices, server.devices)}
    return steps == {len(server.devices)}


def _kinds(server: Server) -> list[tuple[str, bool, bool, bool]]:
    return [(d.number, d.address == "-", ":" in d.address, d.super_device_id == "-") for d in server.devices]


def _distance(one: str, other: str) -> int | None:
    first, second = whole_number(one), whole_number(other)
    return None if first is None or second is None else second - first


def ranges(texts: Iterable[str]) -> str:
    """Numbers in few words: 0,1,2,3,8 becomes "0-3,8"; the order stays, other texts stay as they are."""
    parts: list[tuple[str, int | None]] = []  # the first text of a run, the number of its last
    for text in texts:
        value = whole_number(text)
        if parts and value is not None and parts[-1][1] == value - 1:
            parts[-1] = parts[-1][0], value
        else:
            parts.append((text, value))
    return ",".join(first if last is None or str(last) == first else f"{first}-{last}" for first, last in parts)


def addresses(servers: Iterable[Server]) -> str:
    """The addresses of these servers' devices in few words."""
    found = [device.address for server in servers for device in server.devices if device.address != "-"]
    if not found:
        return "-"
    return found[0] if len(found) == 1 else f"{found[0]} - {found[-1]}"


def _group_of(generation: str | None) -> Callable[[str], int]:
    """A function device id -> group: 910A wires 0-3 and 4-7, an A3 NPU is two devices."""
    size = {"910A": 4, "A3": 2}.get(generation or "")
    return lambda text: (whole_number(text) or 0) // size if size else 0


class Level(Row):
    """A network of a rank: its layer and its name as texts, and (kind, address) of the rank there."""

    layer: str
    name: str
    addresses: Sequence[tuple[str, str]]

    def words(self) -> str:
        """The layer, and the address there: of several only how many of which kind."""
        if len(self.addresses) == 1:
            return f"{self.layer}: {self.addresses[0][1]}"
        kinds = dict.fromkeys(kind for kind, _ in self.addresses)
        counted = (f"{sum(kind == each for each, _ in self.addresses)} {kind}" for kind in kinds)
        return f"{self.layer}: {listed(counted) or _NONE}"


def _levels(rank: JsonObject) -> list[Level]:
    """The networks of an entry of rank_list, in their order."""
    return [
        Level(
            text_of(level, "net_layer"),
            text_of(level, "net_instance_id"),
            [(text_of(each, "addr_type"), text_of(each, "addr")) for _, each in objects(level, "rank_addr_list")],
        )
        for _, level in objects(rank, "level_list")
    ]


def _addresses(found: Iterable[Level]) -> str:
    """The addresses on all layers, in few words."""
    return clauses(*(level.words() for level in found)) or _NONE


def _documents(table: object) -> Iterator[JsonObject]:
    """The ranks of the table for --json, in their order; None is what an entry has not."""
    entries = sorted((entry for _, entry in objects(table, "rank_list")), key=_rank)
    for entry in entries:
        networks = [
            {
                "net_layer": level.get("net_layer"),
                "net_instance_id": level.get("net_instance_id"),
                "addresses": [each.get("addr") for _, each in objects(level, "rank_addr_list")],
            }
            for _, level in objects(entry, "level_list")
        ]
        yield {**{key: entry.get(key) for key in ("rank_id", "device_id", "local_id")}, "networks": networks}


def _rank(entry: JsonObject) -> int:
    number = entry.get("rank_id")
    return number if isinstance(number, int) else 0


def text_of(entry: object, key: str) -> str:
    """entry[key] as a text that a terminal may get; "-" where there is none."""
    value = entry.get(key) if isinstance(entry, dict) else None
    return _NONE if value is None else one_line(value)
