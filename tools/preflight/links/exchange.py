"""Runs on every host of a check: listens for the others, connects to them, and reports the result of each connection.

All hosts begin at about the same time.  A host ends when its own connections have results and all expected ones have
come.  Otherwise it ends when nothing new has happened for a while, or when its time is over.
"""

from __future__ import annotations

import errno
import heapq
import itertools
import os
import resource
import selectors
import socket
import time

from tools.preflight.links import calls, names, talk
from tools.preflight.links.calls import Call
from tools.preflight.links.talk import Foreign, Stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_AT_ONCE = 256  # connections from this host
_MOST_STRANGERS = 64  # connections to this host beyond those that it expects
_SPARE_FILES = 64


def listen_and_connect(question: dict[str, Any], clock: Callable[[], float] = time.time) -> dict[str, Any]:
    """The answer of this host, as JSON: see `Exchange.answer`.  question: what pairs.question made for it."""
    exchange = Exchange(question, clock)
    try:
        exchange.run()
    finally:
        exchange.close()
    return exchange.answer()


class Visit:
    """A connection of another host to this one."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.known = False  # it has greeted


class Exchange:
    """One host's part: its doors, its calls and its visitors."""

    def __init__(self, question: dict[str, Any], clock: Callable[[], float]) -> None:
        self.question, self.clock = question, clock
        self.host, nonce = question["host"], question["nonce"]
        self.guests = {
            talk.hello(nonce, source, self.host, port): talk.Guest(
                source, port, talk.welcome(nonce, source, self.host, port)
            )
            for source, port in question["expects"]
        }
        self.calls = [Call(question, *asked) for asked in question["connects"]]
        self.waiting = list(reversed(self.calls))  # not begun; the next one is the last of the list
        self.done: list[Call] = []
        self.visits: set[Visit] = set()
        self.strangers = 0
        self.alarms: list[tuple[float, int, Call]] = []  # a heap of calls that wait for their next try
        self.numbers = itertools.count()
        self.selector = selectors.DefaultSelector()
        self.names = names.Names()
        self.began, self.ended = self.clock(), 0.0
        self.end = time.monotonic() + question["seconds"]
        self.quiet_at = time.monotonic() + question["quiet"]
        self.files = _more_files(_AT_ONCE + len(self.guests) + _MOST_STRANGERS + _SPARE_FILES)
        self.doors = calls.listen(self._own_address(), question["listens"])
        self.missing = {(guest.host, guest.port) for guest in self.guests.values() if guest.port in self.doors.of}

    def _own_address(self) -> str:
        found = self.question["address"]
        return found if calls.is_address(found) else ""

    # ---- the loop --------------------------------------------------------------------------------

    def run(self) -> None:
        """Returns when this host's part has ended."""
        for door in self.doors.of.values():
            self.selector.register(door, selectors.EVENT_READ, door)
        self.selector.register(self.names.wakes, selectors.EVENT_READ, self.names)
        self.begin_some()  # once, however late it is
        while not self.has_ended():
            for key, _ in self.selector.select(self.pause()):
                self.take(key.data)
            self.begin_some()

    def has_ended(self) -> bool:
        """Whether all have come and all calls have results, or the time is over."""
        if time.monotonic() >= min(self.end, self.quiet_at):
            return True
        return not self.missing and not self.visits and len(self.done) == len(self.calls)

    def pause(self) -> float:
        """Seconds until something must be done without an event."""
        times: list[float] = [self.end, self.quiet_at, *(alarm[0] for alarm in self.alarms[:1])]
        return max(0.0, min(times) - time.monotonic())

    def news(self) -> None:
        """Notes that something new has happened: the others get more time."""
        self.quiet_at = time.monotonic() + self.question["quiet"]

    def take(self, what: Any) -> None:
        """Handles one event."""
        if isinstance(what, Call):
            self.hear(what)
        elif isinstance(what, Visit):
            self.attend(what)
        elif isinstance(what, names.Names):
            what.take()
        else:
            self.accept(what)

    # ---- to others -------------------------------------------------------------------------------

    def begin_some(self) -> None:
        """Begins calls whose turn has come."""
        now = time.monotonic()
        while self.alarms and self.alarms[0][0] <= now:
            self.waiting.append(heapq.heappop(self.alarms)[2])
        open_now = len(self.calls) - len(self.waiting) - len(self.alarms) - len(self.done)
        while self.waiting and open_now < min(_AT_ONCE, self.files):
            self.begin(self.waiting.pop())
            open_now += 1

    def begin(self, call: Call) -> None:
        """Begins one try; a call without an address is tried again."""
        if not calls.is_address(call.address):
            found = self.names.of(call.address)
            if found is None:
                call.status = calls.UNRESOLVED
                self.later(call, 0.05)
                return
            call.address, call.status = found, calls.UNTESTED
        try:
            call.dial()
        except OSError as error:
            self.retry(call, error)
        else:
            assert call.plug
            self.selector.register(call.plug, call.events, call)

    def later(self, call: Call, seconds: float) -> None:
        """Tries the call again after this number of seconds."""
        heapq.heappush(self.alarms, (time.monotonic() + seconds, next(self.numbers), call))

    def retry(self, call: Call, error: OSError) -> None:
        """The try has failed; there will be another one."""
        self.hang_up(call)
        self.later(call, call.failed(error))

    def hear(self, call: Call) -> None:
        """An event of a call."""
        try:
            goes_on = call.go_on(self.clock)
        except EOFError:
            if call.has_waited():  # and the other host's part has ended first
                call.give_up()
                self.finish(call, call.status)
                return
            self.retry(call, ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET)))
        except OSError as error:
            self.retry(call, error)
        except Foreign:
            self.finish(call, calls.FOREIGN)
        else:
            if call.look():
                self.news()
            if goes_on and call.plug:
                self.selector.modify(call.plug, call.events, call)
            else:
                call.measure()
                self.finish(call, calls.OK)

    def finish(self, call: Call, status: str) -> None:
        """The call has its result."""
        call.status, call.said = status, ""
        self.hang_up(call)
        self.done.append(call)
        self.news()

    def hang_up(self, call: Call) -> None:
        """Closes the connection of this try."""
        if call.plug and call.plug.fileno() in self.selector.get_map():
            self.selector.unregister(call.plug)
        call.close()

    # ---- from others -----------------------------------------------------------------------------

    def accept(self, door: socket.socket) -> None:
        """Lets visitors in, unless there are too many."""
        most = len(self.guests) + _MOST_STRANGERS
        while len(self.visits) < most:
            try:
                plug, seen = door.accept()
            except OSError:  # there is none, it has gone again, or there are too many open files
                return
            plug.setblocking(False)
            plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.let_in(plug, seen[0])

    def let_in(self, plug: socket.socket, seen: str) -> None:
        """A visitor comes from the address `seen`."""

        def came(guest: talk.Guest) -> None:
            visit.known = True
            self.missing.discard((guest.host, guest.port))
            self.news()

        visit = Visit(Stream(plug, talk.serve(self.guests, seen, self.clock, came)))
        self.visits.add(visit)
        self.selector.register(plug, selectors.EVENT_READ, visit)

    def attend(self, visit: Visit) -> None:
        """An event of a visitor."""
        try:
            if visit.stream.go_on():
                self.selector.modify(visit.stream.plug, visit.stream.events, visit)
                return
        except (OSError, EOFError):  # our callers end with a reset
            self.strangers += not visit.known
        except Foreign:
            self.strangers += 1
        self.selector.unregister(visit.stream.plug)
        visit.stream.plug.close()
        self.visits.discard(visit)

    # ---- the end ---------------------------------------------------------------------------------

    def close(self) -> None:
        """Calls without a result get one; nothing stays open."""
        for key, _ in self.selector.select(0):  # what came while this host was busy
            self.take(key.data)
        for call in self.calls:
            if call.plug:
                call.give_up()
                self.hang_up(call)
        self.ended = self.clock()
        for visit in self.visits:
            visit.stream.plug.close()
        for door in self.doors.of.values():
            door.close()
        self.names.close()
        self.selector.close()

    def answer(self) -> dict[str, Any]:
        """The results.

        links: [[host, port, status, details]].  busy: {port: who holds it}.  passing: those that will be free by
        themselves.  here: whether the host has its address itself.  strangers: connections of others.  began, ended: by
        its own clock.  interfaces: see names.interfaces.
        """
        return {
            "links": [call.result() for call in self.calls],
            "busy": {str(port): why for port, why in self.doors.faults.items()},
            "passing": self.doors.passing,
            "here": self.doors.here,
            "strangers": self.strangers,
            "began": self.began,
            "ended": self.ended,
            "interfaces": names.interfaces([call.address for call in self.calls if calls.is_address(call.address)]),
        }


def _more_files(wanted: int) -> int:
    """Raises the limit of open files to what is wanted, as far as it goes; how many connections fit in it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return wanted if soft == resource.RLIM_INFINITY else max(1, soft // 4)
