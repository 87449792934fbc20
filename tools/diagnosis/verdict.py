"""The verdict about a failed job: sentences about its ranks, its chains of waits and what to look at next."""

from __future__ import annotations

import re

from hccl_tools.common.grouping import grouped
from hccl_tools.common.language import tr
from hccl_tools.common.record import Record
from hccl_tools.common.words import named, one_line, short_path
from hccl_tools.table.address import packed
from tools.diagnosis.processes import Process
from tools.diagnosis.waits import End, Target
from tools.logs import owners

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

SURE, LIKELY, GUESS = "sure", "likely", "guess"
_MOST_NAMED = 8
_HOST = re.compile(r"[\w.:-]{1,255}")
_HEAD = re.compile(r"^\[[A-Z]+\] ?(\w+)\(\d+[^)]*\):\S+ +(?:\[[\w./]+:\d+\] ?)?(?:\[\d+\] ?)*")
# "[rank12]:[E817 17:40:34.2 socket.cpp:1011] ", as PyTorch begins its lines
_TORCH = re.compile(r"^(?:\[rank\d+\]:? ?)?\[?[EWF]\d{3,4} \d\d:\d\d:\d\d\.\d+ (?:\d+ )?[\w.]+:\d+\] ")


class Verdict(Record):
    """The root of a failure."""

    kind: str  # conflict, tls, error, killed, network, lost, missing, chain, circle, late, self, silent, unknown
    roots: list[Process | Target]
    sentence: str
    chain: list[str] = []
    certainty: str
    why: str
    next: list[str] = []  # commands, and what to look at
    text: str = ""  # the line of a log that states it
    time: float | None = None


def who(one: Process | Target) -> str:
    """``rank 9 (host node1, device 1)``, as far as it is known."""
    parts = []
    if isinstance(one, Process) and one.host:
        parts.append(tr("host {host}", host=one_line(one.host)))
    elif isinstance(one, Process) and one.server:
        parts.append(tr("host {host}", host=one_line(one.server)))
    if one.device is not None:
        parts.append(tr("device {device}", device=one.device))
    if one.address and isinstance(one, Target):
        parts.append(tr("address {address}", address=one_line(one.address)))
    inside = ", ".join(parts)
    if one.rank is not None:
        name = tr("rank {rank}", rank=one.rank)
    elif isinstance(one, Process) and one.pid is not None:
        name = tr("process {pid}", pid=one.pid)
    else:
        return inside or tr("an unknown rank")
    return f"{name} ({inside})" if inside else name


def names(processes: Iterable[Process | Target]) -> str:
    """``rank 1 (...) and rank 2 (...)``; of more than two the numbers only."""
    listed = list(processes)
    ranks = ranks_of(listed)
    if len(listed) > 2 and len(ranks) == len(listed):
        return named("rank", ranks)
    shown = tr(" and ").join(who(one) for one in listed[:_MOST_NAMED])
    return (
        shown
        if len(listed) <= _MOST_NAMED
        else tr("{shown} and {count} more", shown=shown, count=len(listed) - _MOST_NAMED)
    )


def count_of(end: End, last: Process | Target) -> str:
    """How many waited at this end."""
    number = len([one for one in end.waiters if one is not last])
    return tr("1 rank") if number == 1 else tr("{count} ranks", count=number)


def chain_lines(*all_ends: End) -> list[str]:
    """``rank 2 -> rank 9``; ranks that waited for the same one share a line."""
    lines = []
    for end in all_ends:
        by_target = grouped((wait.target.process or wait.target, wait.source) for wait in end.direct)
        lines += [f"{names(sources)} -> {who(target)}" for target, sources in by_target.items()]
    return lines[:_MOST_NAMED]


def said(text: str) -> str:
    """A line of a log without level, process and time, which are already in the sentence."""
    text = headless(text)
    return text if len(text) <= 200 else text[:197] + "..."


def headless(text: str) -> str:
    """The same, however long it is."""
    return one_line(_TORCH.sub("", _HEAD.sub(r"\1 ", text.partition("\n")[0])))


def on(one: Process | Target) -> str:
    """``on host node1: ``, as the beginning of a command; nothing, if a folder's name is not that of a host."""
    host = one.host or one.server if isinstance(one, Process) else None
    return tr("on host {host}: ", host=host) if host and _HOST.fullmatch(host) else ""


def link_check(one: Process | Target) -> str:
    """The commands that show the state of a card's link."""
    device = one.device if one.device is not None else "N"
    return f"{on(one)}hccn_tool -i {device} -link -g; hccn_tool -i {device} -tls -g"


def ping(one: Process | Target, address: str | None) -> str:
    """The command with which a card tries to reach an address; a log may have any text instead of the address."""
    device = one.device if one.device is not None else "N"
    known = address if address and packed(address) else "ADDRESS"
    return f"{on(one)}hccn_tool -i {device} -ping -g address {known}"


def look_at(one: Process | Target) -> list[str]:
    """What to look at, for a rank that did not come."""
    if isinstance(one, Process) and one.findings:
        log = tr("the log of {who}: {path}", who=who(one), path=one_line(short_path(one.findings[0].path)))
        return [log, *([link_check(one)] if _has_npu(one) else [])]
    return [
        tr("whether {who} was started, and its log", who=who(one)),
        *([link_check(one)] if one.device is not None else []),
    ]


def _has_npu(one: Process) -> bool:
    """Whether it is known that it has a card of Ascend: its device, or a log of CANN."""
    return one.device is not None or any(log.kind in (owners.PLOG, owners.DEVICE) for log in one.findings)


def ranks_of(processes: Iterable[Process | Target]) -> list[int]:
    """The numbers of the ranks, as far as they are known."""
    return [one.rank for one in processes if one.rank is not None]
