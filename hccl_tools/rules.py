"""What a schema cannot say about a rank table: one small function a rule.

Every rule takes the table and its well-formed servers (`rank_table.servers`) and yields Problems
under one code.  `RULES` hold on every chip; `GENERATION_RULES` on one generation only.  Where a
rule comes from stands in its docstring: HCCL's parser, HCCL's manual, or MindSpore's.
"""

import socket

from hccl_tools.problem import Problem, pointer, shown
from hccl_tools.rank_table import objects

GENERATIONS = ("910A", "A2", "A3")


def status_completed(table, _):
    """HCCL re-reads a table with any other status every second for 1,800 s: users see a hang."""
    status = table.get("status")
    if isinstance(status, str) and status != "completed":
        text = f"status is {shown(status)}; HCCL would wait half an hour for it to change"
        yield Problem("bad-status", "/status", text, 'write "completed" once all devices are listed')


def server_count_matches(table, _):
    """HCCL: server_count is the length of server_list."""
    count, listed = table.get("server_count"), table.get("server_list")
    if isinstance(count, str) and isinstance(listed, list) and count != str(len(listed)):
        text = f"server_count is {shown(count)} but server_list has {len(listed)}"
        yield Problem("count-mismatch", "/server_count", text, f'write "{len(listed)}"')


def server_ids_unique(_, servers):
    """HCCL: two entries with one server_id are one server twice."""
    named = [(server.server_id, server.pointer + "/server_id") for server in servers]
    yield from _repeated(named, "duplicate-server", "server_id", "list each server once, with all its devices")


def server_ids_real(_, servers):
    """Tutorials print 10.*.*.* or xx.xx.xx.xx and users copy it; HCCL takes any string."""
    for server in servers:
        if server.server_id is not None and _is_placeholder(server.server_id):
            text = f"server_id {shown(server.server_id)} is a placeholder"
            yield Problem("bad-address", server.pointer + "/server_id", text, "write the host's IP address")


def device_ids_unique(_, servers):
    """HCCL: "device id repeat for one server"."""
    for server in servers:
        named = [(device.device_id, device.pointer + "/device_id") for device in server.devices]
        yield from _repeated(named, "duplicate-device", "device_id", "list each device of a server once")


def device_ids_possible(_, servers):
    """HCCL's newest parser takes device ids below 65."""
    for device in _devices(servers):
        if _number(device.device_id) is not None and _number(device.device_id) > 64:
            text = f"device_id {device.device_id} is too large"
            yield Problem("bad-value", device.pointer + "/device_id", text, "device ids run from 0 to 64")


def device_addresses_real(_, servers):
    """HCCL reads device_ip with inet_pton, each address of a comma-separated list; 0.0.0.0 is none."""
    for device in _devices(servers):
        for address in [] if device.device_ip is None else device.device_ip.split(","):
            if family(address) is None or not any(_packed(address)):
                text = f"device_ip {shown(address)} is not an IPv4 or IPv6 address of a device"
                remedy = f"write what `hccn_tool -i {device.device_id} -ip -g` prints"
                yield Problem("bad-address", device.pointer + "/device_ip", text, remedy)


def device_addresses_unique(_, servers):
    """HCCL: "The IP is used repeatedly."""
    named = [
        (address, device.pointer + "/device_ip")
        for device in _devices(servers)
        for address in ([] if device.device_ip is None else device.device_ip.split(","))
    ]
    yield from _repeated(
        named,
        "duplicate-address",
        "device_ip",
        "give each device its own address (hccn_tool -ip -s)",
        lambda address: _packed(address) or address,
    )


def device_addresses_one_family(_, servers):
    """HCCL, EI0001: with more than one server all ranks use IPv4 or all use IPv6."""
    if len(servers) < 2:
        return
    first = None
    for device in _devices(servers):
        found = family((device.device_ip or "").split(",")[0])
        first = first or found
        if found is not None and found != first:
            text = f"device_ip {shown(device.device_ip)} is not of the same family as the first one"
            yield Problem("mixed-family", device.pointer + "/device_ip", text, "use IPv4 everywhere, or IPv6")


def device_addresses_present(_, servers):
    """HCCL's manual: device_ip may be left out on one server only (A2 and A3)."""
    for device in _devices(servers) if len(servers) > 1 else ():
        if device.device_ip is None:
            text = "device_ip is missing, and the table has several servers"
            remedy = f"add what `hccn_tool -i {device.device_id} -ip -g` prints"
            yield Problem("missing-field", device.pointer, text, remedy)


def ranks_contiguous(_, servers):
    """HCCL: rank ids are 0..N-1, each once."""
    placed = [(device.rank_id, device.pointer + "/rank_id") for device in _devices(servers)]
    yield from _repeated(placed, "duplicate-rank", "rank_id", "number the ranks 0, 1, 2 ... each once")
    ranks = {_number(rank) for rank, _ in placed if _number(rank) is not None}
    missing = sorted(set(range(len(placed))) - ranks)
    beyond = sorted(rank for rank in ranks if rank >= len(placed))
    if beyond and missing:
        text = f"{len(placed)} ranks, so rank_id runs from 0 to {len(placed) - 1}, but rank {missing[0]} is missing"
        remedy = f"number the ranks without a gap; rank {beyond[0]} is too large"
        yield Problem("rank-gap", "/server_list", text, remedy)


def ranks_in_blocks(_, servers):
    """HCCL: the ranks of two servers may not interleave."""
    spans = []
    for server in servers:
        ranks = [_number(device.rank_id) for device in server.devices if _number(device.rank_id) is not None]
        if ranks:
            spans.append((min(ranks), max(ranks), server))
    spans.sort(key=lambda span: span[:2])
    for (_, last, before), (first, _, server) in zip(spans, spans[1:]):
        if first <= last:
            text = f"the ranks of server {shown(server.server_id)} and of {shown(before.server_id)} interleave"
            yield Problem("rank-interleave", server.pointer, text, "give each server one block of ranks")


def ports_possible(table, _):
    """HCCL's manual: ports are 1 to 65535."""
    for number, server in objects(table, "server_list"):
        for index, device in objects(server, "device"):
            for key in ("device_port", "host_port"):
                port = _number(device.get(key))
                if port is not None and not 1 <= port <= 65535:
                    place = pointer("server_list", number, "device", index, key)
                    yield Problem("bad-value", place, f"{key} {port} is no port", "ports run from 1 to 65535")


# ---- one generation only -----------------------------------------------------------------------


# The sets of four devices that HCCL's code takes on 910A; of two it takes any, but only devices
# 0-3 and 4-7 are wired to each other, and the manual forbids pairs across.
_FOURS_910A = (
    (0, 1, 2, 3),
    (4, 5, 6, 7),
    (0, 1, 4, 5),
    (0, 2, 4, 6),
    (0, 3, 4, 7),
    (1, 2, 5, 6),
    (1, 3, 5, 7),
    (2, 3, 6, 7),
)


def devices_of_910a(_, servers):
    """HCCL's manual, 910A: 1, 2, 4 or 8 devices a server, in one group or a legal set of four."""
    for server in servers:
        ids = sorted(n for n in (_number(device.device_id) for device in server.devices) if n is not None)
        problem = group_problem_910a(ids)
        if problem:
            yield Problem("device-group", server.pointer + "/device", *problem)


def group_problem_910a(ids):
    """(text, remedy) when a 910A host cannot run one job on the devices `ids`, else None."""
    named = ",".join(map(str, ids))
    if ids and max(ids) > 7:
        return f"device {max(ids)} does not exist on a 910A host", "its devices are 0 to 7"
    if len(ids) not in (1, 2, 4, 8):
        return f"{len(ids)} devices ({named}) on a 910A host", "take 1, 2, 4 or 8 devices"
    if len(ids) == 2 and ids[0] // 4 != ids[1] // 4:
        return f"devices {named} are not linked on a 910A host", "take both from 0-3 or both from 4-7"
    if len(ids) == 4 and tuple(sorted(ids)) not in _FOURS_910A:
        return (
            f"devices {named} are not linked on a 910A host",
            'take "[0,4)", "[4,8)" or two linked pairs such as 0,1,4,5',
        )
    return None


def servers_alike_on_910a(_, servers):
    """HCCL, 910A: "Ensure that the devices num of each server is consistent"."""
    for server in servers[1:]:
        if len(server.devices) != len(servers[0].devices):
            text = f"{len(server.devices)} devices, but the first server has {len(servers[0].devices)}"
            yield Problem("device-count", server.pointer + "/device", text, "910A: the same number on every server")


def addresses_of_910a(_, servers):
    """HCCL's manual: on 910A device_ip is required, on one server too."""
    for device in _devices(servers) if len(servers) == 1 else ():
        if device.device_ip is None:
            remedy = f"add what `hccn_tool -i {device.device_id} -ip -g` prints"
            yield Problem("missing-field", device.pointer, "device_ip is missing (910A needs it)", remedy)


RULES = (
    status_completed,
    server_count_matches,
    server_ids_unique,
    server_ids_real,
    device_ids_unique,
    device_ids_possible,
    device_addresses_real,
    device_addresses_unique,
    device_addresses_one_family,
    device_addresses_present,
    ranks_contiguous,
    ranks_in_blocks,
    ports_possible,
)

GENERATION_RULES = {
    None: (),
    "910A": (devices_of_910a, servers_alike_on_910a, addresses_of_910a),
    "A2": (),
    "A3": (),
}


# ---- shared --------------------------------------------------------------------------------------


def family(address):
    """socket.AF_INET or AF_INET6 of an address that inet_pton takes, as HCCL does, else None."""
    for candidate in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(candidate, address)
            return candidate
        except (OSError, ValueError, UnicodeError):  # ValueError: a NUL inside
            continue
    return None


def _packed(address):
    """The bytes of an address, so that two spellings of one compare equal; b"" if it is none."""
    return socket.inet_pton(family(address), address) if family(address) else b""


def _is_placeholder(text):
    """Four dotted parts of which one is a run of stars or letters (10.*.*.*, xx.xx.xx.xx, a.b.c.d, but
    not node1.a.example.com), or a description such as "Master节点IP地址"."""
    parts = text.split(".")
    masked = [part for part in parts if set(part) <= {"*"} or _same_letter(part)]
    dotted = len(parts) == 4 and bool(masked) and ("*" in text or all(p.isdigit() or p in masked for p in parts))
    return dotted or not text.isascii()


def _same_letter(part):
    return part.isalpha() and len(set(part.lower())) == 1


def _devices(servers):
    return [device for server in servers for device in server.devices]


def _number(text):
    return int(text) if isinstance(text, str) and text.isascii() and text.isdigit() and len(text) < 11 else None


def _repeated(named, code, what, remedy, same=str):
    """A Problem for each (value, pointer) whose value stood before."""
    first = {}
    for value, place in named:
        if value is not None and first.setdefault(same(value), place) != place:
            yield Problem(code, place, f"{what} {shown(value)} stands at {first[same(value)]} too", remedy)
