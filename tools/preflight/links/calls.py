"""A host's connection to one port of another host, tried until it succeeds or the time is over; and its own ports."""

from __future__ import annotations

import errno
import fcntl
import os
import selectors
import socket
import struct
import time

from hccl_tools.common.language import strerror, tr
from hccl_tools.common.record import Row
from hccl_tools.machine import sockets
from hccl_tools.table.address import family
from tools.preflight.links import talk
from tools.preflight.links.pairs import OPEN
from tools.preflight.links.talk import Stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

# How a link can be; judging.py states what each means.
STATUSES = (
    OK,
    REFUSED,
    TIMEOUT,
    NO_ROUTE,
    RESET,
    FOREIGN,
    MUTE,
    BLACK_HOLE,
    CRAWLS,
    DENIED,
    UNRESOLVED,
    UNTESTED,
    OTHER,
) = (
    *("ok", "refused", "timeout", "no route", "reset", "foreign", "mute"),
    *("black hole", "crawls", "denied", "unresolved", "untested", "other"),
)
_OF_ERRNO = {
    errno.ECONNREFUSED: REFUSED,
    errno.ETIMEDOUT: TIMEOUT,
    errno.EHOSTUNREACH: NO_ROUTE,
    errno.ENETUNREACH: NO_ROUTE,
    errno.EHOSTDOWN: NO_ROUTE,
    errno.EINVAL: NO_ROUTE,  # from a loopback address, or by a route of the type blackhole
    errno.ECONNRESET: RESET,
    errno.EPIPE: RESET,
    errno.EPERM: DENIED,
    errno.EACCES: DENIED,
}
SURELY = 1.0  # seconds after which a connection without an answer counts: the kernel has asked twice by then
_FIRST_PAUSE, _MOST_PAUSE = 0.02, 0.5  # seconds between tries
_ONE_SEGMENT = 500  # bytes: of a big transfer of which not more has arrived, no full packet has
_KEPT = ("source", "seen", "trip", "offset", "rtt", "took", "mtu")
# What the kernel takes for the MTU of the way.
_MTU = {socket.AF_INET: (socket.IPPROTO_IP, 14), socket.AF_INET6: (socket.IPPROTO_IPV6, 24)}
_SIOCOUTQ = 0x5411  # tcp(7)
_MIN_RTT_AT = 148  # of struct tcp_info of <linux/tcp.h>, in microseconds
_NO_RTT = 0xFFFFFFFF  # nothing has been measured
_NO_LINGER = struct.pack("ii", 1, 0)
BACKLOG = 1024  # connections that the kernel accepts before we do


class Call:
    """One connection, from its first try to its result."""

    def __init__(self, asked: dict[str, Any], target: str, address: str, port: int, what: str) -> None:
        names = asked["nonce"], asked["host"], target, port
        self.greeting, self.answer = talk.hello(*names), talk.welcome(*names)
        self.target, self.address, self.port, self.what = target, address, port, what
        self.found: dict[str, Any] = {}
        self.status = UNTESTED  # how the last try ended
        self.said = ""  # by the kernel
        self.pause = _FIRST_PAUSE
        self.plug: socket.socket | None = None
        self.stream: Stream | None = None
        self.stage, self.began = "", 0.0  # how far it is, and since when

    def dial(self) -> None:
        """Begins a try.  Raises OSError."""
        self.found = {"stage": "connect"}
        self.look()
        self.plug = socket.socket(kind_of(self.address), socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        # The end is a reset: no port of this host stays taken for a minute, which could be one of the job's.
        self.plug.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        self.plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        error = self.plug.connect_ex((self.address, self.port))
        if error not in (0, errno.EINPROGRESS):
            raise OSError(error, os.strerror(error))

    @property
    def events(self) -> int:
        """The events for which a selector must wait."""
        return self.stream.events if self.stream else selectors.EVENT_WRITE

    def go_on(self, clock: Callable[[], float]) -> bool:
        """Handles what has happened; False: the connection is finished.  Raises OSError, EOFError, Foreign."""
        assert self.plug
        if not self.stream:
            error = self.plug.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if error:
                raise OSError(error, os.strerror(error))
            self.found["source"] = self.plug.getsockname()[0]
            if self.what == OPEN:
                return False
            self.stream = Stream(self.plug, talk.call(self.greeting, self.answer, self.what, clock, self.found))
        return self.stream.go_on()

    def measure(self) -> None:
        """Reads the kernel's round trip before a successful connection ends; it does not depend on busy programs."""
        assert self.plug
        known = self.plug.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _MIN_RTT_AT + 4)
        if len(known) == _MIN_RTT_AT + 4:  # Linux 4.6 and later
            rtt = struct.unpack_from("I", known, _MIN_RTT_AT)[0]
            if rtt != _NO_RTT:
                self.found["rtt"] = rtt / 1e6

    def look(self) -> bool:
        """Notes how far it is; whether that has changed."""
        if self.stage == self.found["stage"]:
            return False
        self.stage, self.began = self.found["stage"], time.monotonic()
        return True

    def failed(self, error: OSError) -> float:
        """Handles a failed try; returns the seconds until the next one."""
        self.status, self.said = _OF_ERRNO.get(error.errno or 0, OTHER), error.strerror or str(error)
        self.pause = min(2 * self.pause, _MOST_PAUSE)
        return self.pause

    def has_waited(self) -> bool:
        """Whether a big transfer has taken so long that its status is known."""
        return self.stage == "big" and time.monotonic() - self.began >= SURELY

    def give_up(self) -> None:
        """The time is over: the status is what the last try was doing."""
        if self.plug is None or time.monotonic() - self.began < SURELY:
            return  # the try before it tells more
        if self.stage == "big":
            self.found["mtu"] = self.plug.getsockopt(*_MTU[self.plug.family])
            self.status = CRAWLS if self._confirmed() > _ONE_SEGMENT else BLACK_HOLE
        else:
            self.status = {"connect": TIMEOUT, "hello": MUTE}.get(self.stage, CRAWLS)  # who greets is of this check

    def _confirmed(self) -> int:
        """How many bytes of the big transfer the other host has."""
        assert self.plug and self.stream
        return len(self.stream.want.send) - len(self.stream.unsent) - unconfirmed(self.plug)

    def close(self) -> None:
        """Ends this try."""
        if self.plug:
            self.plug.close()
        self.plug = self.stream = None
        self.stage = ""

    def result(self) -> list[Any]:
        """[host, port, status, details] for the answer of this host."""
        kept: dict[str, Any] = {name: self.found[name] for name in _KEPT if name in self.found}
        if self.said:
            kept["said"] = self.said
        return [self.target, self.port, self.status, kept]


def unconfirmed(plug: socket.socket) -> int:
    """The bytes in the kernel that the other host has not confirmed."""
    return int(struct.unpack("i", fcntl.ioctl(plug.fileno(), _SIOCOUTQ, bytes(4)))[0])


def is_address(text: str) -> bool:
    """Whether it is an address, and not a name."""
    return family(text) is not None


def kind_of(address: str) -> int:
    """The family of an address; IPv4 for a name."""
    return family(address) or socket.AF_INET


class Doors(Row):
    """The ports on which a host listens.

    of: {port: its socket}.  faults: {port: why there is none}.  passing: those of the faults that pass by themselves.
    here: whether the host has the address.
    """

    of: dict[int, socket.socket]
    faults: dict[int, str]
    passing: list[int]
    here: bool


def listen(address: str, ports: Iterable[int]) -> Doors:
    """Opens the ports.

    address: empty where only a name is known.  Then the host listens at all of its own addresses, and so does one
    that does not have the address itself, behind a translation of addresses say.
    """
    doors: dict[int, socket.socket] = {}
    faults: dict[int, str] = {}
    passing = []
    kind = kind_of(address)
    here = not address or _owns(kind, address)
    at = address if address and here else ("::" if kind == socket.AF_INET6 else "0.0.0.0")
    for port in ports:
        door = socket.socket(kind, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the scheduler does
            door.bind((at, port))
            door.listen(BACKLOG)
            doors[port] = door
        except OSError as error:
            door.close()
            faults[port] = _why(error, port)
            if error.errno == errno.EADDRINUSE and sockets.have_ended(sockets.of_port(port)):
                passing.append(port)
    return Doors(of=doors, faults=faults, passing=passing, here=here)


def _owns(kind: int, address: str) -> bool:
    try:
        with socket.socket(kind, socket.SOCK_DGRAM) as probe:
            probe.bind((address, 0))
    except OSError as error:
        return error.errno != errno.EADDRNOTAVAIL
    return True


def _why(error: OSError, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return sockets.holder(port)
    if error.errno == errno.EACCES:
        return tr("only root may listen at a port below 1024")
    return strerror(error)
