"""What the hosts' addresses and ports have wrong, without any link being broken."""

from __future__ import annotations

from hccl_tools.common.language import tr
from hccl_tools.table.address import family, packed
from tools.preflight.links.broken import BLOCKS, SURPRISES, Broken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tools.preflight.links.answers import Host, Read
    from tools.preflight.links.pairs import Plan

_LOOPBACK = ("127.", "::1")


def busy(hosts: Mapping[str, Host]) -> Iterator[Broken]:
    """Ports of the job that a host cannot have."""
    for passes in (False, True):
        places: dict[tuple[int, ...], dict[str, dict[int, str]]] = {}
        for host, facts in hosts.items():
            if held := {port: why for port, why in facts.busy.items() if (port in facts.passing) == passes}:
                places.setdefault(tuple(sorted(held)), {})[host] = held
        for ports, of_hosts in places.items():
            yield _busy(ports, of_hosts, passes)


def _busy(ports: tuple[int, ...], held: Mapping[str, Mapping[int, str]], passes: bool) -> Broken:
    """The same ports on these hosts.  passes: a job that starts a minute later has them."""
    first, why = next(iter(held.items()))
    text = tr("port {port} cannot be used", port=", ".join(map(str, ports)))
    text = tr("{text}: on {host}, {why}", text=text, host=first, why=why[ports[0]])
    if passes:
        remedy = tr("start in a minute; doctor.sh on that host says how to keep the kernel from giving the port away")
        return Broken(SURPRISES, "port", tuple(held), (), ports, text, remedy)
    remedy = tr("end that process, or choose other ports with MS_SCHED_PORT or HCCL_IF_BASE_PORT")
    return Broken(BLOCKS, "port", tuple(held), (), ports, text, remedy)


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
    for name, sources in facts.interfaces.items():
        known = [source for source in sources if source and not source.startswith(_LOOPBACK)]
        if known and packed(address) not in map(packed, known):
            yield name, known[0]
