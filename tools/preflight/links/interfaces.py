"""What the hosts' interfaces, addresses and ports have wrong, without any link being broken."""

from __future__ import annotations

from collections import Counter

from hccl_tools.common.language import tr
from hccl_tools.common.quoting import quote
from hccl_tools.table.address import family, packed
from tools.preflight.links.broken import BLOCKS, SLOWS, SURPRISES, Broken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tools.preflight.links.answers import Host, Read
    from tools.preflight.links.pairs import Plan

_LOOPBACK = ("127.", "::1")


def busy(hosts: Mapping[str, Host]) -> Iterator[Broken]:
    """Ports of the job that a host cannot have."""
    places: dict[tuple[int, ...], dict[str, dict[int, str]]] = {}
    for host, facts in hosts.items():
        if facts.busy:
            places.setdefault(tuple(sorted(facts.busy)), {})[host] = facts.busy
    for ports, held in places.items():
        first, why = next(iter(held.items()))
        text = tr("port {port} cannot be used", port=", ".join(map(str, ports)))
        text = tr("{text}: on {host}, {why}", text=text, host=first, why=why[ports[0]])
        remedy = tr("end that process, or choose other ports with MS_SCHED_PORT or HCCL_IF_BASE_PORT")
        yield Broken(BLOCKS, "port", tuple(held), (), ports, text, remedy)


def differing(hosts: Mapping[str, Host]) -> Iterator[Broken]:
    """Hosts whose interface has another MTU than most, or a lower speed."""
    mtus, speeds = {}, {}
    for host, facts in hosts.items():
        used = {name: fact for name, fact in facts.interfaces.items() if name != "lo"}
        known = [mtu for mtu, _, _ in used.values() if mtu]
        fast = [speed for _, speed, _ in used.values() if speed]
        if known:
            mtus[host] = min(known)
        if fast:
            speeds[host] = min(fast)
    yield from _mtus(mtus)
    usual = _usual(speeds)
    for speed in sorted({speed for speed in speeds.values() if usual and speed < usual}):
        slow = tuple(host for host, value in speeds.items() if value == speed)
        text = tr("the link has {speed} Mb/s, on most hosts {usual} Mb/s", speed=speed, usual=usual)
        command = f"ssh {quote(slow[0])} ethtool {quote(_first(hosts[slow[0]]))}"
        yield Broken(SLOWS, "interface", slow, (), (), text, tr("look at cable and switch: {command}", command=command))


def _mtus(mtus: Mapping[str, int]) -> Iterator[Broken]:
    usual = _usual(mtus)
    for mtu in sorted({mtu for mtu in mtus.values() if mtu != usual}):
        others = tuple(host for host, value in mtus.items() if value == mtu)
        text = tr("the MTU is {mtu}, on others {usual}", mtu=mtu, usual=usual)
        remedy = tr("set the same one on all hosts and switches, for the cards' networks, too")
        yield Broken(SURPRISES, "interface", others, (), (), text, remedy)


def _usual(values: Mapping[str, int]) -> int | None:
    """The most frequent value, the biggest if several are."""
    counts = Counter(values.values())
    return max(counts, key=lambda value: (counts[value], value)) if counts else None


def _first(host: Host) -> str:
    return next((name for name in host.interfaces if name != "lo"), "lo")


def addresses(read: Read, planned: Plan) -> Iterator[Broken]:
    """Hosts that reach the others from another address than the one that the others have for them."""
    absent = tuple(host for host, facts in read.hosts.items() if not facts.here)
    if absent:
        text = tr("it does not have the address {address} itself", address=planned[absent[0]]["address"])
        remedy = tr("if no translation of addresses is wanted, correct the hostfile or the rank table")
        yield Broken(SURPRISES, "address", absent, (), (), text, remedy)
    other: dict[str, tuple[str, str]] = {}  # {interface: an example}
    hosts: dict[str, list[str]] = {}
    for host, facts in read.hosts.items():
        for name, source in _sources(facts, planned[host]["address"]) if facts.here else ():
            other.setdefault(name, (source, planned[host]["address"]))
            hosts.setdefault(name, []).append(host)
    for name, (source, address) in other.items():
        text = tr(
            "it reaches others by {name}, from {source}, not {address}", name=name, source=source, address=address
        )
        remedy = tr("if that is the wrong network, write its addresses, or set HCCL_SOCKET_IFNAME")
        yield Broken(SURPRISES, "address", tuple(dict.fromkeys(hosts[name])), (), (), text, remedy)
    translated = sorted({link.source for link in read.links if link.seen and packed(link.seen) != packed(link.local)})
    if translated:
        link = next(each for each in read.links if each.source == translated[0] and each.seen != each.local)
        text = tr("its connections leave from {local} and arrive from {seen}", local=link.local, seen=link.seen)
        remedy = tr("ranks tell each other their addresses: turn the translation of addresses off between the hosts")
        yield Broken(SURPRISES, "address", tuple(translated), (), (), text, remedy)


def _sources(facts: Host, address: str) -> Iterator[tuple[str, str]]:
    """(interface, our address there) of those that do not have the address; of names nobody knows."""
    if family(address) is None:
        return
    for name, (_, _, sources) in facts.interfaces.items():
        known = [source for source in sources if not source.startswith(_LOOPBACK)]
        if known and packed(address) not in map(packed, known):
            yield name, known[0]
