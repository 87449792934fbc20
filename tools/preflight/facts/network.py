"""This host's way to the others: interface, MTU and speed, the first host's address, ports, a firewall."""

from __future__ import annotations

import fcntl
import os
import socket
import struct

from hccl_tools.common.numbers import whole_number
from hccl_tools.machine import host, sockets
from tools.doctor import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.preflight.difference import Value
    from tools.preflight.question import Question

_ADDRESS_OF = 0x8915  # SIOCGIFADDR of <linux/sockios.h>
_HCCL_BASE, _HCCL_LAST = 60000, 65535
_MOST_DEVICES = 64


def collect(question: Question) -> dict[str, Value]:
    """As far as this host alone can tell: whether others are reached is measured by links.py."""
    facts: dict[str, Value] = {"firewall": _firewall()}
    is_first = host.owns(question.first)
    facts["busy_ports"] = _busy(question, is_first)
    if question.hosts < 2:
        return facts
    address = _resolved(question.first)
    if not is_first:
        facts["first_address"] = address
    name = _interface(_own_address(address if address and not is_first else question.host))
    if name:
        facts.update(_of_interface(name))
    return facts


def _resolved(name: str) -> str | None:
    try:
        return str(socket.getaddrinfo(name, None, socket.AF_INET, socket.SOCK_STREAM)[0][4][0])
    except (OSError, UnicodeError):
        return None


def _own_address(towards: str) -> str | None:
    """The address of this host that packets to another one have; for its own name, that name's."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((towards, 9))  # sends nothing: it only looks up the route
        except (OSError, UnicodeError):
            return None
        return str(probe.getsockname()[0])


def _interface(address: str | None) -> str | None:
    """The interface that has the address; the loopback is none."""
    if not address or address.startswith("127."):
        return None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        for _, name in socket.if_nameindex():
            try:
                answer = fcntl.ioctl(asked.fileno(), _ADDRESS_OF, struct.pack("256s", os.fsencode(name)[:15]))
            except OSError:  # it has none
                continue
            if socket.inet_ntoa(answer[20:24]) == address:
                return name
    return None


def _of_interface(name: str) -> dict[str, Value]:
    """Its MTU and its speed, which virtual interfaces do not have."""
    facts: dict[str, Value] = {}
    mtu, speed = (files.number(f"/sys/class/net/{name}/{what}") for what in ("mtu", "speed"))
    if mtu:
        facts["mtu"] = mtu
    if speed:
        facts["link_speed"] = speed
    return facts


def _busy(question: Question, is_first: bool) -> list[str]:
    """The ports of the job on which something listens: on the first host the scheduler's, with NPUs those of HCCL."""
    wanted = set(question.ports) if is_first else set()
    base = whole_number(os.environ.get("HCCL_IF_BASE_PORT", ""), 1024, 65520) or _HCCL_BASE
    devices = host.nodes() if question.devices is None else question.devices
    wanted |= {base + device for device in devices[:_MOST_DEVICES] if base + device <= _HCCL_LAST}
    listening = (each for each in sockets.all_tcp(files.ROOT) if each.state == sockets.LISTENS)
    return [str(port) for port in sorted({sockets.port(each.local) for each in listening} & wanted)]


def _firewall() -> str | None:
    """The program that keeps one, as far as it shows without the rights of root."""
    if (files.setting("/etc/ufw/ufw.conf", "ENABLED") or "").lower() == "yes":
        return "ufw"
    return "firewalld" if os.path.exists(files.ROOT + "/run/firewalld.pid") else None
