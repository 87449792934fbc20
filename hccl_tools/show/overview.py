"""What there is to see in a rank table, without saying how: servers, and runs of servers alike."""

from collections import namedtuple

from hccl_tools.check import verdict
from hccl_tools.common.problem import errors
from hccl_tools.common.words import one_line
from hccl_tools.table import rank_table

MAX_DETAILED = 32  # devices; with more of them a line a device is no longer taken in at a glance

# headline: the table in one line; warnings: what is wrong with it, as lines; servers: all, by rank;
# runs: lists of servers alike that follow one another; group_of: see `_group_of`.
Overview = namedtuple("Overview", "headline warnings servers runs group_of")
Server = namedtuple("Server", "name devices pod")  # pod: super_pod_id or None
Device = namedtuple("Device", "number address rank super_device_id")  # texts as they stand, or "-"


def of(table, generation=None):
    """The Overview of a parsed table, good or bad; without servers where the table has no server_list."""
    pods = _pods(table)
    servers = [_server(server, entry, pods) for server, entry in _entries(table)]
    servers = sorted((server for server in servers if server.devices), key=lambda server: _first_rank(server))
    ranks = sum(len(server.devices) for server in servers)
    headline = f"version {_shown(table, 'version')}, servers: {len(servers)}, ranks: {ranks}"
    if pods:
        headline += f", super pods: {len(set(pods.values()))}"
    found = errors(verdict.check(table, generation)) if servers else []
    count = f"{len(found)} problem{'s' if len(found) > 1 else ''}"
    warnings = [f"{count}; see `python hccl_tools/validate_hccl.py FILE`"] if found else []
    return Overview(headline, warnings, servers, _runs(servers), _group_of(generation))


def _entries(table):
    entries = dict(rank_table.objects(table, "server_list"))
    for server in rank_table.servers(table):
        yield server, entries[int(server.pointer.rpartition("/")[2])]


def _server(server, entry, pods):
    devices = [
        Device(*(_shown(device, key) for key in ("device_id", "device_ip", "rank_id", "super_device_id")))
        for _, device in rank_table.objects(entry, "device")
    ]
    return Server(_shown(entry, "server_id"), devices, pods.get(server.server_id))


def _pods(table):
    """{server_id: super_pod_id} as far as the table has them."""
    return {
        server["server_id"]: _shown(pod, "super_pod_id")
        for _, pod in rank_table.objects(table, "super_pod_list")
        for _, server in rank_table.objects(pod, "server_list")
        if isinstance(server.get("server_id"), str)
    }


def _shown(entry, key):
    value = entry.get(key) if isinstance(entry, dict) else None
    return "-" if value is None else one_line(value)


def _first_rank(server):
    ranks = [number(device.rank) for device in server.devices]
    return min((rank for rank in ranks if rank is not None), default=0)


def number(text):
    """The number that a text of digits is, else None."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 11 else None


# ---- alike ---------------------------------------------------------------------------------------


def _runs(servers):
    """`servers` cut into lists of servers with the same devices, whose ranks go on without a gap."""
    runs = []
    for server in servers:
        if runs and _alike(runs[-1][-1], server):
            runs[-1].append(server)
        else:
            runs.append([server])
    return runs


def _alike(before, server):
    if [device.number for device in before.devices] != [device.number for device in server.devices]:
        return False
    kinds = [
        [(d.address == "-", ":" in d.address, d.super_device_id == "-") for d in s.devices] for s in (before, server)
    ]
    if before.pod != server.pod or kinds[0] != kinds[1]:
        return False
    steps = {_distance(one.rank, other.rank) for one, other in zip(before.devices, server.devices)}
    return steps == {len(server.devices)}


def _distance(one, other):
    one, other = number(one), number(other)
    return None if one is None or other is None else other - one


def ranges(texts):
    """Numbers in few words: 0,1,2,3,8 becomes "0-3,8"; the order stays, other texts stand alone."""
    parts = []
    for text in texts:
        value = number(text)
        if parts and value is not None and parts[-1][1] is not None and value == parts[-1][1] + 1:
            parts[-1][1:] = [value]
        else:
            parts.append([text, value])
    return ",".join(first if str(last) == first or last is None else f"{first}-{last}" for first, last in parts)


def addresses(servers):
    """The addresses of these servers' devices in few words."""
    found = [device.address for server in servers for device in server.devices if device.address != "-"]
    if not found:
        return "-"
    return found[0] if len(found) == 1 else f"{found[0]} - {found[-1]}"


def _group_of(generation):
    """A function device id -> group: 910A wires 0-3 and 4-7, an A3 NPU is two devices."""
    size = {"910A": 4, "A3": 2}.get(generation)
    return lambda text: number(text) // size if size and number(text) is not None else 0
