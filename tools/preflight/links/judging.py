"""Judges the answers of all hosts: which links are broken or slow, and what else is wrong in the hosts' networks."""

from __future__ import annotations

from collections import Counter

from hccl_tools.common.grouping import grouped
from hccl_tools.common.language import marked, tr
from hccl_tools.common.quoting import quote
from hccl_tools.common.words import count
from hccl_tools.common.words import named as numbered
from hccl_tools.table.address import family, packed
from tools.preflight.links import answers as forms
from tools.preflight.links import calls, shapes, speeds
from tools.preflight.links.shapes import BLOCKS, SLOWS, SURPRISES, Broken, named, slow_remedy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tools.preflight.links.answers import Host, Link, Read
    from tools.preflight.links.pairs import Plan
    from tools.preflight.links.shapes import Shape
    from tools.preflight.links.speeds import Clock

_WHY = {
    calls.REFUSED: marked("refused, though that host listens: a firewall rejects it"),
    calls.TIMEOUT: marked("nothing comes back: a firewall drops the packets, or they are not routed"),
    calls.RESET: marked("something on the way cuts the connection"),
    calls.FOREIGN: marked("another program answers: two hosts have this address, or it is translated"),
    calls.MUTE: marked("the connection opens, but no answer comes: a firewall or another program took it"),
    calls.DENIED: marked("the sender's own firewall forbids it"),
    calls.UNRESOLVED: marked("the name has no address there"),
}
_HEADERS = {4: 28, 6: 48}  # bytes before the data of a ping: IP's and ICMP's


# {kind of a shape: which connections fail}, and the same of big messages
_CONNECTIONS = {
    shapes.IN: marked("no connection from other hosts succeeds at {ports}"),
    shapes.OUT: marked("no connection to other hosts succeeds at {ports}"),
    shapes.ALONE: marked("no connection from other hosts, or to them, succeeds at {ports}"),
    shapes.APART: marked("no connection to {peers}, or from there, succeeds at {ports}"),
    shapes.ONE_WAY: marked("no connection to {peers} succeeds at {ports}; those from there succeed"),
    shapes.TOWARDS: marked("no connection to {peers} succeeds at {ports}"),
}
_TRANSFERS = {
    shapes.IN: marked("big messages from other hosts do not arrive"),
    shapes.OUT: marked("big messages to other hosts do not arrive"),
    shapes.ALONE: marked("big messages from other hosts, or to them, do not arrive"),
    shapes.APART: marked("big messages to {peers}, or from there, do not arrive"),
    shapes.ONE_WAY: marked("big messages to {peers} do not arrive; those from there do"),
    shapes.TOWARDS: marked("big messages to {peers} do not arrive"),
}
_LOOPBACK = ("127.", "::1")
MOST = 40  # entries about links; more do not help
_FINE = (calls.OK, calls.BLACK_HOLE, calls.CRAWLS)  # the connection itself is good
_NOBODY_THERE = (calls.REFUSED, calls.RESET)  # so it is, too, where the other host's part has ended
_SLACK = 0.1  # seconds between the last try and the end of the other host's part


def judge(answers: Mapping[str, object], planned: Plan) -> list[Broken]:
    """The problems, the worst first.  Hosts that have not answered are named elsewhere."""
    read = forms.read(answers, planned)
    ahead = speeds.clocks_of(read.links)
    tested = speeds.called_slow([link for link in read.links if _is_tested(link, read.hosts, ahead)])
    crawl = speeds.crawling_hosts(tested)
    others = [link for link in tested if not {link.source, link.target} & crawl.keys()]
    found = [
        *_odd(read.odd),
        *busy(read.hosts),
        *_connections(tested, planned),
        *_crawling(crawl),
        *_transfers(others, planned),
        *_untested(read, tested),
        *speeds.slow(others),
        *addresses(read, planned),
        *speeds.clocks(ahead),
    ]
    return sorted(found, key=lambda each: (BLOCKS, SLOWS, SURPRISES).index(each.level))


def _is_tested(link: Link, hosts: Mapping[str, Host], ahead: Mapping[str, Clock]) -> bool:
    """Whether the link shows something: the other host had the port, and its part ran at the same time."""
    target = hosts[link.target]
    if link.status == calls.UNTESTED or link.port in target.busy:
        return False
    if link.status not in _NOBODY_THERE:
        return True
    source = hosts[link.source]
    if link.source in ahead and link.target in ahead:
        between = ahead[link.target].offset - ahead[link.source].offset
        error = ahead[link.target].error + ahead[link.source].error
    else:
        between = error = 0.0
    began, ended = target.began - between + error, target.ended - between - error
    return began < source.ended - _SLACK and source.ended < ended + _SLACK


def _odd(odd: Sequence[str]) -> Iterator[Broken]:
    if odd:
        text = tr("its answer about the links has another format")
        yield Broken(SURPRISES, "answer", tuple(odd), (), (), text, tr("install the same version on all hosts"))


def _connections(tested: Sequence[Link], planned: Plan) -> list[Broken]:
    """Connections that fail; a fault that several ports have is one entry."""
    by_port = grouped((link.port, link) for link in tested)
    found: dict[tuple[str, tuple[str, ...], tuple[str, ...]], tuple[Shape, set[int], list[Link]]] = {}
    for port, links in sorted(by_port.items(), key=lambda item: (-len(item[1]), item[0])):
        broken = {(link.source, link.target): link for link in links if link.status not in _FINE}
        good = {(link.source, link.target) for link in links} - broken.keys()
        for shape, ports, examples in list(found.values())[:MOST]:
            same = shape.of(broken)
            if same and not shape.of(good):
                ports.add(port)
                examples += [broken.pop(pair) for pair in same]
        for shape in shapes.find(good | broken.keys(), set(broken)):
            entry = found.setdefault(shape[:3], (shape, set(), []))
            entry[1].add(port)
            entry[2].extend(broken[pair] for pair in (shape.of(broken) if len(found) <= MOST else [shape.example]))
    return _bounded([_connection(*entry, planned) for entry in found.values()])


def _connection(shape: Shape, ports: set[int], links: Sequence[Link], planned: Plan) -> Broken:
    example = _usual(links)
    text = tr("{what}: {why}", what=of_connections(shape, ports), why=reason_of(example))
    remedy = remedy_of(example, planned[example.target]["address"])
    return Broken(BLOCKS, "link", shape.hosts, shape.peers, tuple(sorted(ports)), text, remedy)


def _usual(links: Sequence[Link]) -> Link:
    """The first of those whose status is the most frequent."""
    statuses = Counter(link.status for link in links)
    return min(links, key=lambda link: (-statuses[link.status], link.status, link.source, link.target, link.port))


def _crawling(kinds: Mapping[str, str]) -> Iterator[Broken]:
    """Hosts that crawl; kinds: of speeds.crawling_hosts."""
    for kind in dict.fromkeys(kinds.values()):
        hosts = tuple(host for host, its_kind in kinds.items() if its_kind == kind)
        yield Broken(SLOWS, "slow", hosts, (), (), speeds.crawling_text(kind), slow_remedy(hosts[0]))


def _transfers(tested: Sequence[Link], planned: Plan) -> list[Broken]:
    """Links on which small messages pass and big ones do not, or hardly."""
    full = {(link.source, link.target): link for link in tested if link.full and link.status in _FINE}
    found = []
    broken = {pair for pair, link in full.items() if link.status == calls.BLACK_HOLE}
    for shape in shapes.find(set(full), broken):
        link = full[shape.example]
        text = tr("{what}: {why}", what=of_transfers(shape), why=reason_of(link))
        remedy = remedy_of(link, planned[link.target]["address"])
        found.append(Broken(BLOCKS, "mtu", shape.hosts, shape.peers, (link.port,), text, remedy))
    slow = {pair for pair, link in full.items() if link.status == calls.CRAWLS}
    for shape in shapes.find(set(full), slow):
        port = full[shape.example].port
        text = speeds.crawling_text(shape.kind, shape.peers)
        found.append(Broken(SLOWS, "slow", shape.hosts, shape.peers, (port,), text, slow_remedy(shape.hosts[0])))
    return _bounded(found)


def _untested(read: Read, tested: Sequence[Link]) -> Iterator[Broken]:
    """Hosts of which no link could be tested, though others were there to do so."""
    joined = {end for link in tested for end in (link.source, link.target)}
    wanted = {end for link in read.links for end in (link.source, link.target)}
    hosts = tuple(host for host in read.hosts if host in wanted - joined and not read.hosts[host].busy)
    if hosts:
        text = tr("no link could be tested: the checks of the other hosts did not run at the same time")
        yield Broken(SURPRISES, "untested", hosts, (), (), text, tr("check fewer hosts at once"))


def _bounded(found: list[Broken]) -> list[Broken]:
    """At most MOST of them; the last one states how many more there are."""
    if len(found) <= MOST:
        return found
    rest = found[MOST - 1 :]
    hosts = tuple(dict.fromkeys(host for each in rest for host in each.hosts))
    text = tr("{faults} like those above", faults=count(len(rest), "more fault"))
    return [*found[: MOST - 1], Broken(rest[0].level, rest[0].key, hosts, (), (), text, rest[0].remedy)]


# ---- What the hosts' addresses and ports have wrong, without any link being broken.


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
        remedy = tr("if you do not want address translation, correct the hostfile or the rank table")
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
        remedy = tr("ranks tell each other their addresses: turn off address translation between the hosts")
        yield Broken(SURPRISES, "address", tuple(translated), (), (), text, remedy)


def _sources(facts: Host, address: str) -> Iterator[tuple[str, str]]:
    """(interface, our address there) of those that do not have the address; of names this is unknown."""
    if family(address) is None:
        return
    for name, sources in facts.interfaces.items():
        known = [source for source in sources if source and not source.startswith(_LOOPBACK)]
        if known and packed(address) not in map(packed, known):
            yield name, known[0]


# ---- What a link that fails means, and what to do about it: sentences for people.


def of_connections(shape: Shape, ports: Iterable[int]) -> str:
    """Which connections fail."""
    return tr(_CONNECTIONS[shape.kind], peers=named(shape.peers), ports=numbered("port", ports))


def of_transfers(shape: Shape) -> str:
    """Which big messages do not arrive."""
    return tr(_TRANSFERS[shape.kind], peers=named(shape.peers))


def reason_of(link: Link) -> str:
    """The reason of an example."""
    if link.status == calls.BLACK_HOLE:
        return tr("small ones do; packets of {size} bytes are lost on the way, so an MTU is too big", size=link.mtu)
    if link.status in _WHY:
        return tr(_WHY[link.status])
    return tr("the kernel says: {said}", said=tr(link.said or link.status))


def remedy_of(link: Link, address: str) -> str:
    """The remedy, with commands for the example. address: the target's."""
    source, target = quote(link.source), quote(link.target)
    if link.status in (calls.REFUSED, calls.MUTE):
        return tr("look at the firewall: ssh {host} 'nft list ruleset; iptables -S'", host=target)
    if link.status == calls.DENIED:
        return tr("look at the firewall: ssh {host} 'nft list ruleset; iptables -S'", host=source)
    if link.status == calls.FOREIGN:
        return tr("compare its addresses with {address}: ssh {host} hostname -I", address=quote(address), host=target)
    if link.status == calls.UNRESOLVED:
        command = f"ssh {source} getent hosts {quote(address)}"
        return tr("add a line for it to /etc/hosts there, and try: {command}", command=command)
    if link.status == calls.BLACK_HOLE:
        size = max(0, (link.mtu or 0) - (_HEADERS[6] if ":" in link.local else _HEADERS[4]))
        command = f"ssh {source} ping -c 3 -M do -s {size} {quote(address)}"
        return tr("make the MTU of hosts and switches the same; to try: {command}", command=command)
    command = f"ssh {source} 'ip route get {quote(address)}; ping -c 3 {quote(address)}'"
    return tr("look at firewalls, cables and routes; to try: {command}", command=command)
