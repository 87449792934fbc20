"""The TCP ports of this network namespace: those that the kernel may assign, and those on which servers listen."""

from __future__ import annotations

from collections.abc import Collection

from hccl_tools.common.numbers import whole_number
from hccl_tools.machine import sockets, system_files

OUTGOING = "/proc/sys/net/ipv4/ip_local_port_range"
RESERVED = "/proc/sys/net/ipv4/ip_local_reserved_ports"
MOST = 65535
_LONGEST = 1 << 20  # bytes of a file


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
    servers = (each for each in sockets.all_tcp(root) if each.state == sockets.LISTENS)
    return {sockets.port(each.local) for each in servers} & wanted


def _ports(text: str) -> range | None:
    """The ports of ``first last``, or of one number."""
    words = [whole_number(word, most=MOST) for word in text.split()]
    first, last = (words[0], words[-1]) if words else (None, None)
    return None if first is None or last is None else range(first, last + 1)
