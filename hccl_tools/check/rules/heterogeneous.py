"""Rules of version 1.1."""

from hccl_tools.check.rules.registry import rule
from hccl_tools.common.words import shown
from hccl_tools.table.address import family


@rule("bad-address", ("v1.1",))
def node_addr_is_no_address(view):
    """node_addr is not an IPv4 or IPv6 address.

    Why: HCCL, topoinfo_ranktableHeterog.cc: node_addr is an IP.
    Mend: write the host's IP address.
    """
    for server in view.servers:
        if server.name is not None and family(server.name) is None:
            text = f"node_addr {shown(server.name)} is not an IPv4 or IPv6 address"
            yield server.pointer + "/node_addr", text, "write the host's IP address"
