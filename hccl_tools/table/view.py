"""A rank table as the rules need it: its servers, and its devices as columns.

The rules judge a table of 100,000 ranks in well under a second.  So the values are in plain lists, one entry per
device, which Python's built-in functions process.  A device's JSON pointer is built only for a problem.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

from hccl_tools.common.numbers import whole_number
from hccl_tools.table.address import packed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Entry = dict[str, Any]

# format -> key of its servers, of a server's name, of its devices, and of a device's address
_SERVERS = ("server_list", "server_id", "device", "device_ip")
_INSTANCES = ("instance_list", "server_id", "devices", "device_ip")
_KEYS = {
    "v1.0": _SERVERS,
    "v1.2": _SERVERS,
    "cross_cluster": _SERVERS,
    "v1.1": ("node_list", "node_addr", "ranks", "rank_ip"),
    "legacy_lab": _INSTANCES,
    "legacy_cloud": _INSTANCES,
    "v2.0": ("", "", "", ""),
}


class Server:
    """One server: JSON pointer, the entry itself, its name, and its devices as positions in the View's columns."""

    __slots__ = ("devices", "entry", "name", "pointer")

    def __init__(self, pointer: str, entry: Entry, name: str | None, devices: Sequence[int]) -> None:
        self.pointer = pointer
        self.entry = entry
        self.name = name
        self.devices = devices


class View:
    """The well-formed part of a table: a value of the wrong type is left out, or None in a column.

    The columns have one entry per device.  devices: the devices' objects.  owners: the pointer of the entry
    that lists each, indices: its number in that list.  ids, ips, ranks: their texts.
    """

    def __init__(self, table: Entry, name: str) -> None:
        self.table = table
        self.format = name
        self.list_key, self.name_key, self.device_key, self.ip_key = _KEYS[name]
        self.servers: list[Server] = []
        self.devices: list[Entry] = []
        self.owners: list[str] = []
        self.indices: list[int] = []
        legacy = name.startswith("legacy")
        for base, parent in listed(table, "group_list") if legacy else [("", table)]:
            self._add_servers(base, parent)
        self.ids = texts(self.devices, "device_id")
        self.ips = texts(self.devices, self.ip_key)
        if self.list_key == "server_list" and "" in self.ips:  # HCCL takes it for not set
            self.ips = [ip or None for ip in self.ips]
        if name == "legacy_lab":  # here an entry is a rank, not a server
            self.ranks = [text(server.entry, "rank_id") for server in self.servers for _ in server.devices]
            self.servers = _merged(self.servers)
        else:
            self.ranks = texts(self.devices, "rank_id")

    def _add_servers(self, base: str, parent: Entry) -> None:
        for pointer, entry in listed(parent, self.list_key, base):
            first = len(self.devices)
            for index, device in objects(entry, self.device_key):
                self.devices.append(device)
                self.indices.append(index)
                self.owners.append(pointer)
            devices = range(first, len(self.devices))
            self.servers.append(Server(pointer, entry, text(entry, self.name_key), devices))

    def place(self, device: int, key: str = "") -> str:
        """JSON pointer of the device at this position of the columns, or of its `key`."""
        place = f"{self.owners[device]}/{self.device_key}/{self.indices[device]}"
        return f"{place}/{key}" if key else place

    def rank_place(self, device: int) -> str:
        """JSON pointer of its rank_id."""
        return f"{self.owners[device]}/rank_id" if self.format == "legacy_lab" else self.place(device, "rank_id")

    def ip_place(self, device: int) -> str:
        """JSON pointer of its address."""
        return self.place(device, self.ip_key)

    @cached_property
    def id_numbers(self) -> list[int | None]:
        """device_id of every device, None where it is not a number."""
        return _numbers(self.ids)

    @cached_property
    def rank_numbers(self) -> list[int | None]:
        """rank_id of every device, None where it is not a number."""
        return _numbers(self.ranks)

    @cached_property
    def rank_blocks(self) -> list[tuple[int, int, Server]]:
        """(first rank, last rank, server) of every server that has ranks, in the order of their ranks."""
        blocks, numbers = [], self.rank_numbers
        for server in self.servers:
            ranks = [rank for rank in map(numbers.__getitem__, server.devices) if rank is not None]
            if ranks:
                blocks.append((min(ranks), max(ranks), server))
        return sorted(blocks, key=lambda block: block[:2])

    @cached_property
    def addresses(self) -> tuple[Sequence[int], list[str], list[bytes]]:
        """Every address as three columns: the device it belongs to, its text, its bytes (b"" if malformed).

        A device_ip may be a list with commas (hcomm, topoinfo_ranktableConcise.cc).
        """
        owners: Sequence[int] = range(len(self.ips))
        found = [ip for ip in self.ips if ip is not None]
        if len(found) < len(self.ips) or "," in "".join(found):
            pairs = [(n, each) for n, ip in enumerate(self.ips) if ip is not None for each in ip.split(",")]
            owners, found = [n for n, _ in pairs], [each for _, each in pairs]
        return owners, found, list(map(packed, found))


def _numbers(column: Iterable[str | None]) -> list[int | None]:
    return [None if text is None else whole_number(text) for text in column]


def _merged(entries: Iterable[Server]) -> list[Server]:
    """One Server for all entries of one name."""
    named: dict[object, tuple[Server, list[int]]] = {}
    for entry in entries:
        key = entry.pointer if entry.name is None else ("named", entry.name)
        named.setdefault(key, (entry, []))[1].extend(entry.devices)
    return [Server(first.pointer, first.entry, first.name, devices) for first, devices in named.values()]


def objects(parent: object, key: str) -> list[tuple[int, Entry]]:
    """(index, entry) of the entries of the list `parent[key]` that are objects; none if it is not a list."""
    entries = parent.get(key) if isinstance(parent, dict) else None
    if not isinstance(entries, list):
        return []
    return [(index, entry) for index, entry in enumerate(entries) if type(entry) is dict]


def listed(parent: object, key: str, base: str = "") -> list[tuple[str, Entry]]:
    """(JSON pointer, entry) of the same entries; base: the pointer of `parent`."""
    return [(f"{base}/{key}/{index}", entry) for index, entry in objects(parent, key)]


def text(entry: Entry, key: str) -> str | None:
    """entry[key] if it is a text, otherwise None."""
    value = entry.get(key)
    return value if isinstance(value, str) else None


def names_of(entry: Entry, own: str | None) -> list[str]:
    """By what a server may be known: its addresses beside its name, that of the host first, then `own`, its name.

    host_ip is in HCCL's manual, and operators write it.  server_ip is in MindSpore's tables across clusters.
    """
    beside = (text(entry, key) for key in ("host_ip", "server_ip"))
    found = [address for address in beside if address and packed(address)]
    return [*found, own.strip()] if own else found


def texts(entries: Iterable[Entry], key: str) -> list[str | None]:
    """The column of entry[key], None where that is not a text."""
    column = [entry.get(key) for entry in entries]
    if {str, type(None)}.issuperset(map(type, column)):  # the usual case
        return column
    return [value if isinstance(value, str) else None for value in column]


def number(value: object) -> int | None:
    """The whole number that a text is, otherwise None."""
    return whole_number(value) if isinstance(value, str) else None
