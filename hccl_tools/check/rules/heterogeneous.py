"""Rules for version 1.1."""

from __future__ import annotations

from hccl_tools.check.rules.registry import Findings, rule
from hccl_tools.common.language import tr
from hccl_tools.common.words import shown
from hccl_tools.table.address import family
from hccl_tools.table.view import View


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
