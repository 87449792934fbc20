"""Finds hosts and links that are slow compared with the others, and clocks that are wrong."""

from __future__ import annotations

import heapq
import statistics
from collections import Counter

from hccl_tools.common.language import tr
from hccl_tools.common.quoting import quote
from hccl_tools.common.record import Row
from tools.preflight.links import calls, shapes
from tools.preflight.links.shapes import SLOWS, SURPRISES, Broken, named, slow_remedy
from tools.preflight.links.talk import BIG

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tools.preflight.links.answers import Link

    Pairs = dict[tuple[str, str], float]  # {(source, target): seconds}
    from collections.abc import Iterable

# How a connection that waits too long can end; who comes when the other host's part has ended is refused.
_WAITED = (calls.MUTE, calls.TIMEOUT, calls.RESET, calls.REFUSED, calls.BLACK_HOLE)
_QUICK = 0.25  # seconds of a big transfer: 1 MB/s
_MOST_QUICK = 5  # of so many links of such a host one may be quick
_PEERS = 2  # hosts to which a host alone must be slow; with a single one it is the link
_FACTOR = 4  # times the median
_TIMES_USUAL = 2  # the best link of a slow host against the usual link
_MOST_LINKS = 10
_TAIL = 10  # times what four of five links have, for single links: programs on busy hosts wait together
_SPREAD = 10  # times the median distance from the median: on busy hosts all figures differ
_LEAST = {"rtt": 0.002, "took": 0.015}  # seconds above the median; less is not named
CLOCK = 1.0  # seconds
# MIT Kerberos refuses tickets beyond this (clockskew in krb5.conf).  Nothing that starts MindSpore compares clocks, so
# it stops no job by itself.
KERBEROS = 300.0


def slow(links: Sequence[Link]) -> list[Broken]:
    """Hosts and links that are slower than the others by a factor, in their round trips or big transfers.

    A host has one line: where transfers are slow, round trips wait behind them.
    """
    figures = {what: _figures(links, what) for what in _LEAST}
    found: list[Broken] = []
    named_hosts: set[str] = set()
    for what in _LEAST:
        hosts, usual = _slow_hosts(figures[what], what)
        new = {host: value for host, value in hosts.items() if host not in named_hosts}
        if new:
            found.append(_entry(tuple(new), (), list(new.values()), usual, what))
        named_hosts.update(new)
    for what in _LEAST:
        found += _slow_links({pair: v for pair, v in figures[what].items() if not named_hosts & set(pair)}, what)
    return found


def _figures(links: Sequence[Link], what: str) -> Pairs:
    return {
        (link.source, link.target): value for link in links if (value := getattr(link, what)) is not None and link.full
    }


def _slow_hosts(figures: Pairs, what: str) -> tuple[dict[str, float], float]:
    """({host: its best figure} of those that are slow, the usual one of all).

    Load only adds to a measurement.  So the best link of a host, in each direction, tells what its network can do.  It
    is compared with the best of the others, and with what links usually have, because few links can all meet load.
    """
    slow: dict[str, float] = {}
    usual = []
    for end in (0, 1):
        best: dict[str, float] = {}
        for pair, value in figures.items():
            best[pair[end]] = min(value, best.get(pair[end], value))
        limit, middle = _limit(list(best.values()), what)
        usual.append(middle)
        for host, value in best.items():
            if value > limit:
                slow[host] = max(value, slow.get(host, value))
    others = [value for pair, value in figures.items() if not set(pair) & set(slow)]
    least = _TIMES_USUAL * statistics.median_low(others) if others else 0.0
    return {host: value for host, value in slow.items() if value > least}, max(usual)


def _slow_links(figures: Pairs, what: str) -> Iterator[Broken]:
    """Single links between hosts that are well."""
    limit, usual = _limit(list(figures.values()), what)
    limit = max(limit, _TAIL * sorted(figures.values())[len(figures) * 4 // 5]) if figures else limit
    # A link is slow if it is so in both directions: that one measurement took long says little on a busy host.
    broken = {pair for pair, value in figures.items() if min(value, figures.get(pair[::-1], value)) > limit}
    for shape in shapes.find(set(figures), broken)[:_MOST_LINKS]:
        pairs = [figures[pair] for pair in broken if set(pair) & set(shape.hosts)]
        yield _entry(shape.hosts, shape.peers, pairs, usual, what)


def _limit(values: Sequence[float], what: str) -> tuple[float, float]:
    """(what is slow from there on, the usual value)."""
    if not values:
        return 0.0, 0.0
    usual = statistics.median_low(values)
    spread = statistics.median_low([abs(value - usual) for value in values])
    return usual + max((_FACTOR - 1) * usual, _SPREAD * spread, _LEAST[what]), usual


def _entry(hosts: tuple[str, ...], peers: tuple[str, ...], values: Sequence[float], usual: float, what: str) -> Broken:
    worst = max(values)
    if what == "rtt":
        figures = {"time": 1000 * worst, "usual": 1000 * usual}
        text = tr("a round trip takes {time:.3g} ms, on most links {usual:.3g} ms", **figures)
    else:
        figures = {"rate": BIG / worst / 1e6, "usual": BIG / max(usual, 1e-9) / 1e6}
        text = tr("{rate:.3g} MB/s, on most links {usual:.3g} MB/s", **figures)
    if peers:
        text = tr("to {peers}: {text}", peers=named(peers), text=text)
    return Broken(SLOWS, "slow", hosts, peers, (), text, slow_remedy(hosts[0]))


def clocks(ahead: Mapping[str, Clock]) -> Iterator[Broken]:
    """Clocks that are surely off: by more than the error of the measurement and a second."""
    off = {host: clock for host, clock in ahead.items() if abs(clock.offset) - clock.error > CLOCK}
    for sign in (1, -1):
        hosts = tuple(host for host, clock in off.items() if sign * clock.offset > 0)
        if hosts:
            yield _clock(hosts, max((off[host] for host in hosts), key=lambda clock: abs(clock.offset)))


def _clock(hosts: tuple[str, ...], worst: Clock) -> Broken:
    figures = {"seconds": abs(worst.offset), "error": max(worst.error, 0.001)}
    if worst.offset > 0:
        text = tr("the clock is {seconds:.3f} s ahead of most hosts (± {error:.3f} s)", **figures)
    else:
        text = tr("the clock is {seconds:.3f} s behind most hosts (± {error:.3f} s)", **figures)
    if len(hosts) > 1:
        text = tr("{text} at most", text=text)
    breaks = tr("certificates, the order of logs and make depend on it")
    if abs(worst.offset) > KERBEROS:
        breaks = tr("{breaks}; Kerberos refuses more than {seconds:g} s", breaks=breaks, seconds=KERBEROS)
    remedy = tr(
        "let NTP set it: {command}", command=f"ssh {quote(hosts[0])} 'timedatectl set-ntp true; chronyc tracking'"
    )
    return Broken(SURPRISES, "clock", hosts, (), (), tr("{text}: {breaks}", text=text, breaks=breaks), remedy)


# ---- The clocks of all hosts against the median one: links give differences, and a walk over the links adds them up.


class Clock(Row):
    """The lead of a clock over the median one, in seconds, and the uncertainty."""

    offset: float
    error: float


def clocks_of(links: Iterable[Link]) -> dict[str, Clock]:
    """{host: its clock}; hosts between which no link is measured have each a median of their own."""
    near: dict[str, list[tuple[float, float, str]]] = {}  # {host: (error, offset of the other one, other host)}
    for link in links:
        if link.trip is not None and link.offset is not None:
            near.setdefault(link.source, []).append((link.trip / 2, link.offset, link.target))
            near.setdefault(link.target, []).append((link.trip / 2, -link.offset, link.source))
    found: dict[str, Clock] = {}
    for host in near:
        if host not in found:
            found.update(_against_median(_walk(host, near)))
    return found


def _walk(first: str, near: dict[str, list[tuple[float, float, str]]]) -> dict[str, Clock]:
    """The clocks of all hosts that links join to the first one, against its clock, by the ways of the least error."""
    found: dict[str, Clock] = {}
    open_ends = [(0.0, 0.0, first)]
    while open_ends:
        error, offset, host = heapq.heappop(open_ends)
        if host in found:
            continue
        found[host] = Clock(offset, error)
        for more, ahead, other in near[host]:
            if other not in found:
                heapq.heappush(open_ends, (error + more, offset + ahead, other))
    return found


def _against_median(clocks: dict[str, Clock]) -> dict[str, Clock]:
    middle = statistics.median_low(clocks.values())
    return {host: Clock(clock.offset - middle.offset, clock.error + middle.error) for host, clock in clocks.items()}


# ---- Hosts whose links are so slow that connections fail in any way: that is slow, and no firewall.
#
# Behind the big transfers of such a host the greetings of its other connections wait.  These then look as if something
# dropped or took them.


def called_slow(links: Sequence[Link]) -> list[Link]:
    """The links; those of crawling hosts that have failed otherwise crawl, too."""
    slow = _crawling(links)
    return [
        link._replace(status=calls.CRAWLS) if link.status in _WAITED and slow & {link.source, link.target} else link
        for link in links
    ]


def crawling_hosts(links: Sequence[Link]) -> dict[str, str]:
    """{host: IN, OUT or ALONE of shapes.py} of the hosts that crawl, whichever of their links are only slow."""
    slow = _crawling(links)
    out: dict[str, set[str]] = {host: set() for host in slow}
    into: dict[str, set[str]] = {host: set() for host in slow}
    for link in links:
        if link.full and not _is_quick(link):
            out.get(link.source, set()).add(link.target)
            into.get(link.target, set()).add(link.source)
    return {
        host: shapes.ALONE if out[host] and into[host] else shapes.OUT if out[host] else shapes.IN
        for host in slow
        if len(out[host] | into[host]) >= _PEERS
    }


def _crawling(links: Sequence[Link]) -> set[str]:
    """The hosts of which some big transfers crawl, and nearly no other one is quick."""
    crawling, quick, all_full = Counter[str](), Counter[str](), Counter[str]()
    for link in links:
        if link.full:
            ends = (link.source, link.target)
            all_full.update(ends)
            crawling.update(ends if link.status == calls.CRAWLS else ())
            quick.update(ends if _is_quick(link) else ())
    return {host for host, number in all_full.items() if crawling[host] and quick[host] * _MOST_QUICK <= number}


def _is_quick(link: Link) -> bool:
    return link.took is not None and link.took < _QUICK


def crawling_text(kind: str, peers: tuple[str, ...] = ()) -> str:
    """Which transfers crawl, by the kind of a shape."""
    why = tr("256 KiB take longer than {seconds:g} s", seconds=calls.SURELY)
    others = named(peers)
    found = {
        shapes.IN: tr("what comes from other hosts is slow: {why}", why=why),
        shapes.OUT: tr("what goes to other hosts is slow: {why}", why=why),
        shapes.ALONE: tr("what goes to other hosts, and comes from there, is slow: {why}", why=why),
        shapes.APART: tr("what goes to {peers}, and comes from there, is slow: {why}", peers=others, why=why),
    }
    return found.get(kind) or tr("what goes to {peers} is slow: {why}", peers=others, why=why)
