"""Hosts whose links are so slow that connections fail in any way: that is slow, and no firewall.

Behind the big transfers of such a host the greetings of its other connections wait.  These then look as if something
dropped or took them.
"""

from __future__ import annotations

from collections import Counter

from hccl_tools.common.language import tr
from tools.preflight.links import calls, shapes
from tools.preflight.links.broken import named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.preflight.links.answers import Link

# How a connection that waits too long can end; who comes when the other host's part has ended is refused.
_WAITED = (calls.MUTE, calls.TIMEOUT, calls.RESET, calls.REFUSED, calls.BLACK_HOLE)
_QUICK = 0.25  # seconds of a big transfer: 1 MB/s
_MOST_QUICK = 5  # of so many links of such a host one may be quick
_PEERS = 2  # hosts to which a host alone must be slow; with a single one it is the link


def called_slow(links: Sequence[Link]) -> list[Link]:
    """The links; those of crawling hosts that have failed otherwise crawl, too."""
    slow = _slow_hosts(links)
    return [
        link._replace(status=calls.CRAWLS) if link.status in _WAITED and slow & {link.source, link.target} else link
        for link in links
    ]


def hosts(links: Sequence[Link]) -> dict[str, str]:
    """{host: IN, OUT or ALONE of shapes.py} of the hosts that crawl, whichever of their links are only slow."""
    slow = _slow_hosts(links)
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


def _slow_hosts(links: Sequence[Link]) -> set[str]:
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


def text(kind: str, peers: tuple[str, ...] = ()) -> str:
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
