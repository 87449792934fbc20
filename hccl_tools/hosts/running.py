"""Runs a command for one host, and handles its pipes; together.py runs many of them."""

from __future__ import annotations

import contextlib
import os
import signal
import time

from hccl_tools.common.record import Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator, Sequence

    Process = subprocess.Popen[bytes]

MOST_KEPT = 1 << 18  # bytes of a command's stdout, and of its stderr


class Call(Row):
    """A command, and what it gets on its stdin, which stays open until it ends; None: its stdin is empty.

    most: bytes of its stdout, and of its stderr, that are kept.
    """

    words: Sequence[str]
    sent: bytes | None = None
    most: int = MOST_KEPT


@contextlib.contextmanager
def signals_held() -> Iterator[None]:
    """Delays signals that raise until the end: everything that starts inside is then known and can be stopped."""
    came: list[int] = []
    found = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    handlers = {number: handler for number, handler in found.items() if callable(handler)}
    for number in handlers:
        signal.signal(number, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    for late in map(signal.Signals, came):
        handlers[late](late, None)


class Running:
    """A command that runs."""

    def __init__(self, host: str, call: Call, process: Process) -> None:
        self.host, self.process, self.most = host, process, call.most
        self.to_send = memoryview(call.sent or b"")
        self.began = time.monotonic()
        self.kept: dict[int, bytearray] = {}  # {descriptor: its output}
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe:
                os.set_blocking(pipe.fileno(), False)

    def take(self, pipe: int) -> bool:
        """Reads what the pipe has, and drops what exceeds the limit; False: it has ended."""
        try:
            data = os.read(pipe, 1 << 16)
        except BlockingIOError:
            return True
        kept = self.kept.setdefault(pipe, bytearray())
        kept += data[: self.most - len(kept)]
        return bool(data)

    def send(self) -> bool:
        """Writes as much as the pipe accepts; False: nothing is left to write."""
        assert self.process.stdin
        try:
            written = os.write(self.process.stdin.fileno(), self.to_send)
        except BlockingIOError:
            return True
        except OSError:  # it reads no more; its exit status will state why
            return False
        self.to_send = self.to_send[written:]
        return bool(self.to_send)

    def output(self, pipe: int) -> bytes:
        return bytes(self.kept.get(pipe, b""))

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):  # it has ended
            os.killpg(self.process.pid, signal.SIGKILL)
