"""Looks up names in threads, so that an unresponsive server blocks nothing, and the routes to their addresses."""

from __future__ import annotations

import os
import socket
import struct
import threading

from hccl_tools.machine import addresses
from hccl_tools.table.address import packed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MOST = 64  # peers whose routes are asked
_NLMSG = struct.Struct("=IHHII")  # length, type, flags, number, process
_RTMSG = struct.Struct("=BBBBBBBBI")
_ATTRIBUTE = struct.Struct("=HH")
_RTM_NEWROUTE, _RTM_GETROUTE, _REQUEST = 24, 26, 1
_DESTINATION, _INTERFACE, _SOURCE = 1, 4, 7
_AT_ONCE = 16  # look-ups


class Names:
    """Look-ups of one check.  wakes: a descriptor that has something to read when one has ended."""

    def __init__(self) -> None:
        self.wakes, self._bell = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._found: dict[str, str | None] = {}
        self._asked: set[str] = set()
        self._turns = threading.BoundedSemaphore(_AT_ONCE)
        self._lock = threading.Lock()  # over the bell: a thread may end after the check

    def of(self, name: str) -> str | None:
        """The address of this name; None while it is not known.  A name without an address is asked again."""
        found = self._found.get(name)
        if found is None and name not in self._asked:
            self._asked.add(name)
            threading.Thread(target=self._look_up, args=[name], daemon=True).start()
        return found

    def _look_up(self, name: str) -> None:
        with self._turns:
            found = addresses.of([name])[name]
        with self._lock:
            self._found[name] = found
            if self._bell >= 0:
                os.write(self._bell, b"!")

    def take(self) -> None:
        """Takes the results, after `wakes` had something to read."""
        os.read(self.wakes, 1 << 12)

    def close(self) -> None:
        """Look-ups are not waited for any more."""
        with self._lock:
            os.close(self._bell)
            os.close(self.wakes)
            self._bell = -1


# ---- By which interface, and from which address, this host reaches others: what the kernel reports, by rtnetlink(7).


def interfaces(peers: Iterable[str]) -> dict[str, list[str]]:
    """{interface: our addresses there} of the routes to these addresses."""
    found: dict[str, list[str]] = {}
    for peer in list(dict.fromkeys(peers))[:MOST]:
        name, source = route(peer)
        if source and source not in found.setdefault(name, []):
            found[name].append(source)
    return found


def route(peer: str) -> tuple[str, str]:
    """(interface, our address on it) of the route to an address; empty if there is none, or if it is unknown."""
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
