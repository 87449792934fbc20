"""The network of a host, as far as it can tell alone; the rank table against the host."""

from __future__ import annotations

from hccl_tools.common.language import marked
from tools.preflight.catalog.row import Equal, Nothing, Row, Yes
from tools.preflight.difference import BLOCKS, SLOWS, SURPRISES

NETWORK = (
    Row(
        key="busy_ports",
        collector="network",
        rule=Nothing(),
        level=BLOCKS,
        text=marked("a program listens on ports that the job needs: {value}"),
        remedy=marked("ss -ltnp shows it there; end it, or choose other ports by MS_SCHED_PORT and HCCL_IF_BASE_PORT"),
    ),
    Row(
        key="first_address",
        collector="network",
        rule=Equal(),
        level=BLOCKS,
        text=marked("the first host has the address {value}"),
        without=marked("the first host's name has no address"),
        remedy=marked("correct /etc/hosts there, or name hosts by their addresses"),
    ),
    Row(
        key="mtu",
        collector="network",
        rule=Equal(),
        level=SLOWS,
        text=marked("MTU {value}"),
        remedy=marked("set the same on all hosts and switches: ip link set dev NAME mtu NUMBER"),
    ),
    Row(
        key="link_speed",
        collector="network",
        rule=Equal(),
        level=SLOWS,
        text=marked("a network of {value}"),
        unit="Mb/s",
        remedy=marked("see cable and switch: ethtool NAME"),
    ),
    Row(
        key="firewall",
        collector="network",
        rule=Equal(),
        level=SURPRISES,
        text=marked("a firewall kept by {value}"),
        without=marked("no firewall that shows"),
        remedy=marked("let the hosts of the job reach all ports of one another"),
    ),
)

TABLE = (
    Row(
        key="table_server",
        collector="table",
        rule=Yes(),
        level=BLOCKS,
        text=marked("the host does not have the address that the rank table has for it"),
        remedy=marked("correct server_id, or build the table again"),
    ),
    Row(
        key="table_devices",
        collector="table",
        rule=Nothing(),
        level=BLOCKS,
        text=marked("devices of the rank table that are not there: {value}"),
        remedy=marked("build the table again"),
    ),
    Row(
        key="table_addresses",
        collector="table",
        rule=Nothing(),
        level=BLOCKS,
        text=marked("devices with other addresses than in the rank table: {value}"),
        remedy=marked("build the table again"),
    ),
)
