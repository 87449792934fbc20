"""Exchanges lines over TCP between the launchers of a job; each line is a JSON list that begins with a keyword.

Any program that connects may send anything. So lines are limited in their length, their depth and the types of their
values.
"""

from __future__ import annotations

import json
import socket

from hccl_tools.common.language import strerror, tr
from hccl_tools.common.words import short

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

LONGEST_LINE = 1 << 13
LONGEST_TEXT = 400
BIGGEST = 10**9
MOST_UNSENT = 1 << 16
_PIECE = 1 << 16  # bytes that are read at once, where lines may be that long
# The kernel of the other host answers for it, so that a busy host is not taken for lost: after about 11 s without an
# answer it is, as with mpirun.
_KEEPALIVE = {"SO_KEEPALIVE": 1, "TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 2, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 11000}


# The messages: what follows the word.  NUMBER is that of an attempt, STATUS an exit code.
FROM_HOSTS: dict[str, tuple[type, ...]] = {
    "ready": (int,),  # NUMBER: everything of the attempt before it has ended here
    "failed": (int, int, str),  # NUMBER STATUS TEXT
    "came": (int, int, int, int, str),  # NUMBER STEP STEP CHECKPOINT TEXT: how far a failed attempt came here
    "done": (int,),  # NUMBER: all ranks of this host have ended with 0
    "stop": (int, str),  # STATUS TEXT: the job ends
    "leave": (),  # the launcher ends
}
TO_HOSTS: dict[str, tuple[type, ...]] = {
    "welcome": (),
    "refused": (str,),
    "say": (str,),  # TEXT for the user
    "begin": (int,),  # NUMBER: all hosts are ready for it
    "again": (int, int, str, str),  # NUMBER STATUS HOST TEXT: this attempt has failed
    "restart": (int, int),  # NUMBER VAIN: another one follows; so many restarts in a row made no progress
    "over": (int, int, str),  # NUMBER VAIN TEXT: there is no other one, and why
    "end": (int, int, str, str),  # as "again": the job ends
}


class Lost(Exception):
    """The connection has ended, or is not used as we do.  The text is the reason."""


class Connection:
    """A connection that never waits.  longest: of a line; most_unsent: bytes that may wait for room."""

    def __init__(self, plug: socket.socket, longest: int = LONGEST_LINE, most_unsent: int = MOST_UNSENT) -> None:
        self.plug, self.longest, self.most_unsent = plug, longest, most_unsent
        self._received, self.unsent = bytearray(), bytearray()
        plug.setblocking(False)
        for name, value in _KEEPALIVE.items() if plug.family != socket.AF_UNIX else ():
            level = socket.SOL_SOCKET if name.startswith("SO_") else socket.IPPROTO_TCP
            plug.setsockopt(level, getattr(socket, name), value)

    def receive(self) -> list[list[Any]]:
        """The messages that have come.  Raises Lost."""
        try:
            data = self.plug.recv(max(LONGEST_LINE, min(self.longest, _PIECE)))
        except BlockingIOError:
            return []
        except OSError as error:
            raise Lost(strerror(error)) from error
        if not data:
            raise Lost(tr("it has closed the connection"))
        *lines, rest = bytes(self._received + data).split(b"\n")
        self._received = bytearray(rest)
        if len(rest) > self.longest:
            raise Lost(tr("it sent a line that is too long"))
        return [message(line) for line in lines]

    def send(self, words: list[Any]) -> None:
        """Sends it now, or as soon as there is room.  What cannot be sent is lost: `receive` then reports why."""
        self.unsent += json.dumps(words).encode() + b"\n"
        self.flush()

    def flush(self) -> None:
        """Sends as much as there is room for."""
        try:
            del self.unsent[: self.plug.send(self.unsent)]
        except BlockingIOError:
            if len(self.unsent) > self.most_unsent:
                self.close()
        except OSError:
            self.unsent.clear()

    def close(self) -> None:
        """Ends it in both directions, which `receive` sees."""
        self.unsent.clear()
        try:
            self.plug.shutdown(socket.SHUT_RDWR)
        except OSError:  # the other side was faster
            self.plug.setblocking(False)


def message(line: bytes) -> list[Any]:
    """The list in a line; its first item is a word.  Raises Lost."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Lost(tr("it sent something that is not JSON")) from error
    if not isinstance(found, list) or not found or not isinstance(found[0], str):
        raise Lost(tr("it sent no message"))
    return found


def take(found: list[Any], forms: dict[str, tuple[type, ...]], longest: int = LONGEST_TEXT) -> tuple[str, list[Any]]:
    """(word, values) of a message of one of these forms: with numbers and texts of that length.  Raises Lost."""
    word, *values = found
    if [type(value) for value in values] != list(forms.get(word, (None,))):
        raise Lost(tr("it sent an unknown message"))
    if any(not 0 <= value <= BIGGEST for value in values if isinstance(value, int)):
        raise Lost(tr("it sent a number out of bounds"))
    return word, [short(value, longest) if isinstance(value, str) else value for value in values]


def unlike(ours: Sequence[Sequence[str]], theirs: Sequence[str], here: str, where: str) -> str:
    """The facts that differ on the host `where`; empty if none does.

    ours: (what it is, its digest, its words) of what must be the same; theirs: digest and words of each.
    """
    if len(theirs) != 2 * len(ours):
        return tr("the hosts have different versions of this project")
    for (label, digest, words), found, others in zip(ours, theirs[::2], theirs[1::2]):
        if found != digest:
            return tr(
                "{label}: {here} has {words}, {where} has {others}; it must be the same on every host",
                label=label,
                here=here,
                words=words,
                where=where,
                others=others,
            )
    return ""
