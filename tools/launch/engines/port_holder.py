"""Finds the process that listens on a TCP port of this host, for a launch that cannot have the port."""

from __future__ import annotations

import os

from hccl_tools.common.language import tr
from hccl_tools.common.words import one_line, short
from hccl_tools.machine import sockets


def words(port: int) -> str:
    """Names the process that listens there, with its command, or states that none of ours does."""
    holders = of(port)
    places = {f"socket:[{each.inode}]" for each in holders if each.state == sockets.LISTENS}
    for name in os.listdir("/proc") if places else ():
        if name.isdigit() and _has_open(name, places):
            return tr("process {pid} listens there: {command}", pid=name, command=_command(name))
    if places:
        return tr("a process of another user or container listens there")
    if have_ended(holders):
        return tr("a connection that has just ended keeps it for about a minute")
    return tr("another connection uses it, or has just used it")


def of(port: int) -> list[sockets.Socket]:
    """The sockets of all users that have the port on this side."""
    return [each for each in sockets.all_tcp() if sockets.port(each.local) == port]


def have_ended(holders: list[sockets.Socket]) -> bool:
    """Whether these are connections that are not open in any process any more."""
    return bool(holders) and all(each.state in sockets.ENDED for each in holders)


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
