"""By which interface, and from which address, this host reaches others: what the kernel says, by rtnetlink(7)."""

from __future__ import annotations

import array
import fcntl
import socket
import struct
import sys

from hccl_tools.table.address import packed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

MOST = 64  # peers whose routes are asked
_NLMSG = struct.Struct("=IHHII")  # length, type, flags, number, process
_RTMSG = struct.Struct("=BBBBBBBBI")
_ATTRIBUTE = struct.Struct("=HH")
_RTM_NEWROUTE, _RTM_GETROUTE, _REQUEST = 24, 26, 1
_DESTINATION, _INTERFACE, _SOURCE = 1, 4, 7
# netdevice(7) and ethtool: /sys/class/net may be that of another network namespace
_SIOCGIFMTU, _SIOCETHTOOL, _ETHTOOL_GSET = 0x8921, 0x8946, 1
_IFREQ = struct.Struct("=16si20x")
_SETTINGS = struct.Struct("=12xH14xH14x")  # of struct ethtool_cmd: the two halves of the speed
_NO_SPEED = (0, 0xFFFF, 0xFFFFFFFF)


def facts(peers: Iterable[str]) -> dict[str, dict[str, Any]]:
    """{interface: {"mtu", "speed", "sources"}} of the routes to these addresses.

    speed: in Mb/s; None where the interface has none.  sources: our addresses there.
    """
    found: dict[str, dict[str, Any]] = {}
    for peer in list(dict.fromkeys(peers))[:MOST]:
        name, source = route(peer)
        if not name:
            continue
        fact = found.setdefault(name, {"mtu": mtu(name), "speed": speed(name), "sources": []})
        if source and source not in fact["sources"]:
            fact["sources"].append(source)
    return found


def route(peer: str) -> tuple[str, str]:
    """(interface, our address on it) of the route to an address; empty where there is none, or nobody says."""
    address = packed(peer)
    if not address:
        return "", ""
    kind = socket.AF_INET if len(address) == 4 else socket.AF_INET6
    body = _RTMSG.pack(kind, 8 * len(address), 0, 0, 0, 0, 0, 0, 0)
    body += _ATTRIBUTE.pack(_ATTRIBUTE.size + len(address), _DESTINATION) + address
    message = _NLMSG.pack(_NLMSG.size + len(body), _RTM_GETROUTE, _REQUEST, 1, 0) + body
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE) as line:
            line.settimeout(1)
            line.send(message)
            answer = line.recv(1 << 14)
    except OSError:  # gVisor and old kernels have no such socket
        return "", ""
    return _read(answer, kind)


def _read(answer: bytes, kind: int) -> tuple[str, str]:
    if len(answer) < _NLMSG.size + _RTMSG.size or _NLMSG.unpack_from(answer)[1] != _RTM_NEWROUTE:
        return "", ""
    values = dict(_attributes(answer[_NLMSG.size + _RTMSG.size :]))
    number, source = values.get(_INTERFACE, b""), values.get(_SOURCE, b"")
    try:
        name = socket.if_indextoname(struct.unpack("=I", number)[0])
        return name, socket.inet_ntop(kind, source) if source else ""
    except (OSError, ValueError, struct.error):  # the interface has gone, or the answer has another form
        return "", ""


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    while len(data) >= _ATTRIBUTE.size:
        length, name = _ATTRIBUTE.unpack_from(data)
        if length < _ATTRIBUTE.size:
            return
        yield name, data[_ATTRIBUTE.size : length]
        data = data[(length + 3) & ~3 :]


def mtu(name: str) -> int | None:
    """The MTU of an interface; None where the kernel does not say it."""
    request = _ask(_SIOCGIFMTU, _IFREQ.pack(name.encode(), 0))
    return int(_IFREQ.unpack(request)[1]) if request else None


def speed(name: str) -> int | None:
    """Its speed in Mb/s; None for one without: a virtual one, or one without a cable."""
    settings = array.array("B", _ETHTOOL_GSET.to_bytes(4, sys.byteorder) + bytes(_SETTINGS.size - 4))
    if not _ask(_SIOCETHTOOL, struct.pack("=16sQ16x", name.encode(), settings.buffer_info()[0])):
        return None
    return speed_of(settings.tobytes())


def speed_of(settings: bytes) -> int | None:
    """The speed in a struct ethtool_cmd."""
    low, high = _SETTINGS.unpack(settings)
    found = int(high << 16 | low)
    return None if found in _NO_SPEED else found


def _ask(what: int, request: bytes) -> bytes | None:
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
            return fcntl.ioctl(line.fileno(), what, request)
    except OSError:  # the interface has gone, or its driver does not know
        return None
