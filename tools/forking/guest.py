"""The first agent's view of another agent on its host; and the file with the output of the import."""

from __future__ import annotations

import os

from tools.forking import link

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.forking.order import Order

END_OF_LOG = 1 << 16  # bytes of what the import has printed, for the rank's log


class Guest:
    """Another agent of the host.

    process: its own, as the kernel has it; order: what it wants; pid: its rank's process, once that is a fork.
    known: it knows that process; gone: the connection has ended
    """

    order: Order

    def __init__(self, connection: int, process: int) -> None:
        self.connection, self.process = connection, process
        self.pid = 0
        self.known = self.gone = False

    def tell(self, *message: object) -> None:
        """Reports it, unless the other end is gone."""
        if not self.gone:
            link.tell(self.connection, message)


def unlink(path: str) -> None:
    """Removes a file that has copies."""
    try:
        os.unlink(path)
    except OSError:
        return


def append(path: str, log: int) -> None:
    """Writes the end of a file into the rank's log."""
    try:
        with open(path, "rb") as file:
            os.write(log, file.read()[-END_OF_LOG:])
    except OSError:
        return  # a full disk: the exit code is left
