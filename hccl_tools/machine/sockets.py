"""Reads the TCP sockets of this network namespace from the kernel's tables."""

from __future__ import annotations

from collections.abc import Iterator

from hccl_tools.common.record import Row

TABLES = ("/proc/net/tcp", "/proc/net/tcp6")  # a host without IPv6 has one of them
ESTABLISHED, LISTENS = "01", "0A"
ENDED = ("04", "05", "06", "09", "0B")  # nobody has it open; the kernel keeps its port for about a minute


class Socket(Row):
    """A row of a table."""

    local: str  # ADDRESS:PORT in hexadecimal digits
    remote: str
    state: str
    inode: str


def all_tcp(root: str = "") -> Iterator[Socket]:
    """The TCP sockets of all users; root: the folder that replaces / in tests."""
    for table in TABLES:
        try:
            with open(root + table, encoding="ascii", errors="replace") as file:
                rows = file.read().splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            cells = row.split()
            yield Socket(local=cells[1], remote=cells[2], state=cells[3], inode=cells[9])


def port(end: str) -> int:
    """The number of the port of ADDRESS:PORT."""
    return int(end.rpartition(":")[2], 16)
