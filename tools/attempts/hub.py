"""The process next to the launcher of rank 0's host: the others connect to it, and it decides for all of them."""

from __future__ import annotations

import selectors
import socket
import time

from hccl_tools.common.language import strerror, tr
from hccl_tools.table.address import family
from tools.attempts import door, wire
from tools.attempts.launcher import Launcher, Left
from tools.attempts.verdict import NOT_STARTED, Attempts
from tools.attempts.wire import Connection, Lost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LAST_WORDS = 2  # seconds in which the last messages must go out


class Hub:
    """Number 0 is our own launcher; the other hosts have a connection each."""

    def __init__(self, launcher: Launcher, facts: dict[str, Any]) -> None:
        self.launcher, self.facts = launcher, facts
        self.hosts: dict[int, Connection] = {}
        self.attempts = Attempts(
            facts["hosts"], facts["restarts"], facts["limit"], facts["wait"], self.tell, facts["late"]
        )
        self.door = door.Door(lambda: len(facts["hosts"]) - len(self.hosts), self.welcome)
        self.door.selector.register(0, selectors.EVENT_READ, self.obey)

    def serve(self) -> None:
        """Returns when our launcher leaves the job, or has ended."""
        try:
            self.open()
            if self.launcher.orders:
                self.obey()
            while True:
                waits = self.door.guests or self.attempts.waits() or any(host.unsent for host in self.hosts.values())
                for key, _ in self.door.selector.select(1 if waits else None):
                    key.data()
                self.attempts.check_time()
                self.look_after_connections()
        except Left:
            self.attempts.left(0, tr("its launcher has ended"))
            self.finish()

    def open(self) -> None:
        """Listens, until all hosts have come.  If that is impossible, the job ends."""
        door.want_files(len(self.facts["hosts"]))
        place = self.facts["address"], self.facts["port"]
        try:
            kind = family(place[0]) or socket.AF_INET
            self.door.open(socket.create_server(place, family=kind, backlog=door.BACKLOG))
        except OSError as error:
            text = tr(
                "cannot listen at {address} port {port} for the other hosts: {reason}",
                address=place[0],
                port=place[1],
                reason=strerror(error),
            )
            self.attempts.end(NOT_STARTED, 0, text)

    def obey(self) -> None:
        """Follows the orders of our own launcher."""
        for order in self.launcher.take():
            self.hear(0, order)

    def hear(self, host: int, found: list[Any]) -> None:
        """Handles a message of a host that has come.  Raises Lost, and Left if our own launcher leaves."""
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
        """Sends a message to every host."""
        self.launcher.say(*words)
        for host in self.hosts.values():
            host.send(words)

    def welcome(self, guest: Connection, found: list[Any]) -> None:
        """``hello JOB NUMBER``, then digest and words of each fact that must be alike.  Raises Lost."""
        is_ours, number, theirs = door.hello(found, self.facts["job"])
        if not is_ours:
            text = tr(
                "another job is there; or the rank tables, the numbers of ranks or the versions of this project differ"
            )
            door.refuse(guest, text)
        hosts = self.facts["hosts"]
        where = hosts[number] if number < len(hosts) else str(number)
        fault = self.fault(number) or wire.unlike(self.facts["alike"], theirs, hosts[0], where)
        if fault:
            self.tell(["say", fault])
            door.refuse(guest, fault)
        self.hosts[number] = guest
        self.door.take_in(guest, lambda: self.listen(number))
        if len(self.hosts) == len(hosts) - 1:
            self.door.close()

    def fault(self, number: int) -> str:
        """Why this host cannot take part; empty if it can."""
        if not 0 < number < len(self.facts["hosts"]):
            return tr("the job has no host number {number}", number=number)
        if number in self.hosts:
            return tr("{host} has already joined: the command was typed there twice", host=self.facts["hosts"][number])
        return ""

    def listen(self, number: int) -> None:
        """Handles a line of a host; without a connection the host is lost."""
        host = self.hosts.get(number)
        if host is None:
            return
        try:
            for found in host.receive():
                self.hear(number, found)
        except Lost as error:
            del self.hosts[number]
            self.door.forget(host)
            self.attempts.left(number, tr("its launcher is disconnected: {reason}", reason=error))

    def look_after_connections(self) -> None:
        """Sends what did not go out at once, and closes the connections of guests that send nothing."""
        for host in self.hosts.values():
            if host.unsent:
                host.flush()
        self.door.forget_silent()

    def finish(self) -> None:
        """Sends the last messages."""
        end = time.monotonic() + LAST_WORDS
        while any(host.unsent for host in self.hosts.values()) and time.monotonic() < end:
            self.look_after_connections()
            time.sleep(0.05)
