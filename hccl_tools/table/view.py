"""A rank table as the rules look at it: its servers, and its devices as columns.

A table of 100,000 ranks is judged in well under a second, so the values stand in plain lists, one
entry a device, over which Python's built-in functions go; the JSON pointer of a device is put
together only when there is something to say about it.
"""

from functools import cached_property

from hccl_tools.table.address import packed

# format -> key of its servers, of a server's name, of its devices, and of a device's address
_KEYS = {
    "v1.0": ("server_list", "server_id", "device", "device_ip"),
    "v1.2": ("server_list", "server_id", "device", "device_ip"),
    "cross_cluster": ("server_list", "server_id", "device", "device_ip"),
    "v1.1": ("node_list", "node_addr", "ranks", "rank_ip"),
    "legacy_lab": ("instance_list", "server_id", "devices", "device_ip"),
    "legacy_cloud": ("instance_list", "server_id", "devices", "device_ip"),
    "v2.0": ("", "", "", ""),
}


class Server:
    """One server: JSON pointer, the entry itself, its name (None if it has none), its devices.

    devices are positions in the columns of the View.
    """

    __slots__ = ("devices", "entry", "name", "pointer")

    def __init__(self, pointer, entry, name, devices):
        self.pointer, self.entry, self.name, self.devices = pointer, entry, name, devices


class View:
    """The well-formed part of a table: what is of the wrong type is left out, or None in a column.

    devices: the devices' objects.  owners: the pointer of the entry in which each stands, indices:
    its number there.  ids, ips, ranks: what they say, as text.
    """

    def __init__(self, table, name):
        self.table = table
        self.format = name
        self.list_key, self.name_key, self.device_key, self.ip_key = _KEYS[name]
        self.servers, self.devices, self.owners, self.indices = [], [], [], []
        legacy = name.startswith("legacy")
        parents = (
            [(f"/group_list/{n}", group) for n, group in objects(table, "group_list")] if legacy else [("", table)]
        )
        for base, parent in parents:
            self._add_servers(f"{base}/{self.list_key}/", parent)
        self.ids = texts(self.devices, "device_id")
        self.ips = texts(self.devices, self.ip_key)
        if name == "legacy_lab":  # an entry is a rank here, not a server
            self.ranks = [text(server.entry, "rank_id") for server in self.servers for _ in server.devices]
            self.servers = _merged(self.servers)
        else:
            self.ranks = texts(self.devices, "rank_id")

    def _add_servers(self, base, parent):
        for number, entry in objects(parent, self.list_key):
            pointer, first = f"{base}{number}", len(self.devices)
            for index, device in objects(entry, self.device_key):
                self.devices.append(device)
                self.indices.append(index)
                self.owners.append(pointer)
            devices = range(first, len(self.devices))
            self.servers.append(Server(pointer, entry, text(entry, self.name_key), devices))

    def place(self, device):
        """JSON pointer of the device at this position of the columns."""
        return f"{self.owners[device]}/{self.device_key}/{self.indices[device]}"

    def rank_place(self, device):
        """JSON pointer of its rank_id."""
        return (self.owners[device] if self.format == "legacy_lab" else self.place(device)) + "/rank_id"

    @cached_property
    def id_numbers(self):
        """device_id of every device as int, None where it is no number."""
        return list(map(number, self.ids))

    @cached_property
    def rank_numbers(self):
        """rank_id of every device as int, None where it is no number."""
        return list(map(number, self.ranks))

    @cached_property
    def rank_blocks(self):
        """(first rank, last rank, server) of every server that has ranks, in the order of their ranks."""
        blocks, numbers = [], self.rank_numbers
        for server in self.servers:
            ranks = [numbers[device] for device in server.devices]
            if None in ranks:
                ranks = [rank for rank in ranks if rank is not None]
            if ranks:
                blocks.append((min(ranks), max(ranks), server))
        return sorted(blocks, key=lambda block: block[:2])

    @cached_property
    def addresses(self):
        """Every address as three columns: the device it belongs to, its text, its bytes (b"" if none).

        A device_ip may be a list with commas (hcomm, topoinfo_ranktableConcise.cc).
        """
        plain = all(ip is not None and "," not in ip for ip in self.ips)
        owners, found = (range(len(self.ips)), self.ips) if plain else _split(self.ips)
        return owners, found, list(map(packed, found))


def _split(ips):
    owners, found = [], []
    for device, ip in enumerate(ips):
        for address in () if ip is None else ip.split(","):
            owners.append(device)
            found.append(address)
    return owners, found


def _merged(entries):
    """One Server for all entries of one name."""
    named = {}
    for entry in entries:
        key = entry.pointer if entry.name is None else ("named", entry.name)
        if key in named:
            named[key].devices.extend(entry.devices)
        else:
            named[key] = Server(entry.pointer, entry.entry, entry.name, list(entry.devices))
    return list(named.values())


def objects(parent, key):
    """(index, entry) of the entries of the list `parent[key]` that are objects; none if it is no list."""
    entries = parent.get(key) if isinstance(parent, dict) else None
    if not isinstance(entries, list):
        return ()
    return [(index, entry) for index, entry in enumerate(entries) if type(entry) is dict]


def text(entry, key):
    """entry[key] if it is a text, else None."""
    value = entry.get(key)
    return value if isinstance(value, str) else None


def texts(entries, key):
    """The column of entry[key], None where that is no text."""
    column = [entry.get(key) for entry in entries]
    if {str, type(None)}.issuperset(map(type, column)):
        return column
    return [value if isinstance(value, str) else None for value in column]


def number(digits):
    """The int that a text of at most ten ASCII digits stands for, else None."""
    good = isinstance(digits, str) and len(digits) < 11 and digits.isascii() and digits.isdigit()
    return int(digits) if good else None
