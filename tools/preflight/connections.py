"""The links of a check: which hosts connect to which, and how the answers about them are interpreted."""

from __future__ import annotations

import collections
import contextlib
import threading

from hccl_tools.machine import addresses, host
from hccl_tools.table.address import is_loopback
from tools.launch.engines import hccl_ports
from tools.launch.hosts import network
from tools.preflight import links
from tools.preflight.difference import Difference, Group
from tools.preflight.links.pairs import Ports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tools.preflight.difference import Answer
    from tools.preflight.links.pairs import Plan

_AT_ONCE, _LOOK_UP = 32, 3.0  # look-ups of names, and the seconds for all of them


def plan(
    hosts: Sequence[str],
    first: str,
    scheduler: Sequence[int],
    base: int = hccl_ports.BASE,
    told: Mapping[str, str] | None = None,
) -> Plan:
    """Who connects to whom; empty for a single host.  A name that only ssh knows has no address, and no links.

    first: the host of MindSpore's scheduler, which listens at the ports `scheduler`; base: the first port of HCCL.
    told: the addresses that hosts have told; None: the names are looked up.
    """
    found = dict(told) if told is not None else _reached(hosts)
    known = [name for name in hosts if name in found]
    if len(known) < 2:
        return {}
    wanted = Ports(ours=(base, base + hccl_ports.LAST_DEVICE), scheduler=tuple(scheduler))
    return links.plan(known, found, wanted, first if first in found else None)


def _reached(hosts: Sequence[str]) -> dict[str, str]:
    """{host: the address of its name}; of this host, the one at which the others reach it."""
    found = {name: address for name, address in _looked_up(hosts).items() if address}
    here = [name for name, address in found.items() if is_loopback(address) and host.owns(name)]
    others = [name for name in found if name not in here]
    if here and others:
        found.update(dict.fromkeys(here, network.own_address_towards(others)))
    return found


def _looked_up(hosts: Sequence[str]) -> dict[str, str | None]:
    """{host: its address} of those known in time: a name server without an answer must not delay a check."""
    found: dict[str, str | None] = {}
    left, done = collections.deque(hosts), threading.Event()

    def look_up() -> None:
        while left and not done.is_set():
            with contextlib.suppress(IndexError):  # another thread has taken the last one
                found.update(addresses.of([left.popleft()]))
        if len(found) == len(hosts):
            done.set()

    for _ in range(min(_AT_ONCE, len(hosts))):
        threading.Thread(target=look_up, daemon=True).start()
    done.wait(_LOOK_UP)
    done.set()
    return dict(found)


def judge(answers: Mapping[str, Answer], planned: Plan) -> list[Difference]:
    """Finds what is wrong with the links between hosts that have answered."""
    told = {name: answer.links for name, answer in answers.items() if answer.links is not None}
    return [
        Difference(
            key=f"link:{each.key}",
            level=each.level,
            groups=[Group(hosts=each.hosts, text=each.text)],
            remedy=each.remedy,
        )
        for each in links.judge(told, planned)
    ]
