"""Judges the answers of all hosts: which links are broken or slow, and what else the hosts' networks have wrong."""

from __future__ import annotations

from collections import Counter

from hccl_tools.common.grouping import grouped
from hccl_tools.common.language import tr
from hccl_tools.common.words import count
from tools.preflight.links import answers as forms
from tools.preflight.links import calls, clocks, crawling, places, reasons, shapes, speeds
from tools.preflight.links.broken import BLOCKS, SLOWS, SURPRISES, Broken, slow_remedy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tools.preflight.links.answers import Host, Link, Read
    from tools.preflight.links.clocks import Clock
    from tools.preflight.links.pairs import Plan
    from tools.preflight.links.shapes import Shape

MOST = 40  # entries about links; more do not help
_FINE = (calls.OK, calls.BLACK_HOLE, calls.CRAWLS)  # the connection itself is good
_NOBODY_THERE = (calls.REFUSED, calls.RESET)  # so it is, too, where the other host's part has ended
_SLACK = 0.1  # seconds between the last try and the end of the other host's part


def judge(answers: Mapping[str, object], planned: Plan) -> list[Broken]:
    """What is wrong, the worst first.  Hosts that have not answered are named elsewhere."""
    read = forms.read(answers, planned)
    ahead = clocks.of(read.links)
    tested = crawling.called_slow([link for link in read.links if _is_tested(link, read.hosts, ahead)])
    crawl = crawling.hosts(tested)
    others = [link for link in tested if not {link.source, link.target} & crawl.keys()]
    found = [
        *_odd(read.odd),
        *places.busy(read.hosts),
        *_connections(tested, planned),
        *_crawling(crawl),
        *_transfers(others, planned),
        *_untested(read, tested),
        *speeds.slow(others),
        *places.addresses(read, planned),
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
        text = tr("the answer about its links has another form")
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
    text = tr("{what}: {why}", what=reasons.of_connections(shape, ports), why=reasons.why(example))
    remedy = reasons.remedy(example, planned[example.target]["address"])
    return Broken(BLOCKS, "link", shape.hosts, shape.peers, tuple(sorted(ports)), text, remedy)


def _usual(links: Sequence[Link]) -> Link:
    """The first of those whose status is the most frequent."""
    statuses = Counter(link.status for link in links)
    return min(links, key=lambda link: (-statuses[link.status], link.status, link.source, link.target, link.port))


def _crawling(kinds: Mapping[str, str]) -> Iterator[Broken]:
    """Hosts that crawl; kinds: of crawling.hosts."""
    for kind in dict.fromkeys(kinds.values()):
        hosts = tuple(host for host, its_kind in kinds.items() if its_kind == kind)
        yield Broken(SLOWS, "slow", hosts, (), (), crawling.text(kind), slow_remedy(hosts[0]))


def _transfers(tested: Sequence[Link], planned: Plan) -> list[Broken]:
    """Links on which small messages pass and big ones do not, or hardly."""
    full = {(link.source, link.target): link for link in tested if link.full and link.status in _FINE}
    found = []
    broken = {pair for pair, link in full.items() if link.status == calls.BLACK_HOLE}
    for shape in shapes.find(set(full), broken):
        link = full[shape.example]
        text = tr("{what}: {why}", what=reasons.of_transfers(shape), why=reasons.why(link))
        remedy = reasons.remedy(link, planned[link.target]["address"])
        found.append(Broken(BLOCKS, "mtu", shape.hosts, shape.peers, (link.port,), text, remedy))
    slow = {pair for pair, link in full.items() if link.status == calls.CRAWLS}
    for shape in shapes.find(set(full), slow):
        port = full[shape.example].port
        text = crawling.text(shape.kind, shape.peers)
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
    """At most MOST of them; the last one says how many more there are."""
    if len(found) <= MOST:
        return found
    rest = found[MOST - 1 :]
    hosts = tuple(dict.fromkeys(host for each in rest for host in each.hosts))
    text = tr("{faults} like those above", faults=count(len(rest), "more fault"))
    return [*found[: MOST - 1], Broken(rest[0].level, rest[0].key, hosts, (), (), text, rest[0].remedy)]
