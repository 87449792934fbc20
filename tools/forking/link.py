"""Messages between the agents of one host, through a socket that only this user's processes of this launch can use.

The socket has no file.  So nothing of it is left, its name always fits, and the file system need not support sockets.
The launcher passes on its name; the kernel identifies the other end.  A message is a size and a tuple.  The first one
of each connection begins with the secret of the launch.
"""

from __future__ import annotations

import marshal
import os
import select
import socket
import struct

from tools.supervise import proc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from hccl_tools.common.record import Row

    Message = tuple[Any, ...]

_SIZE = 4  # bytes of the size of a message
LONGEST = 1 << 24  # bytes of a message: an environment has less
WAITING = 4096  # connections that may wait; the kernel takes fewer
_CREDENTIALS = struct.Struct("iII")  # what SO_PEERCRED tells: process, user, group


def address(word: str, engine: int) -> bytes:
    """The name of the socket of the agents that this process of an engine has started; word: of the launch."""
    return b"\0mindspore-launch-" + os.fsencode(word) + b"-%d" % engine


def listen(name: bytes) -> socket.socket:
    """The socket of the first agent.  Raises OSError."""
    found = socket.socket(socket.AF_UNIX)
    try:
        found.bind(name)
        found.listen(WAITING)
    except OSError:
        found.close()
        raise
    return found


def connect(name: bytes) -> int:
    """A connection to it.  Raises OSError."""
    with socket.socket(socket.AF_UNIX) as found:
        found.setblocking(False)
        found.connect(name)
        if _peer(found)[1] != os.geteuid():
            raise PermissionError
        return found.detach()


def accept(listener: socket.socket) -> tuple[int, int]:
    """(the next connection, the process at its other end); of another user: (-1, that process).

    A process that this one cannot see is 0.  Raises OSError, and BlockingIOError if no connection waits.
    """
    found, _ = listener.accept()
    with found:
        process, user = _peer(found)
        return (found.detach() if user == os.geteuid() else -1), process


def _peer(connection: socket.socket) -> tuple[int, int]:
    """(process, user) at the other end, as the kernel has it."""
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    process, user, _ = _CREDENTIALS.unpack(found)
    return process, user


def packed(message: Message) -> bytes:
    """The message in the form for the socket."""
    text = marshal.dumps(message, 2)
    return len(text).to_bytes(_SIZE, "little") + text


def tell(descriptor: int, message: Message) -> bool:
    """Writes a short message; False if it is not accepted."""
    text = packed(message)
    try:
        return os.write(descriptor, text) == len(text)
    except OSError:
        return False


def send(descriptor: int, text: bytes) -> int:
    """How many bytes were written; 0: wait and try again; -1: they are not accepted."""
    try:
        return os.write(descriptor, text)
    except BlockingIOError:
        return 0
    except OSError:
        return -1


class Reader:
    """Reads a connection: calls `heard` with each message, which returns events, and `ended` at the end.

    secret: with which the other end has to begin; empty: it has begun.
    """

    def __init__(
        self, secret: bytes, heard: Callable[[Message], Iterable[Row]], ended: Callable[[], Iterable[Row]]
    ) -> None:
        self._secret, self._heard, self._ended = secret, heard, ended
        self._rest = b""
        self._over = False

    def take(self, block: bytes) -> list[Row]:
        """The events in the next bytes; b"" is the end of them."""
        self._rest += block
        found: list[Row] = []
        while not self._over and (text := self._next()) is not None:
            found += self._heard(marshal.loads(text))
        if not block and not self._over:
            self._over = True
            found += self._ended()
        return found

    def _next(self) -> bytes | None:
        """The next message, if all of it is there."""
        begin = len(self._secret)
        if begin:
            if len(self._rest) < begin:
                return None
            if self._rest[:begin] != self._secret:
                self._over = True  # a stranger; nobody answers
                return None
            self._rest, self._secret = self._rest[begin:], b""
        size = int.from_bytes(self._rest[:_SIZE], "little")
        if len(self._rest) < _SIZE or (size <= LONGEST and len(self._rest) < _SIZE + size):
            return None
        if size > LONGEST:
            self._over = True
            return None
        text, self._rest = self._rest[_SIZE : _SIZE + size], self._rest[_SIZE + size :]
        return text


class Process:
    """A process that is not our child; another process may get its id when it has ended."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        try:
            self.descriptor = os.pidfd_open(pid)
        except (AttributeError, OSError):
            self.descriptor = -1  # this kernel has none, nor has a Python built for such; or the process is gone
        self._began = _began(pid)

    def runs(self) -> bool:
        """Whether it has not ended."""
        if self.descriptor < 0:
            return bool(self._began) and _began(self.pid) == self._began
        waiting = select.poll()
        waiting.register(self.descriptor, select.POLLIN)
        return not waiting.poll(0)

    def read(self, descriptor: int, _: int) -> bytes:
        """For World.watch: returns the end of data when the process ends."""
        if self.runs():
            raise BlockingIOError
        return b""


def _began(pid: int) -> bytes:
    """When it has begun; empty if it is gone."""
    fields = proc.stat(pid)
    return fields[19] if len(fields) > 19 and fields[0] not in (b"Z", b"X") else b""
