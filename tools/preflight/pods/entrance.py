"""Accepts the pods of a check: decides which may take part, and keeps their connections."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import signal
import socket

from hccl_tools.common.language import strerror, tr
from hccl_tools.common.numbers import whole_number
from hccl_tools.common.record import Row
from hccl_tools.common.refusal import refused
from hccl_tools.common.words import clauses
from hccl_tools.hosts.ask import Answer
from hccl_tools.machine import host, sockets
from hccl_tools.table.address import family
from tools.attempts import door, wire
from tools.attempts.wire import Connection, Lost
from tools.launch.request import MAX_RANKS
from tools.preflight.pods import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from tools.preflight.pods.place import Place

    Alike = Sequence[tuple[str, str, str]]  # (what it is, its digest, its words)

SOON = 0.05  # seconds: the longest wait without a look at the clock while lines wait for room
_STEP = 1.0  # the same otherwise
_HELLO = ("name", "address", "pods", "nonce")  # what follows job and number


class Pod(Row):
    """A pod that has come."""

    line: Connection
    name: str  # its host name; empty: it has none that can be told
    address: str


class Entrance:
    """The pods that have come. alike: what must be the same in all of them."""

    def __init__(self, place: Place, alike: Alike) -> None:
        self.place, self.alike = place, alike
        self.pods = place.pods  # None until the first pod tells it
        self.come: dict[int, Pod] = {}
        self.reasons: dict[int, str] = {}  # why a pod does not take part; what was wrong last
        self.refused: set[int] = set()  # pods for which it is of no use to wait
        self.strangers, self.turned_away = 0, ""  # how many were of no pod of this job; why a pod was refused
        self.final_names: list[str] = []  # once no other pod can come
        self.answers: dict[int, Answer] = {}
        self.here = place.address
        self.door = door.Door(lambda: len(self.missing()), self.welcome)
        self.child = 0
        self.files: tuple[int, int] | None = None  # the limits before: those of a launch are its ranks'

    def is_complete(self) -> bool:
        """Whether all pods that may still come are there."""
        return self.pods is not None and not set(range(self.pods)) - self.present()

    def present(self) -> set[int]:
        """The numbers of those that need not come any more."""
        own = set() if self.place.number is None else {self.place.number}
        return own | set(self.come) | self.refused

    def missing(self) -> list[int]:
        """The numbers of those that may still come."""
        return sorted(set(range(self.pods or 0)) - self.present())

    def open(self) -> None:
        """Listens for the other pods.  Raises Refusal."""
        port, address = self.place.port, self.place.address
        self.files = door.want_files(self.place.pods or MAX_RANKS)
        kind = family(address) if address and host.owns(address) else None
        try:
            if kind is not None:
                self.door.open(socket.create_server((address, port), family=kind, backlog=door.BACKLOG))
            else:
                self.door.open(_at_all_addresses(port))
        except OSError as error:
            raise refused(
                "cannot listen at {address} port {port} for the other pods: {reason}",
                address=address or "*",
                port=port,
                reason=sockets.holder(port) if error.errno == errno.EADDRINUSE else strerror(error),
            ) from error

    def step(self, seconds: float) -> None:
        """Takes what happens within a second."""
        most = SOON if any(pod.line.unsent for pod in self.come.values()) else _STEP
        for key, _ in self.door.selector.select(max(0.0, min(most, seconds))):
            key.data()
        self.door.forget_silent()
        for pod in self.come.values():
            if pod.line.unsent:
                pod.line.flush()

    def welcome(self, guest: Connection, found: list[Any]) -> None:
        """``hello``, as in messages.py, or as that of launchers, who may come here, too.  Raises Lost."""
        is_ours, number, more = door.hello(found, self.place.job)
        if not is_ours:
            self.strangers += 1
            text = tr("the pods of another job are checked there, or its launcher runs with different options")
            door.refuse(guest, text)
        name, address, counted, nonce, *theirs = [*more, "", "", "", ""] if len(more) < len(_HELLO) else more
        pods = whole_number(counted, 1, MAX_RANKS)
        self.pods = self.pods or pods
        fault = self.fault(number, pods)
        if not fault and theirs != [word for _, *words in self.alike for word in words]:
            fault = wire.unlike(self.alike, theirs, *self._of_both(number, name))
        if fault:
            self.turned_away = fault
            if 0 <= number < (self.pods or 0) and number not in self.present():
                self.refused.add(number)
                self.reasons[number] = fault
            door.refuse(guest, fault)
        guest.longest = guest.most_unsent = messages.LONGEST
        seen = _plain(guest.plug.getpeername()[0])
        self.here = self.here or _plain(guest.plug.getsockname()[0])
        self.come[number] = Pod(guest, name if messages.is_name(name) else "", address if family(address) else seen)
        self.reasons.pop(number, None)
        proof = messages.proof(self.place.job, nonce)
        self.door.take_in(guest, lambda: self.listen(number), proof, self.place.wait)

    def _of_both(self, number: int, name: str) -> tuple[str, str]:
        """What this pod is called, and one that comes."""
        names = self.names({number: name} if messages.is_name(name) else {})
        own = self.place.number
        return messages.own_name() if own is None else names[own], names[number]

    def fault(self, number: int, pods: int | None) -> str:
        """Why this pod cannot take part; empty if it can."""
        if pods is None or self.pods != pods:
            counts = {"here": self.pods, "there": pods}
            text = tr("the job has {there} pods by its environment, and {here} by that of the first pod", **counts)
            return clauses(text, tr("give all pods the same MS_WORKER_NUM and MS_LOCAL_WORKER"))
        if not 0 <= number < pods:
            return tr("the job has no host number {number}", number=number)
        if number in self.come or number == self.place.number:
            return tr("another pod has number {number}, too; each needs its own: MS_NODE_RANK", number=number)
        return ""

    def listen(self, number: int) -> None:
        """Handles a pod's line; without a connection the pod is lost, and may come again while others are missing."""
        pod = self.come.get(number)
        if pod is None:
            return
        try:
            for found in pod.line.receive():
                _, values = wire.take(found, messages.FROM_PODS, messages.LONGEST)
                self._answered(number, messages.unpacked(values[0]))
        except Lost as error:
            del self.come[number]
            self.reasons[number] = tr("its check has ended: {reason}", reason=error)
            self.door.forget(pod.line)

    def _answered(self, number: int, document: Any) -> None:
        self.answers.setdefault(number, Answer(host="", content=document, lines=[]))

    def names(self, more: Mapping[int, str] | None = None) -> list[str]:
        """The names of the pods, by their numbers. more: the host names of some that have not come."""
        if self.final_names:
            return self.final_names
        told = {**{number: pod.name for number, pod in self.come.items()}, **(more or {})}
        if self.place.number is not None:
            told[self.place.number] = messages.own_name()
        return messages.choose_names(self.pods or 0, told, self.place.names)

    def own_name(self) -> str:
        """The name of this pod; a pod without ranks has only its host name."""
        number = self.place.number
        return messages.own_name() if number is None else self.names()[number]

    def close(self) -> None:
        """Closes everything."""
        self.door.close()
        for pod in self.come.values():
            pod.line.plug.close()
        self.door.selector.close()
        if self.files:
            resource.setrlimit(resource.RLIMIT_NOFILE, self.files)
        if self.child:  # a launch takes every child that is left for one of its ranks'
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(self.child, signal.SIGKILL)
                os.waitpid(self.child, 0)


def _at_all_addresses(port: int) -> socket.socket:
    both = socket.has_dualstack_ipv6()
    kind = socket.AF_INET6 if both else socket.AF_INET
    return socket.create_server(("", port), family=kind, backlog=door.BACKLOG, dualstack_ipv6=both)


def _plain(address: str) -> str:
    """An IPv4 address as such, and not as one of IPv6."""
    return address[len("::ffff:") :] if address.startswith("::ffff:") else address
