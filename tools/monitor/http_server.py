"""A minimal HTTP server: a few pages, GET only, in one thread of the process next to the launcher.

Anyone who reaches the port can ask, so everything has a limit: the bytes of a request, the connections, and the time of
each.  A connection has one request.  Nothing that a client sends is kept, or written anywhere.
"""

from __future__ import annotations

import select
import socket
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Page = tuple[int, str, bytes]  # status, type of the content, content

MOST_REQUEST = 8192  # bytes up to the empty line
MOST_CONNECTIONS = 32  # at once; one more, and the oldest is closed
WITHIN = 5.0  # seconds for a request, and the same again for each step of its answer
_BLOCK = 1 << 16
_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}
TEXT = "text/plain; charset=utf-8"


class _Connection:
    """One of them.  answer: what is still to be sent; None: the request is not whole."""

    def __init__(self, peer: socket.socket) -> None:
        self.peer, self.request, self.answer = peer, b"", None
        self.until = time.monotonic() + WITHIN

    answer: memoryview | None

    def step(self, page_of: Callable[[bytes], bytes]) -> bool:
        """Reads or writes what it can without waiting; whether the connection goes on."""
        try:
            if self.answer is None:
                return self._read(page_of)
            self.answer = self.answer[self.peer.send(self.answer[:_BLOCK]) :]
        except BlockingIOError:
            return True
        except OSError:
            return False  # the other side is gone
        self.until = time.monotonic() + WITHIN
        return bool(self.answer)

    def _read(self, page_of: Callable[[bytes], bytes]) -> bool:
        data = self.peer.recv(MOST_REQUEST)
        self.request += data
        if b"\r\n\r\n" in self.request or b"\n\n" in self.request or len(self.request) >= MOST_REQUEST:
            self.answer = memoryview(page_of(self.request))
            return True
        return bool(data)


class Server:
    """pages: what a path has, as a function; called for each request, so it must be quick."""

    def __init__(self, listener: socket.socket, page: Callable[[str], Page | None]) -> None:
        self._listener, self._page = listener, page
        self._connections: dict[int, _Connection] = {}  # in the order in which they came
        self._poll = select.poll()
        self._poll.register(listener, select.POLLIN)

    def start(self) -> None:
        """Answers from now on, until the process ends."""
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            self.look(WITHIN)

    def look(self, seconds: float) -> None:
        """Handles what has arrived, and waits at most this long."""
        for number, _ in self._poll.poll(seconds * 1000):
            if number == self._listener.fileno():
                self._accept()
            elif number in self._connections:
                self._step(number)
        now = time.monotonic()
        for number in [number for number, one in self._connections.items() if now >= one.until]:
            self._close(number)

    def _accept(self) -> None:
        try:
            peer, _ = self._listener.accept()
        except OSError:
            time.sleep(0.05)  # it has gone again, or this process has no file left to open
            return
        peer.setblocking(False)
        if len(self._connections) >= MOST_CONNECTIONS:
            self._close(next(iter(self._connections)))
        self._connections[peer.fileno()] = _Connection(peer)
        self._poll.register(peer, select.POLLIN)

    def _step(self, number: int) -> None:
        one = self._connections[number]
        if not one.step(self._answer):
            self._close(number)
        elif one.answer is not None:
            self._poll.modify(number, select.POLLOUT)

    def _close(self, number: int) -> None:
        self._poll.unregister(number)
        self._connections.pop(number).peer.close()

    def _answer(self, request: bytes) -> bytes:
        """The answer to the request, whatever it holds."""
        method, _, rest = request.split(b"\n", 1)[0].rstrip(b"\r").partition(b" ")
        path, _, version = rest.partition(b" ")
        if not version.startswith(b"HTTP/1."):
            page: Page | None = (400, TEXT, b"this is not HTTP/1\n")
        elif method not in (b"GET", b"HEAD"):
            page = (405, TEXT, b"only GET\n")
        else:
            page = self._page(path.split(b"?", 1)[0].decode("ascii", "replace"))
        status, kind, content = page or (404, TEXT, b"there is /metrics and /healthz\n")
        head = f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n"
        head += "Allow: GET, HEAD\r\n" if status == 405 else ""
        return (head + "Connection: close\r\n\r\n").encode() + (b"" if method == b"HEAD" else content)
