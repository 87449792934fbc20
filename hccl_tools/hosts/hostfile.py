"""Reads the hosts of a file in Open MPI's syntax: one host per line, then slots=N, and comments.

    # the training cluster
    10.0.0.1 slots=8
    node2    slots=8 max_slots=8
    node3    slots=8 spare

The word `spare` is ours: the host gets ranks when another one is lost.  Open MPI does not know it.  Refuses lines that
Open MPI silently accepts and then runs on the wrong hosts or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hccl_tools.common.language import tr
from hccl_tools.common.refusal import USAGE, Refusal
from hccl_tools.common.words import one_line
from hccl_tools.table.address import family

_NAME = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]*@)?[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?")
_KEYS = ("slots", "max_slots", "max-slots")
SPARE = "spare"
MAX_BYTES = 1 << 24  # 16 MiB: half a million hosts; more is another file


class HostfileError(Refusal):
    """The file has no usable list of hosts: the line names the file, the line and what to write."""

    def __init__(self, line: str) -> None:
        super().__init__(USAGE, line)


def logins(path: str) -> dict[str, str]:
    """{host: [user@]host, as ssh takes it} of the file `path`, in its order.  Raises HostfileError."""
    return {_name(words): words[0] for words in _entries(_content(path), one_line(path))}


def slots(path: str) -> list[tuple[str, int | None]]:
    """[(host as ssh takes it, its slots; None where the file does not say)].  Raises HostfileError."""
    return [(words[0], _slots(words)) for words in _entries(_content(path), one_line(path))]


def spares(path: str) -> list[str]:
    """The hosts, as ssh takes them, whose lines have the word `spare`.  Raises HostfileError."""
    return [words[0] for words in _entries(_content(path), one_line(path)) if SPARE in words[1:]]


def _content(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise HostfileError(
            tr("{path} cannot be read: {reason}; name the hosts' file", path=one_line(path), reason=error.strerror)
        ) from error
    if len(data) > MAX_BYTES:
        raise HostfileError(
            tr(
                "{path} has more than {limit} bytes; a hostfile has one line per host",
                path=one_line(path),
                limit=MAX_BYTES,
            )
        )
    return data


def parse(data: bytes, name: str) -> list[str]:
    """The hosts in the bytes of a hostfile, which messages call `name`.  Raises HostfileError."""
    return [_name(words) for words in _entries(data, name)]


def _entries(data: bytes, name: str) -> list[list[str]]:
    """The words of every line with a host."""
    if data.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        raise HostfileError(
            tr("{name}: starts with a byte-order mark, which Open MPI reads as a host; save it without", name=name)
        )
    try:
        lines = data.decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise HostfileError(
            tr("{name}: byte {number} is not UTF-8; save the file as plain text", name=name, number=error.start + 1)
        ) from error
    hosts: dict[str, tuple[list[str], int]] = {}
    for number, line in enumerate(lines, 1):
        words = re.sub(r"\s*=\s*", "=", line.partition("#")[0]).split()
        if words:
            where = f"{name}:{number}"
            _check(words, where)
            host = _name(words)
            if host.lower() in hosts:
                first = hosts[host.lower()][1]
                raise HostfileError(
                    tr(
                        "{where}: {host} is in line {first} too; give each host once, with all slots",
                        where=where,
                        host=host,
                        first=first,
                    )
                )
            hosts[host.lower()] = words, number
    if not hosts:
        raise HostfileError(
            tr("{name}: there is no host in it; write one per line, such as: 10.0.0.1 slots=8", name=name)
        )
    return [words for words, _ in hosts.values()]


def _name(words: Sequence[str]) -> str:
    """The host's name or address without the user, by which ssh logs in."""
    return words[0].rpartition("@")[2]


def _slots(words: Sequence[str]) -> int | None:
    return next((int(word.partition("=")[2]) for word in words[1:] if word.startswith("slots=")), None)


def _check(words: Sequence[str], where: str) -> None:
    fault = fault_of_host(words[0]) or next(filter(None, map(_fault_of_key, words[1:])), None)
    if fault:
        raise HostfileError(f"{where}: {fault}")


def fault_of_host(host: str) -> str | None:
    """What is wrong with the name or address of a host; None if nothing is."""
    shown = one_line(host)
    if family(host.strip("[]")) == family("::1"):
        return tr(
            "{shown} is an IPv6 address, which Open MPI's hostfiles cannot hold; write the host's name", shown=shown
        )
    if ":" in host:
        return tr(
            "{shown}: number of slots after a colon; write {host} slots=N",
            shown=shown,
            host=shown.partition(":")[0],
        )
    if host.partition("=")[0] in _KEYS:
        return tr("{shown}: the host is missing before it; write it first, such as: 10.0.0.1 {shown}", shown=shown)
    if not _NAME.fullmatch(host):
        return tr("{shown} is neither a host's name nor an IPv4 address; write one host per line", shown=shown)
    last = host.rpartition("@")[2]
    if set(last) <= set("0123456789.") and family(last) is None:
        return tr("{shown} is not an IPv4 address; it has four numbers from 0 to 255", shown=shown)
    return None


def _fault_of_key(word: str) -> str | None:
    key, equals, value = word.partition("=")
    shown = one_line(word)
    if word == SPARE:
        return None
    if key.lower().startswith(SPARE):
        return tr("{shown}: no such word; for a spare host write the word {spare} alone", shown=shown, spare=SPARE)
    if not equals:
        return tr("{shown}: only slots=N can follow a host; give each host a line of its own", shown=shown)
    if key not in _KEYS:
        return tr("{shown}: no such key; write slots=N", shown=shown)
    if not re.fullmatch("[0-9]{1,6}", value):
        return tr("{shown}: the number of slots is not a number; write slots=8", shown=shown)
    if int(value) == 0:
        return tr("{shown}: a host without slots runs nothing; write slots=8, or take the line out", shown=shown)
    return None
