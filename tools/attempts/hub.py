"""The process beside the launcher of rank 0's host: the others connect to it, and it decides for all of them."""

from __future__ import annotations

import hmac
import resource
import selectors
import socket
import time

from hccl_tools.common.language import tr
from hccl_tools.table.address import family
from tools.attempts import wire
from tools.attempts.launcher import Launcher, Left
from tools.attempts.verdict import NOT_STARTED, Attempts
from tools.attempts.wire import Connection, Lost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST_GUESTS = 64  # beyond the hosts that are missing
HELLO_WITHIN = 10  # seconds
LAST_WORDS = 2  # seconds in which the last messages must go out


class Hub:
    """Number 0 is our own launcher; the other hosts have a connection each."""

    def __init__(self, launcher: Launcher, facts: dict[str, Any]) -> None:
        self.launcher, self.facts = launcher, facts
        self.hosts: dict[int, Connection] = {}
        self.guests: dict[Connection, float] = {}  # who has not said what host it is, and until when it may
        self.attempts = Attempts(
            facts["hosts"], facts["restarts"], facts["limit"], facts["wait"], self.tell, facts["late"]
        )
        self.selector = selectors.DefaultSelector()
        self.selector.register(0, selectors.EVENT_READ, self.obey)
        self.door: socket.socket | None = None

    def serve(self) -> None:
        """Returns when our launcher leaves the job, or has ended."""
        try:
            self.open()
            if self.launcher.orders:
                self.obey()
            while True:
                waits = self.guests or self.attempts.waits() or any(host.unsent for host in self.hosts.values())
                for key, _ in self.selector.select(1 if waits else None):
                    key.data()
                self.attempts.check_time()
                self.look_after_connections()
        except Left:
            self.attempts.left(0, tr("its launcher has ended"))
            self.finish()

    def open(self) -> None:
        """Listens, until all hosts have come.  If that cannot be, the job ends."""
        want_files(len(self.facts["hosts"]) + 2 * MOST_GUESTS)
        place = self.facts["address"], self.facts["port"]
        try:
            self.door = socket.create_server(place, family=family(place[0]) or socket.AF_INET, backlog=1024)
        except OSError as error:
            text = tr(
                "cannot listen at {address} port {port} for the other hosts: {reason}",
                address=place[0],
                port=place[1],
                reason=error.strerror,
            )
            self.attempts.end(NOT_STARTED, 0, text)
            return
        self.door.setblocking(False)
        self.selector.register(self.door, selectors.EVENT_READ, self.accept)

    def obey(self) -> None:
        """The orders of our own launcher."""
        for order in self.launcher.take():
            self.hear(0, order)

    def hear(self, host: int, found: list[Any]) -> None:
        """A message of a host that has come.  Raises Lost, and Left if it is our own that leaves."""
        word, values = wire.take(found, wire.FROM_HOSTS)
        if word == "ready":
            self.attempts.ready(host, *values)
        elif word == "done":
            self.attempts.done(host, *values)
        elif word == "failed":
            self.attempts.failed(host, *values)
        elif word == "came":
            self.attempts.came(host, *values)
        elif word == "stop":
            status, text = values
            self.attempts.end(status, host, text)
        elif host == 0:
            raise Left
        else:
            raise Lost(tr("it has ended"))

    def tell(self, words: list[Any]) -> None:
        """A message for every host."""
        self.launcher.say(*words)
        for host in self.hosts.values():
            host.send(words)

    def accept(self) -> None:
        """Lets a guest in, unless there are too many."""
        if self.door is None:
            return
        try:
            plug, _ = self.door.accept()
        except OSError:  # it has gone again, or there are too many open files
            time.sleep(0.01)
            return
        if len(self.guests) >= MOST_GUESTS + len(self.facts["hosts"]) - len(self.hosts):
            plug.close()
            return
        guest = Connection(plug)
        self.guests[guest] = time.monotonic() + HELLO_WITHIN
        self.selector.register(plug, selectors.EVENT_READ, lambda: self.greet(guest))

    def greet(self, guest: Connection) -> None:
        """Makes a guest one of the hosts, or says why not."""
        if guest not in self.guests:
            return
        try:
            for found in guest.receive()[:1]:  # it waits for the answer
                self.welcome(guest, found)
        except Lost:
            self.forget(guest)

    def welcome(self, guest: Connection, found: list[Any]) -> None:
        """``hello JOB NUMBER``, then digest and words of each fact that must be alike.  Raises Lost."""
        kinds = {"hello": (str, int, *(str for _ in found[3:]))}
        job, number, *theirs = wire.take(found, kinds)[1]
        ours = self.facts["alike"]
        if not hmac.compare_digest(job.encode(), self.facts["job"].encode()):
            text = tr(
                "another job is there; or the rank tables, the numbers of ranks or the versions of this project differ"
            )
            guest.send(["refused", text])
            raise Lost(text)
        hosts = self.facts["hosts"]
        where = hosts[number] if number < len(hosts) else str(number)
        fault = self.fault(number) or wire.unlike(ours, theirs, hosts[0], where)
        if fault:
            guest.send(["refused", fault])
            self.tell(["say", fault])
            raise Lost(fault)
        del self.guests[guest]
        self.hosts[number] = guest
        self.selector.modify(guest.plug, selectors.EVENT_READ, lambda: self.listen(number))
        guest.send(["welcome"])
        if len(self.hosts) == len(self.facts["hosts"]) - 1:
            self.close_door()

    def fault(self, number: int) -> str:
        """Why this host cannot come; empty if it can."""
        if not 0 < number < len(self.facts["hosts"]):
            return tr("the job has no host number {number}", number=number)
        if number in self.hosts:
            return tr("{host} has come already: the command was typed there twice", host=self.facts["hosts"][number])
        return ""

    def listen(self, number: int) -> None:
        """What a host says; without a connection it is lost."""
        host = self.hosts.get(number)
        if host is None:
            return
        try:
            for found in host.receive():
                self.hear(number, found)
        except Lost as error:
            del self.hosts[number]
            self.forget(host)
            self.attempts.left(number, tr("its launcher is lost: {reason}", reason=error))

    def forget(self, connection: Connection) -> None:
        """Closes a connection; what was sent last still arrives."""
        self.guests.pop(connection, None)
        self.selector.unregister(connection.plug)
        connection.plug.close()

    def close_door(self) -> None:
        """From now on nobody can connect."""
        if self.door:
            self.selector.unregister(self.door)
            self.door.close()
            self.door = None
        for guest in list(self.guests):
            self.forget(guest)

    def look_after_connections(self) -> None:
        """Sends what did not go out at once, and closes the connections of guests that say nothing."""
        for host in self.hosts.values():
            if host.unsent:
                host.flush()
        now = time.monotonic()
        for guest in [guest for guest, until in self.guests.items() if now >= until]:
            self.forget(guest)

    def finish(self) -> None:
        """The last messages go out."""
        end = time.monotonic() + LAST_WORDS
        while any(host.unsent for host in self.hosts.values()) and time.monotonic() < end:
            self.look_after_connections()
            time.sleep(0.05)


def want_files(wanted: int) -> tuple[int, int]:
    """Lets this process open so many files, as far as its hard limit goes; the limits before."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return soft, hard
