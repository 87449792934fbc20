"""Hosts and links that are slow against the others, and clocks that are off."""

from __future__ import annotations

import statistics

from hccl_tools.common.language import tr
from hccl_tools.common.quoting import quote
from tools.preflight.links import shapes
from tools.preflight.links.broken import SLOWS, SURPRISES, Broken, named, slow_remedy
from tools.preflight.links.talk import BIG

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tools.preflight.links.answers import Link
    from tools.preflight.links.clocks import Clock

    Pairs = dict[tuple[str, str], float]  # {(source, target): seconds}

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
    """What is slower than the others by a factor, in its round trips or in its big transfers.

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
