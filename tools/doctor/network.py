"""This host's name, and the ports on which HCCL and MindSpore's scheduler listen."""

from __future__ import annotations

import os
import socket

from hccl_tools.common.language import marked, tr
from hccl_tools.common.numbers import whole_number
from hccl_tools.common.words import ranges
from hccl_tools.machine import host, sockets
from hccl_tools.machine.programs import Ended
from tools.doctor import files, page
from tools.doctor.page import OK, PROBLEM, UNKNOWN, WARNING, Facts, Line, Options, masked
from tools.launch.engines import hccl_ports
from tools.launch.engines.ports import SCHEDULER

TITLE = marked("Network")


def questions(_: Options) -> dict[str, list[str]]:
    """The questions: getent resolves as every program does and, unlike gethostbyname, can be stopped."""
    return {"name": ["getent", "ahostsv4", socket.gethostname()]}


def lines(facts: Facts) -> list[Line]:
    """The lines; HCCL's ports matter only on a machine with NPUs."""
    return [_name(facts.answers["name"]), _hccl_ports(bool(facts.npus.devices)), _scheduler_ports()]


def _name(ended: Ended) -> Line:
    name = socket.gethostname()
    several = tr("a launch on several hosts needs a line for it in /etc/hosts of each: ADDRESS {name}", name=name)
    if ended.status == page.NOT_FOUND:
        return Line(tr("host name"), UNKNOWN, tr("{name}, which cannot be resolved: getent is not on PATH", name=name))
    if ended.status == page.TIMED_OUT:
        text = tr("{name}; resolving it: {reason}", name=name, reason=ended.stderr)
        return Line(tr("host name"), WARNING, text, tr("DNS is slow; {remedy}", remedy=several))
    found = (ended.stdout.split() or [""])[0]
    if ended.status != 0 or not found:
        return Line(tr("host name"), WARNING, tr("{name} resolves to no address", name=name), several)
    text = masked(tr("{name} resolves to {address}", name=name, address=found))
    if found.startswith("127."):
        return Line(tr("host name"), OK, tr("{resolved}, enough for one host", resolved=text), several)
    if not host.owns(found):
        text = tr("{resolved}, which is not an address of this machine", resolved=text)
        return Line(tr("host name"), WARNING, text, several)
    return Line(tr("host name"), OK, text)


# ---- ports -----------------------------------------------------------------------------------------


def _hccl_ports(has_npus: bool) -> Line:
    asked = os.environ.get(hccl_ports.VARIABLE) or str(hccl_ports.BASE)
    first = whole_number(asked, *hccl_ports.BOUNDS)
    if first is None:
        text = tr("HCCL_IF_BASE_PORT={asked} is not a port of 1024 to 65520", asked=asked)
        return Line(tr("HCCL's ports"), PROBLEM, text, tr("unset it, or set 60000"))
    ports = range(first, min(first + hccl_ports.COUNT, sockets.MOST + 1))
    text = f"{ports[0]}-{ports[-1]}"
    busy = sockets.listening(ports, files.ROOT)
    if busy:
        remedy = tr("ss -ltnp 'sport = :{port}' shows the program; or set HCCL_IF_BASE_PORT", port=min(busy))
        text = tr("{ports}, in use: {busy}", ports=text, busy=ranges(busy))
        return Line(tr("HCCL's ports"), WARNING if has_npus else OK, text, remedy)
    return _against_outgoing(tr("HCCL's ports"), ports, text, has_npus)


def _scheduler_ports() -> Line:
    ports = f"{SCHEDULER[0]}-{SCHEDULER[-1]}"
    text = tr("{ports}, {number} in use", ports=ports, number=len(sockets.listening(SCHEDULER, files.ROOT)))
    return _against_outgoing(tr("scheduler's ports"), SCHEDULER, text, True)


def _against_outgoing(name: str, ports: range, text: str, matters: bool) -> Line:
    """The kernel gives the ports of its range to any outgoing connection, unless they are reserved."""
    outgoing = sockets.outgoing(files.ROOT)
    if outgoing is None:
        text = tr("{ports}; the kernel does not show {path}", ports=text, path=sockets.OUTGOING)
        return Line(name, UNKNOWN, text)
    open_to_all = sockets.handed_out(ports, files.ROOT)
    if not open_to_all:
        return Line(name, OK, tr("{ports}, never used for outgoing connections", ports=text))
    text = tr(
        "{ports}, may be used for outgoing connections ({first}-{last})",
        ports=text,
        first=outgoing[0],
        last=outgoing[-1],
    )
    if not matters:
        return Line(name, OK, tr("{ports}; without NPUs it does not matter", ports=text))
    return Line(name, WARNING, text, sockets.to_keep_free(f"{ports[0]}-{ports[-1]}", files.ROOT))
