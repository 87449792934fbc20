"""A non-blocking connection: it moves the bytes of one conversation of talk.py."""

from __future__ import annotations

import selectors

from tools.preflight.links.talk import Foreign, Want

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket

    from tools.preflight.links.talk import Talk

_PIECE = 1 << 16  # bytes that are read at once


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
