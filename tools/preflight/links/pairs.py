"""Plans which host connects to which, and to which ports: few connections even for thousands of hosts, never just one.

Each host connects to those that are 1, 2, 4, 8 ... places from it in the list, in both directions.  From 65 hosts on
the distances are 1, 4, 16, 64 ...: 1,024 hosts make 10,240 connections per port, and not a million.  Every host
connects to the scheduler's port of the scheduler's host.
"""

from __future__ import annotations

from hccl_tools.common.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    Plan = dict[str, dict[str, Any]]

FULL, HELLO, OPEN = "full", "hello", "open"  # what happens on a connection: all measures; a greeting; nothing
_CLOSE_PAIRS = 64  # hosts up to which the distances double
_SECONDS, _QUIET = 5.0, 3.0  # of a host's part, and of waiting for news, for few hosts
_MOST_SECONDS, _MOST_QUIET = 30.0, 10.0
_BEGIN_PER_SECOND = 64  # hosts: the last ones begin so much later


class Ports(Record):
    """The ports that the job will use.

    ours:      those at which only ranks will listen, such as HCCL's first and last one.
    scheduler: those of the scheduler's host only.
    others:    those at which a program of the host listens now, such as ssh's; they are opened and closed.
    """

    ours: tuple[int, ...] = ()
    scheduler: tuple[int, ...] = ()
    others: tuple[int, ...] = ()


def distances(hosts: int) -> list[int]:
    """How far the partners of a host are from it in the list, in both directions."""
    factor = 2 if hosts <= _CLOSE_PAIRS else 4
    found, far = [], 1
    while far <= hosts // 2:
        found.append(far)
        far *= factor
    return found


def partners(number: int, hosts: int) -> list[int]:
    """The numbers of the hosts to which host `number` connects; each of them connects to it, too."""
    around = (number + sign * far for far in distances(hosts) for sign in (1, -1))
    return list(dict.fromkeys(each % hosts for each in around if each % hosts != number))


def plan(hosts: Sequence[str], addresses: Mapping[str, str], ports: Ports, scheduler: str | None = None) -> Plan:
    """{host: {"expects": [[host, port]], "connects": [[host, address, port, what]]}} and its own address and ports.

    addresses: {host: the address, or the name, by which the others reach it}.  scheduler: the host of MindSpore's
    scheduler, by default the first one.
    """
    if not hosts:
        return {}
    first = hosts[0] if scheduler is None else scheduler
    found: Plan = {}
    for host in hosts:
        listens = [*ports.ours, *(ports.scheduler if host == first else ())]
        found[host] = {"address": addresses[host], "listens": listens, "expects": [], "connects": []}
    for number, host in enumerate(hosts):
        for other, port, what in _from(number, hosts, ports, first):
            found[host]["connects"].append([other, addresses[other], port, what])
            if what != OPEN:
                found[other]["expects"].append([host, port])
    return found


def _from(number: int, hosts: Sequence[str], ports: Ports, first: str) -> Iterator[tuple[str, int, str]]:
    """(host, port, what happens) of each connection from one host; the first one to a host makes all measures."""
    measured = set()
    for partner in partners(number, len(hosts)):
        for port in ports.ours:
            yield hosts[partner], port, HELLO if partner in measured else FULL
            measured.add(partner)
        for port in ports.others:
            yield hosts[partner], port, OPEN
    if hosts[number] != first:
        for port in ports.scheduler:
            yield first, port, HELLO


def question(planned: Plan, host: str, nonce: str) -> dict[str, Any]:
    """The questions of `listen_and_connect` for this host. nonce: the same secret for all hosts of one check."""
    later = len(planned) / _BEGIN_PER_SECOND
    times = {"seconds": min(_MOST_SECONDS, _SECONDS + later), "quiet": min(_MOST_QUIET, _QUIET + later / 2)}
    return {"host": host, "nonce": nonce, **times, **planned[host]}
