"""What a link that fails means, and what to do about it: sentences for people."""

from __future__ import annotations

from hccl_tools.common.language import marked, tr
from hccl_tools.common.quoting import quote
from hccl_tools.common.words import named as numbered
from tools.preflight.links import calls, shapes
from tools.preflight.links.broken import named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from tools.preflight.links.answers import Link
    from tools.preflight.links.shapes import Shape

_WHY = {
    calls.REFUSED: marked("refused, though that host listens: a firewall rejects it"),
    calls.TIMEOUT: marked("nothing comes back: a firewall drops the packets, or they do not find the way"),
    calls.RESET: marked("something on the way cuts the connection"),
    calls.FOREIGN: marked("another program answers: two hosts have this address, or it is translated"),
    calls.MUTE: marked("the connection opens, but no answer comes: a firewall or another program took it"),
    calls.DENIED: marked("the sender's own firewall forbids it"),
    calls.UNRESOLVED: marked("the name has no address there"),
}
_HEADERS = {4: 28, 6: 48}  # bytes before the data of a ping: IP's and ICMP's


# {kind of a shape: which connections fail}, and the same of big messages
_CONNECTIONS = {
    shapes.IN: marked("no connection from other hosts succeeds at {ports}"),
    shapes.OUT: marked("no connection to other hosts succeeds at {ports}"),
    shapes.ALONE: marked("no connection from other hosts, or to them, succeeds at {ports}"),
    shapes.APART: marked("no connection to {peers}, or from there, succeeds at {ports}"),
    shapes.ONE_WAY: marked("no connection to {peers} succeeds at {ports}; those from there succeed"),
    shapes.TOWARDS: marked("no connection to {peers} succeeds at {ports}"),
}
_TRANSFERS = {
    shapes.IN: marked("big messages from other hosts do not arrive"),
    shapes.OUT: marked("big messages to other hosts do not arrive"),
    shapes.ALONE: marked("big messages from other hosts, or to them, do not arrive"),
    shapes.APART: marked("big messages to {peers}, or from there, do not arrive"),
    shapes.ONE_WAY: marked("big messages to {peers} do not arrive; those from there do"),
    shapes.TOWARDS: marked("big messages to {peers} do not arrive"),
}


def of_connections(shape: Shape, ports: Iterable[int]) -> str:
    """Which connections fail."""
    return tr(_CONNECTIONS[shape.kind], peers=named(shape.peers), ports=numbered("port", ports))


def of_transfers(shape: Shape) -> str:
    """Which big messages do not arrive."""
    return tr(_TRANSFERS[shape.kind], peers=named(shape.peers))


def why(link: Link) -> str:
    """The reason of an example."""
    if link.status == calls.BLACK_HOLE:
        return tr("small ones do; packets of {size} bytes are lost on the way, so an MTU is too big", size=link.mtu)
    if link.status in _WHY:
        return tr(_WHY[link.status])
    return tr("the kernel says: {said}", said=link.said or link.status)


def remedy(link: Link, address: str) -> str:
    """What to do, with commands for the example.  address: that of the target."""
    source, target = quote(link.source), quote(link.target)
    if link.status in (calls.REFUSED, calls.MUTE):
        return tr("look at the firewall: ssh {host} 'nft list ruleset; iptables -S'", host=target)
    if link.status == calls.DENIED:
        return tr("look at the firewall: ssh {host} 'nft list ruleset; iptables -S'", host=source)
    if link.status == calls.FOREIGN:
        return tr("compare its addresses with {address}: ssh {host} hostname -I", address=quote(address), host=target)
    if link.status == calls.UNRESOLVED:
        command = f"ssh {source} getent hosts {quote(address)}"
        return tr("add a line for it to /etc/hosts there, and try: {command}", command=command)
    if link.status == calls.BLACK_HOLE:
        size = max(0, (link.mtu or 0) - (_HEADERS[6] if ":" in link.local else _HEADERS[4]))
        command = f"ssh {source} ping -c 3 -M do -s {size} {quote(address)}"
        return tr("make the MTU of hosts and switches the same; to try: {command}", command=command)
    command = f"ssh {source} 'ip route get {quote(address)}; ping -c 3 {quote(address)}'"
    return tr("look at firewalls, cables and routes; to try: {command}", command=command)
