"""The answers of all hosts as rows: they come from other machines, so each value is checked."""

from __future__ import annotations

import math

from hccl_tools.common.record import Record, Row
from hccl_tools.common.words import short
from tools.preflight.links import calls
from tools.preflight.links.pairs import FULL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from tools.preflight.links.pairs import Plan

_LONGEST = 160  # characters of a text of another host


class Link(Row):
    """The result of one connection. trip, offset, took: seconds; None: not measured."""

    source: str
    target: str
    port: int
    status: str
    full: bool
    said: str = ""
    local: str = ""  # the address that the source used
    seen: str = ""  # the one that the target saw
    trip: float | None = None
    offset: float | None = None  # of the target's clock to the source's
    rtt: float | None = None  # as the kernel has measured it
    took: float | None = None  # for the big transfer
    mtu: int | None = None


class Host(Record):
    """The answer of one host, except its links.

    busy: {port: who holds it}.  passing: those that will be free by themselves.  interfaces: {name: our addresses}.
    """

    busy: dict[int, str]
    passing: tuple[int, ...]
    here: bool
    began: float
    ended: float
    interfaces: dict[str, tuple[str, ...]]


class Read(Record):
    """All answers."""

    hosts: dict[str, Host]
    links: list[Link]
    odd: list[str]  # hosts whose answers have another form


def read(answers: Mapping[str, object], planned: Plan) -> Read:
    """The answers of the hosts of this plan; links to hosts that have not answered are left out."""
    hosts: dict[str, Host] = {}
    links: list[Link] = []
    odd = []
    for name, answer in answers.items():
        if name not in planned:
            continue
        try:
            found = _host(answer)
            links += _links(name, answer, planned)
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
            odd.append(name)
        else:
            hosts[name] = found
    return Read(hosts=hosts, links=[link for link in links if link.target in hosts], odd=odd)


def _host(answer: Any) -> Host:
    return Host(
        busy={int(port): short(str(why), _LONGEST) for port, why in answer["busy"].items()},
        passing=tuple(int(port) for port in answer["passing"]),
        here=bool(answer["here"]),
        began=_seconds(answer["began"]) or 0.0,
        ended=_seconds(answer["ended"]) or 0.0,
        interfaces={
            short(str(name)): tuple(short(str(source)) for source in sources)
            for name, sources in answer["interfaces"].items()
        },
    )


def _links(source: str, answer: Any, planned: Plan) -> Iterator[Link]:
    """Those that the plan asked for, each once."""
    asked = {(target, port): what for target, _, port, what in planned[source]["connects"]}
    for target, port, status, details in answer["links"]:
        if (what := asked.pop((target, port), None)) is None or status not in calls.STATUSES:
            raise ValueError(target)
        yield Link(
            source=source,
            target=target,
            port=port,
            status=status,
            full=what == FULL,
            said=short(str(details.get("said", "")), _LONGEST),
            local=short(str(details.get("source", ""))),
            seen=short(str(details.get("seen", ""))),
            trip=_seconds(details.get("trip")),
            offset=_seconds(details.get("offset")),
            rtt=_seconds(details.get("rtt")),
            took=_seconds(details.get("took")),
            mtu=_whole(details.get("mtu")),
        )


def _seconds(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(value)
    return float(value)


def _whole(value: object) -> int | None:
    if value is not None and type(value) is not int:
        raise ValueError(value)
    return value
