"""This host's connection to the others: interface, MTU and speed, the first host's address, ports, a firewall."""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import sys

from hccl_tools.machine import addresses, host, sockets
from hccl_tools.table.address import family, is_loopback, packed
from tools.doctor import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.preflight.difference import Value
    from tools.preflight.question import Question

_ADDRESS_OF, _MTU_OF, _ETHTOOL = 0x8915, 0x8921, 0x8946  # SIOCGIFADDR, SIOCGIFMTU, SIOCETHTOOL of <linux/sockios.h>
_VALUE_AT = 16  # of struct ifreq
_SETTINGS, _SETTINGS_SIZE = 1, 44  # ETHTOOL_GSET and struct ethtool_cmd of <linux/ethtool.h>
_UNKNOWN_SPEED = 0xFFFF  # and more: 0xFFFFFFFF
_MOST_DEVICES = 64


def collect(question: Question) -> dict[str, Value]:
    """The facts that this host can find by itself; whether it reaches others is checked elsewhere."""
    facts: dict[str, Value] = {"firewall": _firewall()}
    is_first = question.first == question.host
    if question.links is None:  # else it listens at them itself, and states which it cannot have
        facts["busy_ports"] = _busy(question, is_first)
    if question.hosts < 2:
        return facts
    address = question.first_at or _resolved(question.first)
    if not is_first:
        facts["first_address"] = address
    towards = question.first_at or (address if address and not is_first else question.host)
    return {**facts, **_of_interface(_own_address(towards))}


def _resolved(name: str) -> str | None:
    return addresses.of([name])[name]


def _own_address(towards: str) -> str | None:
    """The address of this host that packets to another one have; for its own name, that name's."""
    address = _resolved(towards) or towards
    with socket.socket(family(address) or socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((address, 9))  # sends nothing: it only looks up the route
        except (OSError, UnicodeError):
            return None
        return str(probe.getsockname()[0])


def _of_interface(address: str | None) -> dict[str, Value]:
    """MTU and speed of the interface that has the address; the loopback is none, and virtual ones have no speed."""
    if not address or is_loopback(address):
        return {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        names = (os.fsencode(name) for _, name in socket.if_nameindex())
        name = _with_ipv6(address) or next(
            (each for each in names if _address_of(asked.fileno(), each) == address), None
        )
        if name is None:
            return {}
        mtu = _asked(asked.fileno(), _MTU_OF, name)
        speed = _speed(asked.fileno(), name)
    facts: dict[str, Value] = {}
    if mtu:
        facts["mtu"] = int.from_bytes(mtu[_VALUE_AT : _VALUE_AT + 4], sys.byteorder)
    if speed:
        facts["link_speed"] = speed
    return facts


def _with_ipv6(address: str) -> bytes | None:
    """The interface that has this address of IPv6."""
    wanted = packed(address).hex()
    for line in (files.read("/proc/net/if_inet6") or "").splitlines():
        cells = line.split()
        if len(cells) == 6 and cells[0] == wanted:
            return os.fsencode(cells[5])
    return None


def _asked(descriptor: int, question: int, name: bytes, value: bytes = b"") -> bytes | None:
    """What the kernel reports about an interface, as a struct ifreq; None: nothing.  /sys may show other interfaces."""
    try:
        return fcntl.ioctl(descriptor, question, struct.pack("16s240s", name[:15], value))
    except OSError:
        return None


def _address_of(descriptor: int, name: bytes) -> str | None:
    answer = _asked(descriptor, _ADDRESS_OF, name)
    return socket.inet_ntoa(answer[_VALUE_AT + 4 : _VALUE_AT + 8]) if answer else None


def _speed(descriptor: int, name: bytes) -> int | None:
    """In Mb/s, as the old form of ethtool's question has it: two halves of a number."""
    import ctypes

    command = ctypes.create_string_buffer(struct.pack("I", _SETTINGS), _SETTINGS_SIZE)
    pointer = struct.pack("P", ctypes.addressof(command))
    if _asked(descriptor, _ETHTOOL, name, pointer) is None:
        return None
    low, high = struct.unpack_from("H", command.raw, 12)[0], struct.unpack_from("H", command.raw, 28)[0]
    speed = low | high << 16
    return speed if 0 < speed < _UNKNOWN_SPEED else None


def _busy(question: Question, is_first: bool) -> list[str]:
    """The ports of the job on which something listens: on the first host the scheduler's, with NPUs those of HCCL."""
    wanted = set(question.ports) if is_first else set()
    devices = host.nodes() if question.devices is None else question.devices
    wanted |= {question.hccl + device for device in devices[:_MOST_DEVICES]}
    return [str(port) for port in sorted(sockets.listening(wanted, files.ROOT))]


def _firewall() -> str | None:
    """The program that keeps one, as far as it shows without the rights of root."""
    if (files.setting("/etc/ufw/ufw.conf", "ENABLED") or "").lower() == "yes":
        return "ufw"
    return "firewalld" if os.path.exists(files.ROOT + "/run/firewalld.pid") else None
