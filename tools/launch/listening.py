"""Opens the listening socket for the pages of --metrics :PORT."""

from __future__ import annotations

import errno
import socket

BACKLOG = 32  # connections that wait


def listen(address: str, port: int) -> socket.socket:
    """The socket that listens; address "": all of this host, of IPv6, too, where it has that.  Raises OSError."""
    if not address:
        try:
            return _bound(socket.AF_INET6, "::", port)
        except OSError as error:
            if error.errno is not None and _is_taken(error.errno):
                raise
            address = "0.0.0.0"
    return _bound(socket.AF_INET6 if ":" in address else socket.AF_INET, address, port)


def _is_taken(number: int) -> bool:
    return number in (errno.EADDRINUSE, errno.EACCES)


def _bound(family: int, address: str, port: int) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(address != "::"))
        listener.bind((address, port))
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener
