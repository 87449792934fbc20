"""Finds the faults in the network of a rank table's devices, and the HCCL error that each one causes."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from hccl_tools.common.language import tr
from hccl_tools.common.record import Row
from hccl_tools.hosts.cards import Card
from hccl_tools.machine import driver
from hccl_tools.table.address import packed
from hccl_tools.table.rank_table import Device, Server

# The answers about health that say that a probe failed.  Others (Init, Thread error, Unknown) say that there was none.
_UNREACHED = ("Socket fail", "Socket failed", "Receive timeout", "Unreachable", "Time exceeded", "Fault")

Facts = dict[str, dict[int, Card]]  # {server_id: {device id: what its card says}}
Partners = dict[tuple[str, int], "str | None"]  # {(server_id, device id): address of the device that it has to reach}
Fault = tuple[str, "str | None", str, str]  # check, code, text and remedy of a Finding


class Finding(Row):
    """One thing that is wrong with the network of a device."""

    server: str
    device: int
    rank: int
    check: str  # what is wrong: link, ip, netmask, health, ping, tls or detect
    code: str | None  # the error with which HCCL would end
    text: str
    remedy: str


def partners(servers: Sequence[Server]) -> Partners:
    """The Partners of all devices of the table.

    The partner is the device at the same place of the next server, as in HCCL's rings.  On a single server it is
    the next device of the same subnet, if there is one: the devices of a server need no network between them,
    and the eight of a 910A host are in four subnets without a gateway.
    """
    if len(servers) == 1:
        return _partners_at_home(servers[0])
    found = {}
    for number, server in enumerate(servers):
        others = servers[(number + 1) % len(servers)].devices
        for place, device in enumerate(server.devices):
            found[server.server_id, int(device.device_id)] = others[place % len(others)].device_ip
    return found


def _partners_at_home(server: Server) -> dict[tuple[str, int], str | None]:
    """The same for the devices of one server."""
    subnets: dict[bytes, list[Device]] = {}
    for device in server.devices:  # the table has no netmasks; a subnet is what differs in the last byte only
        subnets.setdefault(packed((device.device_ip or "").partition(",")[0])[:-1], []).append(device)
    return {
        (server.server_id, int(device.device_id)): following.device_ip
        for devices in subnets.values()
        for device, following in zip(devices, devices[1:] + devices[:1])
        if following is not device
    }


def judge(servers: Sequence[Server], facts: Facts) -> list[Finding]:
    """The Findings for the servers of a table that answered."""
    asked = [
        (server, device, facts[server.server_id][int(device.device_id)])
        for server in servers
        if server.server_id in facts
        for device in server.devices
    ]
    usual_tls = _usual(card.tls for _, _, card in asked)
    reached = partners(servers)
    findings = []
    for server, device, card in asked:
        name, number, rank = server.server_id, int(device.device_id), int(device.rank_id)
        for check, code, text, remedy in _of_device(device, card, reached.get((name, number)), usual_tls):
            findings.append(Finding(name, number, rank, check, code, text, remedy))
    return findings


def _usual(values: Iterable[str | None]) -> str | None:
    """The most frequent known value, the smallest if several are; None if none is known."""
    counts = Counter(value for value in values if value is not None)
    return max(sorted(counts), key=lambda value: counts[value]) if counts else None


def _of_device(device: Device, card: Card, partner: str | None, usual_tls: str | None) -> Iterator[Fault]:
    """What is wrong with one device."""
    number = device.device_id
    for check, said in card.failed.items():
        if check == "restore":
            yield "detect", None, said, tr("set it with `hccn_tool -i {number} -netdetect -s address A`", number=number)
        elif check != "gateway":  # not every card has one
            # No code: that hccn_tool fails states nothing about the network.
            yield (
                check,
                None,
                tr("hccn_tool did not report {check}: {said}", check=check, said=said),
                driver.remedy(said),
            )
    if card.link not in (None, "UP"):
        remedy = tr(
            "check cable and optical module, `hccn_tool -i {number} -optical -g`, and the switch's port", number=number
        )
        yield "link", "EI0009" if card.link == "DOWN" else None, tr("the link is {link}", link=card.link), remedy
    yield from _of_address(device, card, partner)
    if card.health not in (None, "Success"):
        ping = f"`hccn_tool -i {number} -ping -g address {partner}`"
        remedy = tr("check link, address and gateway of both ends, then {ping}", ping=ping)
        if card.health in _UNREACHED:
            yield (
                "health",
                "EI0006",
                tr("its network does not reach {partner}: {health}", partner=partner, health=card.health),
                remedy,
            )
        else:
            text = tr(
                "hccn_tool cannot tell whether its network reaches {partner}: {health}",
                partner=partner,
                health=card.health,
            )
            yield "health", None, text, f"try {ping}"
    for address, lost in card.lost.items():
        remedy = tr("check the other device and the switch between them")
        yield (
            "ping",
            "EI0006",
            tr("{lost:g} % of the packets to {address} are lost", lost=lost, address=address),
            remedy,
        )
    if card.tls and usual_tls and card.tls != usual_tls:
        states = {"0": "off", "1": "on"}
        text = tr("TLS is {state}, on most devices it is {usual}", state=states[card.tls], usual=states[usual_tls])
        yield (
            "tls",
            "EI0016",
            text,
            tr(
                "make it the same on all: `hccn_tool -i {number} -tls -s enable {usual}`",
                number=number,
                usual=usual_tls,
            ),
        )


def _of_address(device: Device, card: Card, partner: str | None) -> Iterator[Fault]:
    """What is wrong with address and netmask of one device."""
    number, wanted = device.device_id, device.device_ip
    if "ip" in card.failed:
        return
    if card.ip is None:
        remedy = tr("set it: `hccn_tool -i {number} -ip -s address {wanted} netmask M`", number=number, wanted=wanted)
        yield "ip", "EI0009", tr("it has no address; the table has {wanted}", wanted=wanted), remedy
    elif wanted is not None and packed(card.ip) not in map(packed, wanted.split(",")):
        remedy = tr("build the table again, or set the address that the table has")
        yield "ip", "EI0014", tr("its address is {ip}; the table has {wanted}", ip=card.ip, wanted=wanted), remedy
    elif partner and not card.gateway and _outside(card.ip, card.netmask, partner):
        text = tr(
            "{partner} is outside of {ip}/{netmask} and no gateway is set",
            partner=partner,
            ip=card.ip,
            netmask=card.netmask,
        )
        remedy = tr("set a wider netmask, or a gateway: `hccn_tool -i {number} -gateway -s gateway G`", number=number)
        yield "netmask", "EI0006", text, remedy


def _outside(address: str, netmask: str | None, partner: str) -> bool:
    try:
        return ipaddress.ip_address(partner) not in ipaddress.ip_network(f"{address}/{netmask}", strict=False)
    except ValueError:  # no netmask reported, or IPv6
        return False
