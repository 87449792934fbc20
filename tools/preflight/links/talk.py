"""The conversation of two hosts on a connection: a greeting with a secret, their clocks, and a big transfer.

Each side is a generator: it yields what it sends and what it waits for, and gets the bytes that came.  Stream
moves the bytes.

    caller    HELLO and its secret (48 bytes)     T (1)            B and 256 KiB
    visited   WELCOME, its secret, the address    two times (16)   K (1)
              from which the caller comes (96)
"""

from __future__ import annotations

import hashlib
import selectors
import struct
import time

from hccl_tools.common.record import Row
from tools.preflight.links.pairs import FULL

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Generator
    from typing import Any

    Talk = Generator["Want", bytes, None]

BIG = 1 << 18  # bytes of the big transfer
ROUNDS = 5  # exchanges of times; the fastest one counts
TRANSFERS = 3
# More of them, where all of them were slow: on a host that computes, one of them may meet no load.
_MORE, _QUICK, _SECONDS = 12, 0.01, 0.5
_HELLO, _WELCOME = b"mslaunch hello  ", b"mslaunch welcome"
_SEEN = 48  # bytes for an address, filled up with blanks
_TIMES = struct.Struct("!dd")
_BIG = bytes(BIG)
_PIECE = 1 << 16  # bytes that are read at once


class Want(Row):
    """One step: what is sent, then how many bytes must come, their beginning, and whether they are kept."""

    send: bytes
    size: int
    begins: bytes = b""
    kept: bool = True


class Foreign(Exception):
    """The received data is not from this check: another program, or another host, answers there."""


class Guest(Row):
    """The host that is expected at a port, and the secret with which it is welcomed."""

    host: str
    port: int
    welcome: bytes


def hello(nonce: str, source: str, target: str, port: int) -> bytes:
    """The first bytes of the connection from one host to another; only a host with the nonce can make them."""
    return _HELLO + _secret("hello", nonce, source, target, port)


def welcome(nonce: str, source: str, target: str, port: int) -> bytes:
    """The first bytes of the answer to that: an echo of the greeting does not pass for it."""
    return _WELCOME + _secret("welcome", nonce, source, target, port)


def _secret(word: str, nonce: str, source: str, target: str, port: int) -> bytes:
    told = "\0".join((word, source, target, str(port)))
    return (
        hashlib.blake2s(told.encode("utf-8", "surrogatepass"), digest_size=16, key=nonce.encode()[:32])
        .hexdigest()
        .encode()
    )


def call(greeting: bytes, answer: bytes, what: str, clock: Callable[[], float], found: dict[str, Any]) -> Talk:
    """The caller's side.  found: gets the results as they come, and in "stage" how far it is."""
    found["stage"] = "hello"
    came = yield Want(greeting, len(answer) + _SEEN, answer)
    found["seen"] = came[len(answer) :].decode("ascii", "replace").strip()
    found["stage"] = "times"
    for _ in range(ROUNDS if what == FULL else 1):
        sent = clock()
        came = yield Want(b"T", _TIMES.size)
        back = clock()
        arrived, left = _TIMES.unpack(came)
        trip = max(0.0, (back - sent) - (left - arrived))
        if trip < found.get("trip", float("inf")):  # RFC 5905: the offset, and half of the trip as its error
            found["trip"], found["offset"] = trip, ((arrived - sent) + (left - back)) / 2
    took: list[float] = []
    while what == FULL and _another(took):
        found["stage"] = "big"
        began = time.perf_counter()
        yield Want(b"B" + _BIG, 1, b"K")
        took.append(time.perf_counter() - began)
        found["took"] = min(took)
    found["stage"] = "done"


def _another(took: list[float]) -> bool:
    """Whether there is another big transfer.  took: seconds of each so far."""
    if len(took) < TRANSFERS:
        return True
    return min(took) > _QUICK and len(took) < _MORE and sum(took) < _SECONDS


def serve(guests: dict[bytes, Guest], seen: str, clock: Callable[[], float], came: Callable[[Guest], None]) -> Talk:
    """The side of the host that listens: it answers until the caller goes.  came: gets the guest after its greeting."""
    greeting = yield Want(b"", len(_HELLO) + 32, _HELLO)
    guest = guests.get(greeting)
    if guest is None:
        raise Foreign
    came(guest)
    said = guest.welcome + seen.encode("ascii", "replace")[:_SEEN].ljust(_SEEN)
    while True:
        order = yield Want(said, 1)
        arrived = clock()
        if order == b"T":
            said = _TIMES.pack(arrived, clock())
        elif order == b"B":
            yield Want(b"", BIG, kept=False)
            said = b"K"
        else:
            raise Foreign


class Stream:
    """The socket of a connection, and the conversation on it."""

    def __init__(self, plug: socket.socket, talk: Talk) -> None:
        self.plug, self.talk = plug, talk
        self.unsent = memoryview(b"")
        self.want = Want(b"", 0)
        self.came = bytearray()
        self.missing = 0
        self._step(next(talk))

    def _step(self, want: Want) -> None:
        self.want, self.unsent, self.missing = want, memoryview(want.send), want.size
        self.came.clear()

    @property
    def events(self) -> int:
        """The events for which a selector must wait."""
        return selectors.EVENT_READ | (selectors.EVENT_WRITE if self.unsent else 0)

    def go_on(self) -> bool:
        """Moves what can be moved now; False: the conversation has ended.  Raises OSError and Foreign.

        EOFError: the other side has closed the connection.
        """
        try:
            while True:
                if self.unsent:
                    self.unsent = self.unsent[self.plug.send(self.unsent) :]
                data = self.plug.recv(min(_PIECE, self.missing))
                if not data:
                    raise EOFError
                if not self._take(data):
                    return False
        except BlockingIOError:
            return True

    def _take(self, data: bytes) -> bool:
        """Bytes that came; False: they were the last ones.  Raises Foreign."""
        self.missing -= len(data)
        if self.want.kept:
            self.came += data
        begins = self.want.begins
        if not self.came.startswith(begins[: len(self.came)]):
            raise Foreign
        if self.missing == 0:
            try:
                self._step(self.talk.send(bytes(self.came)))
            except StopIteration:
                return False
        return True
