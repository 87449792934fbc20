"""The TCP sockets of this network namespace: ports on which servers listen, and those that the kernel may assign."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator

from hccl_tools.common.language import tr
from hccl_tools.common.numbers import whole_number
from hccl_tools.common.record import Row
from hccl_tools.common.words import one_line, short
from hccl_tools.machine import system_files

TABLES = ("/proc/net/tcp", "/proc/net/tcp6")  # a host without IPv6 has one of them
ESTABLISHED, LISTENS = "01", "0A"
ENDED = ("04", "05", "06", "09", "0B")  # nobody has it open; the kernel keeps its port for about a minute
OUTGOING = "/proc/sys/net/ipv4/ip_local_port_range"
RESERVED = "/proc/sys/net/ipv4/ip_local_reserved_ports"
MOST = 65535


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


def outgoing(root: str = "") -> range | None:
    """The ports of the kernel's range for outgoing connections; None: it does not show them.

    root: the folder that replaces / in tests.
    """
    return _ports(system_files.read(root + OUTGOING) or "")


def reserved(root: str = "") -> str:
    """The list of ports that the kernel leaves out, in its own form: ``8080,60000-60031``."""
    return system_files.read(root + RESERVED) or ""


def handed_out(ports: Collection[int], root: str = "") -> set[int]:
    """The ports among these that the kernel may give to any outgoing connection."""
    found = set(ports) & set(outgoing(root) or ())
    for part in reserved(root).split(",") if found else ():
        found -= set(_ports(part.replace("-", " ")) or ())
    return found


def to_keep_free(ports: str, root: str = "") -> str:
    """The command of root that makes the kernel reserve these ports, in addition to those reserved so far."""
    kept = ",".join(filter(None, (reserved(root), ports)))
    return f"sysctl -w net.ipv4.ip_local_reserved_ports={kept}"


def listening(ports: Collection[int], root: str = "") -> set[int]:
    """The ports among these on which a server listens."""
    wanted = set(ports)
    if not wanted:
        return wanted  # the kernel takes milliseconds to list its sockets
    servers = (each for each in all_tcp(root) if each.state == LISTENS)
    return {port(each.local) for each in servers} & wanted


def _ports(text: str) -> range | None:
    """The ports of ``first last``, or of one number."""
    words = [whole_number(word, most=MOST) for word in text.split()]
    first, last = (words[0], words[-1]) if words else (None, None)
    return None if first is None or last is None else range(first, last + 1)


def holder(port: int) -> str:
    """Names the process that listens there, with its command, or states that none of ours does."""
    holders = of_port(port)
    places = {f"socket:[{each.inode}]" for each in holders if each.state == LISTENS}
    for name in os.listdir("/proc") if places else ():
        if name.isdigit() and _has_open(name, places):
            return tr("process {pid} listens there: {command}", pid=name, command=_command(name))
    if places:
        return tr("a process of another user or container listens there")
    if have_ended(holders):
        return tr("a connection that has just ended keeps it for about a minute")
    return tr("another connection uses it, or has just used it")


def of_port(number: int) -> list[Socket]:
    """The sockets of all users that have the port on this side."""
    return [each for each in all_tcp() if port(each.local) == number]


def have_ended(holders: list[Socket]) -> bool:
    """Whether these are connections that are not open in any process any more."""
    return bool(holders) and all(each.state in ENDED for each in holders)


def _has_open(pid: str, places: set[str]) -> bool:
    folder = f"/proc/{pid}/fd"
    try:
        return any(os.readlink(f"{folder}/{number}") in places for number in os.listdir(folder))
    except OSError:
        return False  # it has ended, or is another user's


def _command(pid: str) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            text = file.read(4096).replace(b"\0", b" ").strip()
    except OSError:
        return "?"
    return short(one_line(os.fsdecode(text)), 100)
