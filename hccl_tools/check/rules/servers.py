"""Rules on servers: their names and addresses, and their order."""

from hccl_tools.check.rules.registry import LISTED, WITH_DEVICES, rule
from hccl_tools.check.rules.repeated import repeated
from hccl_tools.common.problem import WARNING
from hccl_tools.common.words import shown
from hccl_tools.table.address import family, is_placeholder


@rule("duplicate-server", (*LISTED, "legacy_cloud", "v1.1"))
def server_listed_twice(view):
    """Two entries have one server_id (in 1.1, one node_addr).

    Why: HCCL takes them for one server twice; merging a table with itself makes such tables.
    Mend: list each server once, with all its devices.
    """
    names = [server.name for server in view.servers]
    remedy = "list each server once, with all its devices"
    yield from repeated(names, lambda index: _name_place(view, view.servers[index]), view.name_key, remedy)


@rule("bad-address", WITH_DEVICES)
def server_id_is_placeholder(view):
    """server_id is a placeholder such as 10.*.*.* or xx.xx.xx.xx.

    Why: tutorials print such tables and users copy them; HCCL takes any text, and MindSpore finds no
    host of that name.
    Mend: write the host's IP address.
    """
    for server in view.servers:
        if server.name is not None and is_placeholder(server.name):
            text = f"server_id {shown(server.name)} is a placeholder"
            yield _name_place(view, server), text, "write the host's IP address"


@rule("bad-address", LISTED)
def host_ip_is_no_address(view):
    """host_ip is there and is not an IPv4 or IPv6 address.

    Why: HCCL's manual for A3: the host's address, used when an operator is retried.
    Mend: write the host's IP address, or leave host_ip out.
    """
    for server in view.servers:
        host_ip = server.entry.get("host_ip")
        if isinstance(host_ip, str) and family(host_ip) is None:
            text = f"host_ip {shown(host_ip)} is not an IPv4 or IPv6 address"
            yield server.pointer + "/host_ip", text, "write the host's IP address, or leave host_ip out"


@rule("bad-address", LISTED)
def other_address_is_placeholder(view):
    """container_ip, server_ip or pod_ip is a placeholder.

    Why: HCCL does not read them, but a table that still has placeholders was never filled in.
    Mend: write the address, or leave the key out.
    """
    for server in view.servers:
        for key in ("container_ip", "server_ip", "pod_ip"):
            value = server.entry.get(key)
            if isinstance(value, str) and is_placeholder(value):
                text = f"{key} {shown(value)} is a placeholder"
                yield f"{server.pointer}/{key}", text, f"write the address, or leave {key} out"


@rule("loopback-server", WITH_DEVICES, WARNING)
def server_id_cannot_be_reached(view):
    """server_id is 0.0.0.0 or 127.x in a table of several servers.

    Why: other hosts cannot reach such an address, and it tells no two hosts apart.
    Mend: write the address by which the other hosts reach the server.
    """
    for server in view.servers if len(view.servers) > 1 else ():
        name = server.name or ""
        if name.startswith(("127.", "0.0.0.0")) and family(name) is not None or name in ("::", "::1", "localhost"):
            text = f"server_id {shown(name)} cannot be reached from the other servers"
            yield _name_place(view, server), text, "write the address by which the other servers reach it"


@rule("server-order", LISTED, WARNING)
def servers_out_of_order(view):
    """By rank, the servers are not in the dictionary order of server_id.

    Why: MindSpore's manual asks for it ("10.19.1.142" stands before "10.19.1.79"); HCCL does not check.
    Mend: number the ranks in that order, as merge_hccl.py does.
    """
    if len({server.name for server in view.servers}) < len(view.servers):
        return  # what stands twice has no order
    blocks = [block for block in view.rank_blocks if block[2].name is not None]
    for (_, last, before), (first, _, server) in zip(blocks, blocks[1:]):
        if server.name < before.name and last < first:  # nor has what interleaves
            text = (
                f"server_id {shown(server.name)} comes before {shown(before.name)} in dictionary order, "
                "but its ranks come after"
            )
            yield _name_place(view, server), text, "number the ranks in dictionary order of server_id"
            return  # one is enough: sorting mends all


def _name_place(view, server):
    return f"{server.pointer}/{view.name_key}"
