"""Groups broken links by the hosts that they concern: a host that no other reaches, two groups, or single pairs.

Ten links that all end at one host are one fault of that host.  The others concern pairs of hosts.
"""

from __future__ import annotations

import heapq
from collections import Counter

from hccl_tools.common.language import tr
from hccl_tools.common.quoting import quote
from hccl_tools.common.record import Row
from hccl_tools.common.words import clauses
from hccl_tools.hosts import node_sets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    Pairs = set[tuple[str, str]]  # (source, target)

# IN: no host reaches the hosts.  OUT: they reach no host.  ALONE: both.  APART: hosts and peers, in both directions.
# ONE_WAY: only from the hosts to the peers; back it works.  TOWARDS: the same, and the way back was not tried.
IN, OUT, ALONE, APART, ONE_WAY, TOWARDS = "in", "out", "alone", "apart", "one way", "towards"
_ENOUGH = 2  # links by which a host alone can be judged; a single link is a pair
BLOCKS, SLOWS, SURPRISES = "blocks", "slows", "surprises"
_MOST_NAMED = 6  # sets of hosts in a line


class Shape(Row):
    """Hosts, their peers if they have some in particular, and an example of a broken link."""

    kind: str
    hosts: tuple[str, ...]
    peers: tuple[str, ...]
    example: tuple[str, str]

    def of(self, links: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """The links that are broken in this way."""
        hosts, peers = set(self.hosts), set(self.peers)
        if not peers:
            into, out = self.kind in (IN, ALONE), self.kind in (OUT, ALONE)
            return [pair for pair in links if (into and pair[1] in hosts) or (out and pair[0] in hosts)]
        back = self.kind == APART
        return [
            (source, target)
            for source, target in links
            if (source in hosts and target in peers) or (back and source in peers and target in hosts)
        ]


def find(tested: Pairs, broken: Pairs) -> list[Shape]:
    """The shapes of the broken links among those that were tested, the widest first."""
    if not broken:
        return []
    found = _of_hosts(tested, broken)
    left = broken.difference(*(shape.of(broken) for shape in found))
    alone = {host for shape in found if shape.kind == ALONE for host in shape.hosts}
    groups = _groups(tested - broken, {host for pair in tested for host in pair} - alone)
    across = {pair for pair in left if groups.get(pair[0]) != groups.get(pair[1])}
    found += _of_groups(across, groups)
    found += _of_pairs(left - across, tested, broken)
    return found


def _of_hosts(tested: Pairs, broken: Pairs) -> list[Shape]:
    """The hosts that no host reaches, or that reach no host."""
    into, out = Counter(target for _, target in tested), Counter(source for source, _ in tested)
    no_into, no_out = Counter(target for _, target in broken), Counter(source for source, _ in broken)
    unreached = {host for host, links in no_into.items() if links == into[host] >= _ENOUGH}
    elsewhere = {source for source, target in broken if target not in unreached or source in unreached}
    silent = {host for host, links in no_out.items() if links == out[host] >= _ENOUGH and host in elsewhere}
    kinds = [(ALONE, unreached & silent), (IN, unreached - silent), (OUT, silent - unreached)]
    return [
        Shape(kind, tuple(sorted(hosts)), (), min(pair for pair in broken if pair[kind != OUT] in hosts))
        for kind, hosts in kinds
        if hosts
    ]


def _groups(good: Pairs, hosts: Iterable[str]) -> dict[str, str]:
    """{host: the name of its group} of hosts that good links join."""
    parents = {host: host for host in hosts}

    def top(host: str) -> str:
        while parents[host] != host:
            parents[host] = parents[parents[host]]
            host = parents[host]
        return host

    for source, target in good:
        if source in parents and target in parents:
            parents[top(source)] = top(target)
    return {host: top(host) for host in parents}


def _of_groups(across: Pairs, groups: dict[str, str]) -> list[Shape]:
    """Groups that do not reach each other; small ones of which the same can be said are together."""
    sizes = Counter(groups.values())
    between: dict[tuple[str, str], Pairs] = {}
    for source, target in across:
        small, big = sorted((groups[source], groups[target]), key=lambda group: (sizes[group], group))
        between.setdefault((small, big), set()).add((source, target))
    alike: dict[tuple[str, tuple[str, ...]], Pairs] = {}
    for (small, big), pairs in between.items():
        peers = {end for pair in pairs for end in pair if groups[end] == big}
        if sizes[small] > 1:
            peers = {host for host, group in groups.items() if group == big}
        towards = {groups[source] == small for source, _ in pairs}
        kind = APART if len(towards) == 2 else TOWARDS if towards == {True} else IN
        alike.setdefault((kind, tuple(sorted(peers))), set()).update(pairs)
    return [_group(kind, peers, pairs, groups) for (kind, peers), pairs in alike.items()]


def _group(kind: str, peers: tuple[str, ...], pairs: Pairs, groups: dict[str, str]) -> Shape:
    those = {groups[end] for pair in pairs for end in pair if end not in peers}
    hosts = tuple(sorted(host for host, group in groups.items() if group in those))
    if kind == IN:  # all links go from the peers to the hosts
        return Shape(TOWARDS, peers, hosts, min(pairs))
    return Shape(kind, hosts, peers, min(pairs))


def _of_pairs(left: Pairs, tested: Pairs, broken: Pairs) -> list[Shape]:
    """Single links, named by the host that has most of them."""
    kinds: dict[str, Pairs] = {APART: set(), ONE_WAY: set(), TOWARDS: set()}
    for source, target in left:
        back = (target, source)
        kinds[APART if back in broken else ONE_WAY if back in tested else TOWARDS].add((source, target))
    found: list[Shape] = []
    for kind, pairs in kinds.items():
        if kind != APART and (whole := _all_to_all(kind, pairs, tested - broken)):
            found.append(whole)
        else:
            found += _stars(kind, pairs)
    return found


def _all_to_all(kind: str, pairs: Pairs, good: Pairs) -> Shape | None:
    """One shape for all of them, if no link from a source to a target is good."""
    sources, targets = {source for source, _ in pairs}, {target for _, target in pairs}
    if not pairs or sources & targets or any(source in sources and target in targets for source, target in good):
        return None
    return Shape(kind, tuple(sorted(sources)), tuple(sorted(targets)), min(pairs))


def _stars(kind: str, pairs: Pairs) -> list[Shape]:
    """The host with most links and those at their other ends, then the same of the rest."""
    left: dict[tuple[int, str], Pairs] = {}  # {(0 as source, 1 as target; host): its links}
    for pair in pairs:
        for place in (0, 1):
            left.setdefault((place, pair[place]), set()).add(pair)
    order = [(-len(links), end) for end, links in left.items()]
    heapq.heapify(order)
    found = []
    while order:
        number, (place, host) = heapq.heappop(order)
        star = set(left[place, host])
        if len(star) < -number:  # another star has taken some since
            if star:
                heapq.heappush(order, (-len(star), (place, host)))
            continue
        others = tuple(sorted(pair[1 - place] for pair in star))
        hosts, peers = ((host,), others) if place == 0 else (others, (host,))
        found.append(Shape(kind, hosts, peers, min(star)))
        for pair in star | ({pair[::-1] for pair in star} & pairs if kind == APART else set()):
            left[0, pair[0]].discard(pair)
            left[1, pair[1]].discard(pair)
    return found


class Broken(Row):
    """One problem.

    level:  BLOCKS, SLOWS or SURPRISES.  key: link, mtu, slow, clock, address, port, untested or answer.
    hosts:  of which `text` states something.  peers: the other ends; empty: all others.  ports: where it is so.
    remedy: what to do, often a command.
    """

    level: str
    key: str
    hosts: tuple[str, ...]
    peers: tuple[str, ...]
    ports: tuple[int, ...]
    text: str
    remedy: str

    def line(self) -> str:
        """The problem as one line."""
        return clauses(f"{named(self.hosts)}: {self.text}", self.remedy)


def slow_remedy(host: str) -> str:
    """What to do about a slow host or link."""
    return tr("look for errors, drops and load: {command}", command=f"ssh {quote(host)} 'ip -s link; tc qdisc'")


def named(hosts: tuple[str, ...]) -> str:
    """The hosts as sets: node[3,7-9]."""
    return node_sets.folded(hosts, _MOST_NAMED)
