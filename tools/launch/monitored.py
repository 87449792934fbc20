"""Checks the options of the monitoring process, --straggler and --metrics, before the start."""

from __future__ import annotations

import errno
import math
import os
import re
import socket
import stat

from hccl_tools.common.language import strerror, tr
from hccl_tools.common.refusal import USAGE, Refusal, misused
from hccl_tools.common.words import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.launch.request import Request

MOST_FACTOR = 1000.0
LINES = ".jsonl"  # how the name of a file of JSON lines ends; every other file is in Prometheus' text format
MARK = "# mindspore_launch metrics"  # begins the first line of our files in Prometheus' text format
MARK_OF_LINES = '{"mindspore_launch_metrics": '  # begins each line of our JSON lines
_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[0-9.]*):([0-9]{1,5})")  # a file of such a name: ./:9100
_FACTOR = re.compile(r"[0-9]{1,8}(\.[0-9]{0,8})?")
BACKLOG = 32  # connections that wait


def check(request: Request) -> None:
    """Raises Refusal where one of the two options cannot be used."""
    if request.straggler is not None:
        factor(request.straggler)
    if request.metrics is not None and not request.attempt:  # at a restart the process looks itself
        place = address(request.metrics)
        reason = fault_of(request.metrics) if place is None else "" if request.dry_run else fault_of_port(*place)
        if reason:
            raise Refusal(USAGE, f"--metrics {one_line(request.metrics)}: {reason}")


def factor(text: str) -> float:
    """The number that --straggler takes.  Raises Refusal."""
    number = float(text) if _FACTOR.fullmatch(text) else math.nan
    if 1 < number <= MOST_FACTOR:
        return number
    raise misused(
        "--straggler {text}: write how many times the median a step may take, a number above 1 such as 1.5",
        text=one_line(text),
    )


def address(text: str) -> tuple[str, int] | None:
    """(address or "", port) of --metrics [ADDRESS]:PORT; None: it names a file."""
    found = _ADDRESS.fullmatch(text)
    return (found[1].strip("[]"), int(found[2])) if found else None


def fault_of_port(address: str, port: int) -> str:
    """Why we cannot listen there, for a message; empty, if we can."""
    if not 0 < port < 65536:
        return tr("a port is a number from 1 to 65535")
    try:
        listen(address, port).close()
    except OSError as error:
        who = ""
        if error.errno == errno.EADDRINUSE:
            from hccl_tools.machine import sockets

            who = f" ({sockets.holder(port)})"
        return tr("nobody can listen there: {reason}; choose another port", reason=f"{strerror(error)}{who}")
    return ""


def fault_of(path: str) -> str:
    """Why metrics cannot be written to `path`, for a message; empty, if they can."""
    path = os.path.realpath(path)
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        return tr("there is no folder {folder}; make it, or name another file", folder=one_line(folder))
    try:
        if reason := fault_of_file(path):
            return reason
    except FileNotFoundError:
        pass  # it will be made
    except (OSError, ValueError) as error:
        return tr("cannot be read: {reason}", reason=strerror(error))
    if not os.access(folder, os.W_OK | os.X_OK):
        return tr("the folder {folder} cannot be written; name another file", folder=one_line(folder))
    return ""


def fault_of_file(path: str) -> str:
    """Why the file may not be replaced, or added to; empty, if it is one of ours.  Raises OSError."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        return tr("it is not a regular file; name another one")
    mark = MARK_OF_LINES if path.endswith(LINES) else MARK
    begin = first_line(path)
    if begin and not begin.startswith(mark):
        return tr("the file exists and has no metrics of a launch; name another one, or remove it")
    return ""


def first_line(path: str) -> str:
    """The beginning of a regular file's first line, up to some hundred characters.  Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 500).split(b"\n")[0].decode("utf-8", "replace")
    finally:
        os.close(descriptor)


def listen(address: str, port: int) -> socket.socket:
    """The socket that listens; address "": all of this host, of IPv6, too, where it has that.  Raises OSError."""
    if not address:
        try:
            return _bound(socket.AF_INET6, "::", port)
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                raise
            address = "0.0.0.0"
    return _bound(socket.AF_INET6 if ":" in address else socket.AF_INET, address, port)


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
