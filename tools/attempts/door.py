"""Accepts connections from the other hosts or pods of a job; limits time and data until a client identifies itself."""

from __future__ import annotations

import hmac
import resource
import selectors
import socket
import time

from tools.attempts import wire
from tools.attempts.wire import Connection, Lost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

BACKLOG = 1024  # connections that the kernel accepts before we do
HELLO_WITHIN = 10.0  # seconds
_MOST_GUESTS = 64  # beyond those that are missing


class Door:
    """missing: how many may still come.  welcome: takes a guest in by its first message, or raises Lost."""

    def __init__(self, missing: Callable[[], int], welcome: Callable[[Connection, list[Any]], None]) -> None:
        self.missing, self.welcome = missing, welcome
        self.guests: dict[Connection, float] = {}  # who has not said who it is, and until when it may
        self.selector = selectors.DefaultSelector()
        self.plug: socket.socket | None = None

    def open(self, plug: socket.socket) -> None:
        """Lets others connect to this socket from now on."""
        self.plug = plug
        plug.setblocking(False)
        self.selector.register(plug, selectors.EVENT_READ, self.accept)

    def accept(self) -> None:
        """Lets a guest in, unless there are too many."""
        if self.plug is None:
            return
        try:
            plug, _ = self.plug.accept()
        except OSError:  # it has gone again, or there are too many open files
            time.sleep(0.01)
            return
        if len(self.guests) >= _MOST_GUESTS + self.missing():
            plug.close()
            return
        guest = Connection(plug)
        self.guests[guest] = time.monotonic() + HELLO_WITHIN
        self.selector.register(plug, selectors.EVENT_READ, lambda: self.greet(guest))

    def greet(self, guest: Connection) -> None:
        """Admits a guest, or sends it the reason why not."""
        if guest not in self.guests:
            return
        try:
            for found in guest.receive()[:1]:  # it waits for the answer
                self.welcome(guest, found)
        except Lost:
            self.forget(guest)

    def take_in(self, guest: Connection, listen: Callable[[], None], *answer: object) -> None:
        """Admits the guest, and reports it to the guest; `listen` gets its lines from now on."""
        del self.guests[guest]
        self.selector.modify(guest.plug, selectors.EVENT_READ, listen)
        guest.send(["welcome", *answer])

    def forget(self, connection: Connection) -> None:
        """Closes a connection; what was sent last still arrives."""
        self.guests.pop(connection, None)
        self.selector.unregister(connection.plug)
        connection.plug.close()

    def forget_silent(self) -> None:
        """Closes the connections of guests that have sent nothing in time."""
        now = time.monotonic()
        for guest in [guest for guest, until in self.guests.items() if now >= until]:
            self.forget(guest)

    def close(self) -> None:
        """Stops accepting connections."""
        if self.plug:
            self.selector.unregister(self.plug)
            self.plug.close()
            self.plug = None
        for guest in list(self.guests):
            self.forget(guest)


def refuse(guest: Connection, why: str) -> None:
    """Raises Lost, after the guest was informed."""
    guest.send(["refused", why])
    raise Lost(why)


def hello(found: list[Any], job: str) -> tuple[bool, int, list[str]]:
    """(whether a guest is of this job, its number, the texts after that) of ``hello JOB NUMBER TEXT...``.

    Raises Lost if the message is another.
    """
    theirs, number, *more = wire.take(found, {"hello": (str, int, *(str for _ in found[3:]))})[1]
    return hmac.compare_digest(theirs.encode("utf-8", "replace"), job.encode()), number, more


def want_files(connections: int) -> tuple[int, int]:
    """Raises the limit of open files for this number, and for guests, if possible; returns the limits before."""
    wanted = connections + 2 * _MOST_GUESTS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return soft, hard
