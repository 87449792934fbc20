"""The ports on which a host listens for the others of a check, and the holders of those that are not free."""

from __future__ import annotations

import errno
import socket

from hccl_tools.common.language import tr
from hccl_tools.common.record import Row
from hccl_tools.table.address import family
from tools.launch.engines import port_holder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

BACKLOG = 1024  # connections that the kernel accepts before we do


def is_address(text: str) -> bool:
    """Whether it is an address, and not a name."""
    return family(text) is not None


def kind_of(address: str) -> int:
    """The family of an address; IPv4 for a name."""
    return family(address) or socket.AF_INET


class Doors(Row):
    """The ports on which a host listens.

    of: {port: its socket}.  faults: {port: why there is none}.  passing: those of the faults that pass by themselves.
    here: whether the host has the address.
    """

    of: dict[int, socket.socket]
    faults: dict[int, str]
    passing: list[int]
    here: bool


def listen(address: str, ports: Iterable[int]) -> Doors:
    """Opens the ports.

    address: empty where only a name is known.  Then the host listens at all of its own addresses, and so does one
    that does not have the address itself, behind a translation of addresses say.
    """
    doors: dict[int, socket.socket] = {}
    faults: dict[int, str] = {}
    passing = []
    kind = kind_of(address)
    here = not address or _owns(kind, address)
    at = address if address and here else ("::" if kind == socket.AF_INET6 else "0.0.0.0")
    for port in ports:
        door = socket.socket(kind, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the scheduler does
            door.bind((at, port))
            door.listen(BACKLOG)
            doors[port] = door
        except OSError as error:
            door.close()
            faults[port] = _why(error, port)
            if error.errno == errno.EADDRINUSE and port_holder.have_ended(port_holder.of(port)):
                passing.append(port)
    return Doors(of=doors, faults=faults, passing=passing, here=here)


def _owns(kind: int, address: str) -> bool:
    try:
        with socket.socket(kind, socket.SOCK_DGRAM) as probe:
            probe.bind((address, 0))
    except OSError as error:
        return error.errno != errno.EADDRNOTAVAIL
    return True


def _why(error: OSError, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return port_holder.words(port)
    if error.errno == errno.EACCES:
        return tr("only root may listen at a port below 1024")
    return error.strerror or str(error)
