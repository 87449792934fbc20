"""This host's name, and the ports that HCCL and MindSpore's scheduler listen on."""

import os
import socket

from hccl_tools.machine import host
from tools.doctor import answer, files
from tools.doctor.page import OK, PROBLEM, UNKNOWN, WARNING, Line, masked

TITLE = "Network"

HCCL_BASE, HCCL_PORTS = 60000, 32  # HCCL_IF_BASE_PORT and how many follow it
SCHEDULER = range(10000, 30000)  # where tools/launch/plan.py looks for a free one

_OUTGOING = "/proc/sys/net/ipv4/ip_local_port_range"
_RESERVED = "/proc/sys/net/ipv4/ip_local_reserved_ports"
_LISTENS = "0A"  # TCP_LISTEN in /proc/net/tcp


def questions():
    """getent asks as every program does, and can be ended, which gethostbyname cannot."""
    return {"name": ["getent", "ahostsv4", socket.gethostname()]}


def lines(answers, has_npus):
    """has_npus: on a machine without, HCCL's ports do not matter."""
    return [_name(answers["name"]), _hccl_ports(has_npus), _scheduler_ports()]


def _name(ended):
    name = socket.gethostname()
    several = "a launch on several hosts needs a line for it in /etc/hosts of each: ADDRESS " + name
    if ended.status == answer.NOT_FOUND:
        return Line("host name", UNKNOWN, f"{name}; getent is not on PATH to ask what it stands for")
    if ended.status == answer.TIMED_OUT:
        return Line("host name", WARNING, f"{name}; what it stands for: {ended.stderr}", f"DNS is slow; {several}")
    found = (ended.stdout.split() or [""])[0]
    if ended.status != 0 or not found:
        return Line("host name", WARNING, f"{name} stands for no address", several)
    text = masked(f"{name} stands for {found}")
    if found.startswith("127."):
        return Line("host name", OK, f"{text}, enough for one host", several)
    if not host.owns(found):
        return Line("host name", WARNING, f"{text}, which is no address of this machine", several)
    return Line("host name", OK, text)


# ---- ports -----------------------------------------------------------------------------------------


def _hccl_ports(has_npus):
    asked = os.environ.get("HCCL_IF_BASE_PORT") or str(HCCL_BASE)
    if not (asked.isascii() and asked.isdigit() and 1024 <= int(asked[:6]) <= 65520):
        text = f"HCCL_IF_BASE_PORT={asked} is not a port of 1024 to 65520"
        return Line("HCCL's ports", PROBLEM, text, "unset it, or set 60000")
    ports = range(int(asked), min(int(asked) + HCCL_PORTS, 65536))
    text = f"{ports[0]}-{ports[-1]}"
    busy = _listening(ports)
    if busy:
        remedy = f"ss -ltnp 'sport = :{busy[0]}' shows by whom; or set HCCL_IF_BASE_PORT"
        return Line("HCCL's ports", WARNING if has_npus else OK, f"{text}, of which {_listed(busy)} is in use", remedy)
    return _against_outgoing("HCCL's ports", ports, text, has_npus)


def _scheduler_ports():
    text = f"{SCHEDULER[0]}-{SCHEDULER[-1]}, {len(_listening(SCHEDULER))} in use"
    return _against_outgoing("scheduler's ports", SCHEDULER, text, True)


def _against_outgoing(name, ports, text, matters):
    """The kernel gives the ports of its range to any outgoing connection, unless they are reserved."""
    outgoing = _ports(files.read(_OUTGOING))
    if outgoing is None:
        return Line(name, UNKNOWN, f"{text}; the kernel does not show {_OUTGOING}")
    reserved = files.read(_RESERVED) or ""
    free = set(ports) & set(range(outgoing[0], outgoing[1] + 1))
    for part in filter(None, reserved.split(",")):
        first, last = _ports(part.replace("-", " ")) or (0, 0)
        free -= set(range(first, last + 1))
    if not free:
        return Line(name, OK, f"{text}, kept from outgoing connections")
    both = f"{reserved},{ports[0]}-{ports[-1]}".lstrip(",")  # setting it replaces what is there
    text += f", not kept from outgoing connections, which take {outgoing[0]}-{outgoing[1]}"
    if not matters:
        return Line(name, OK, f"{text}; without NPUs it does not matter")
    return Line(name, WARNING, text, f"sysctl -w net.ipv4.ip_local_reserved_ports={both}")


def _ports(text):
    words = (text or "").split()
    return (int(words[0]), int(words[-1])) if words and all(word.isdigit() for word in words) else None


def _listening(ports):
    """Those of the ports that a server listens on, sorted."""
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for row in (files.read(table) or "").splitlines()[1:]:
            cells = row.split()
            if len(cells) > 3 and cells[3] == _LISTENS:
                found.add(int(cells[1].rpartition(":")[2], 16))
    return sorted(found & set(ports))


def _listed(numbers):
    return ",".join(map(str, numbers))
