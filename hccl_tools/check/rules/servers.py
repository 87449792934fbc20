"""Rules for servers: their names, addresses and order; and for the nodes of version 1.1."""

from __future__ import annotations

from hccl_tools.check.rules.registry import LISTED, WITH_DEVICES, Findings, repeated, rule
from hccl_tools.common.language import tr
from hccl_tools.common.problem import WARNING
from hccl_tools.common.words import shown
from hccl_tools.table.address import family, is_placeholder
from hccl_tools.table.view import Server, View
from hccl_tools.table.view import text as text_of

_OTHER_ADDRESSES = ("container_ip", "server_ip", "pod_ip")  # of a server; HCCL does not read them


@rule("duplicate-server", (*LISTED, "legacy_cloud", "v1.1"))
def server_listed_twice(view: View) -> Findings:
    """Two entries have the same server_id (in 1.1, the same node_addr).

    Why: HCCL counts them as two servers; a table merged with itself has such entries.
    Remedy: list each server once, with all its devices.
    """
    names = [server.name for server in view.servers]
    yield from repeated(names, lambda n: _name_place(view, view.servers[n]), view.name_key, counts=_is_name)


def _is_name(name: object) -> bool:
    return isinstance(name, str) and bool(name) and not is_placeholder(name)


@rule("bad-address", WITH_DEVICES)
def server_id_is_placeholder(view: View) -> Findings:
    """server_id is a placeholder such as 10.*.*.* or xx.xx.xx.xx.

    Why: tutorials print such tables and users copy them. HCCL accepts any text, and MindSpore finds no host with that
    name.
    Remedy: write the host's IP address.
    """
    for server in view.servers:
        if server.name is not None and is_placeholder(server.name):
            yield _name_place(view, server), tr("server_id {name} is a placeholder", name=shown(server.name))


@rule("bad-address", LISTED)
def host_ip_is_no_address(view: View) -> Findings:
    """host_ip is not an IPv4 or IPv6 address.

    Why: HCCL's manual for A3: HCCL uses the host's address when it retries an operator.
    Remedy: write the host's IP address, or remove host_ip.
    """
    for server in view.servers:
        host_ip = server.entry.get("host_ip")
        if isinstance(host_ip, str) and family(host_ip) is None:
            yield (
                server.pointer + "/host_ip",
                tr("host_ip {host_ip} is not an IPv4 or IPv6 address", host_ip=shown(host_ip)),
            )


@rule("bad-address", LISTED)
def other_address_is_placeholder(view: View) -> Findings:
    """container_ip, server_ip or pod_ip is a placeholder.

    Why: HCCL does not read these keys, but a table with placeholders was never completed.
    Remedy: write the address, or remove the key.
    """
    for server in view.servers:
        for key in _OTHER_ADDRESSES:
            value = server.entry.get(key)
            if isinstance(value, str) and is_placeholder(value):
                yield f"{server.pointer}/{key}", tr("{key} {value} is a placeholder", key=key, value=shown(value))


@rule("doubtful-server", WITH_DEVICES, WARNING)
def address_is_mistyped(view: View) -> Findings:
    """server_id (server_ip, container_ip, pod_ip) looks like a mistyped IP address, or has leading or trailing blanks.

    Why: HCCL accepts any text, and the mistake appears only at the launch, on one of the hosts. MindSpore's manual has
    the host's IP address here. 10.9.0.256, 10.9.0, 10,9,0,1 and 10.9.0.1/24 are not IP addresses.
    Remedy: write the host's IP address.
    """
    for server in view.servers:
        beside = ((key, text_of(server.entry, key)) for key in _OTHER_ADDRESSES)
        for key, value in ((view.name_key, server.name), *beside):
            fault = _doubt(key, value) if value else None
            if fault:
                yield (f"{server.pointer}/{key}", *fault)


def _doubt(key: str, value: str) -> tuple[str] | tuple[str, str] | None:
    """(what is wrong, remedy where it is known) with a text that should be a host's address or name; None: nothing."""
    if family(value) is not None or is_placeholder(value) or not value.isprintable():  # other rules have those
        return None
    from hccl_tools.table import misspelt  # most servers have an address, and need it not

    address = misspelt.meant(value)
    if value != value.strip():
        text = tr("{key} {value} begins or ends with a blank", key=key, value=shown(value))
        return text, tr('write "{text}"', text=address or value.strip())
    text = tr("{key} {value} looks like an IP address but is not one", key=key, value=shown(value))
    if address:
        return text, tr('write "{text}"', text=address)
    return (text,) if misspelt.is_nearly_an_address(value) else None


@rule("loopback-server", WITH_DEVICES, WARNING)
def server_id_cannot_be_reached(view: View) -> Findings:
    """server_id is 0.0.0.0 or 127.x in a table with several servers.

    Why: other hosts cannot reach such an address, and it is the same on every host.
    Remedy: write the address by which the other servers reach it.
    """
    for server in view.servers if len(view.servers) > 1 else ():
        name = server.name or ""
        if name.startswith(("127.", "0.0.0.0")) and family(name) is not None or name in ("::", "::1", "localhost"):
            yield (
                _name_place(view, server),
                tr("server_id {name} cannot be reached from the other servers", name=shown(name)),
            )


@rule("server-order", LISTED, WARNING, strict=("910A",))
def servers_out_of_order(view: View) -> Findings:
    """Sorted by rank, the servers are not in the dictionary order of server_id.

    Why: MindSpore's manual for 910A requires it ("10.19.1.142" is before "10.19.1.79"); HCCL does not check.
    Remedy: number the ranks in dictionary order of server_id, as merge_hccl.py does.
    """
    if len({server.name for server in view.servers}) < len(view.servers):
        return  # duplicates have no order
    blocks = [(first, last, block, block.name) for first, last, block in view.rank_blocks if block.name is not None]
    for (_, last, _, before), (first, _, server, name) in zip(blocks, blocks[1:]):
        if name < before and last < first:  # interleaved ranks have no order either
            text = tr(
                "server_id {name} comes before {before} in dictionary order, but its ranks come after",
                name=shown(name),
                before=shown(before),
            )
            yield _name_place(view, server), text
            return  # one is enough: sorting corrects all


def _name_place(view: View, server: Server) -> str:
    return f"{server.pointer}/{view.name_key}"


@rule("bad-address", ("v1.1",))
def node_addr_is_no_address(view: View) -> Findings:
    """node_addr is not an IPv4 or IPv6 address.

    Why: HCCL, topoinfo_ranktableHeterog.cc: node_addr is an IP.
    Remedy: write the host's IP address.
    """
    for server in view.servers:
        if server.name is not None and family(server.name) is None:
            yield (
                server.pointer + "/node_addr",
                tr("node_addr {name} is not an IPv4 or IPv6 address", name=shown(server.name)),
            )
