"""The process next to a launcher on a host other than rank 0's; it communicates with that host, which decides."""

from __future__ import annotations

import errno
import os
import select
import socket
import time

from hccl_tools.common.language import strerror, tr
from hccl_tools.table.address import family
from tools.attempts import wire
from tools.attempts.launcher import Launcher, Left
from tools.attempts.verdict import LOST, NOT_STARTED, TOLD_AFTER
from tools.attempts.wire import Connection, Lost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ANSWER_WITHIN = 10  # seconds
TRY_EVERY = 0.5  # seconds


class Refused(Exception):
    """The host of rank 0 does not let this one join."""


class Spoke:
    """Our launcher's side of the connection to the host of rank 0."""

    def __init__(self, launcher: Launcher, facts: dict[str, Any]) -> None:
        self.launcher, self.facts = launcher, facts
        self.first: str = facts["hosts"][0]
        self.number = 0  # of the attempt that was heard of last
        self.ended = False

    def serve(self) -> None:
        """Returns when our launcher leaves the job, or has ended."""
        try:
            connection = self.join()
            if connection:
                self.speak(connection)
            while ["leave"] not in self.launcher.take():  # the job has ended, and our launcher knows it
                pass
        except Left:
            return

    def join(self) -> Connection | None:
        """The connection to the host of rank 0, once its launcher runs; None if that has refused us, or never came."""
        began = time.monotonic()
        told = False
        place = tr("{address} port {port}", address=self.facts["address"], port=self.facts["port"])
        while (waited := time.monotonic() - began) < self.facts["wait"]:
            try:
                return self.try_to_join()
            except Refused as refusal:
                self.end(NOT_STARTED, f"{refusal}")
                return None
            except (Lost, OSError) as error:
                reason = strerror(error)
            if waited >= TOLD_AFTER and not told:
                told = True
                self.launcher.say(
                    "say",
                    tr(
                        "waiting for {first}: nobody answers at {place} ({reason})",
                        first=self.first,
                        place=place,
                        reason=reason,
                    ),
                )
            self.launcher.wait(None, 0, TRY_EVERY)
        remedy = tr("type the command there, too, with the same rank table, and let the port through the firewall")
        self.end(
            self.facts["late"],
            tr(
                "nobody answers at {place} after {seconds:.0f} s ({reason}); {remedy}",
                place=place,
                seconds=self.facts["wait"],
                reason=reason,
                remedy=remedy,
            ),
        )
        return None

    def try_to_join(self) -> Connection:
        """The connection, if there is an answer.  Raises Refused, Lost and OSError."""
        plug = socket.socket(family(self.facts["address"]) or socket.AF_INET, socket.SOCK_STREAM)
        connection = Connection(plug)
        try:
            self.connect(plug)
            alike = (value for _, *values in self.facts["alike"] for value in values)
            connection.send(["hello", self.facts["job"], self.facts["number"], *alike])
            if not self.launcher.wait(plug.fileno(), select.POLLIN, ANSWER_WITHIN):
                raise Lost(tr("it does not answer"))
            for found in connection.receive():
                word, values = wire.take(found, wire.TO_HOSTS)
                if word == "refused":
                    raise Refused(*values)
                if word != "welcome":
                    raise Lost(tr("it sent no answer"))
                return connection
            raise Lost(tr("it sent an incomplete line"))
        except BaseException:
            plug.close()
            raise

    def connect(self, plug: socket.socket) -> None:
        """Connects to the host of rank 0.  Raises OSError."""
        code = plug.connect_ex((self.facts["address"], self.facts["port"]))
        if code == errno.EINPROGRESS:
            if not self.launcher.wait(plug.fileno(), select.POLLOUT, ANSWER_WITHIN):
                code = errno.ETIMEDOUT
            else:
                code = plug.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise OSError(code, os.strerror(code))

    def speak(self, connection: Connection) -> None:
        """Passes messages in both directions, until the job ends.  Raises Left."""
        poll = select.poll()
        poll.register(0, select.POLLIN)
        poll.register(connection.plug.fileno(), select.POLLIN)
        try:
            if self.launcher.orders:
                self.obey(connection, self.launcher.take())
            while not self.ended:
                ready = dict(poll.poll())
                if connection.plug.fileno() in ready:
                    for found in connection.receive():
                        self.hear(found)
                if 0 in ready:
                    self.obey(connection, self.launcher.take())
        except Lost as error:
            self.end(LOST, tr("its launcher is disconnected: {reason}", reason=error))
        finally:
            connection.plug.close()

    def obey(self, connection: Connection, orders: list[list[Any]]) -> None:
        """Passes our launcher's orders on.  Raises Left."""
        for order in orders:
            connection.send(order)
            if order == ["leave"]:
                raise Left

    def hear(self, found: list[Any]) -> None:
        """Handles a message of the host of rank 0.  Raises Lost."""
        word, values = wire.take(found, wire.TO_HOSTS)
        if word in ("begin", "again", "restart", "over", "end"):
            self.number = values[0]
        self.ended = word in ("over", "end")
        self.launcher.say(word, *values)

    def end(self, status: int, text: str) -> None:
        """Ends the job on this host."""
        self.launcher.say("end", self.number, status, self.first, text)
