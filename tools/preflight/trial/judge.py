"""Finds slow hosts, devices or pairs of hosts in the measurements of all ranks, without side effects, despite outliers.

A figure is compared with the middle one.  It is slow if it is slower by half, and by six times the usual deviation.  A
host that waits for another is not slow: only work that a rank does alone, or with one other host, is judged.
"""

from __future__ import annotations

from hccl_tools.common.grouping import grouped
from hccl_tools.common.record import Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FACTOR = 1.5
_DEVIATIONS = 6
_FLOOR = {"matmul": 0.002, "read": 0.002, "pair": 0.005}  # seconds that mean nothing
PAIR = "pair_"


class Figure(Row):
    """A measurement of one rank."""

    rank: int
    host: str
    device: int
    measure: str
    seconds: float
    peer: str = ""  # the other host of a pair


class Slow(Row):
    """A host; its devices, if only some of them are slow; or two hosts that are slow together."""

    hosts: tuple[str, ...]
    devices: tuple[int, ...]
    measure: str
    seconds: float
    usual: float

    @property
    def factor(self) -> float:
        """So many times the usual."""
        return self.seconds / self.usual if self.usual else float("inf")


def slow(figures: Sequence[Figure]) -> list[Slow]:
    """Everything that is slow, the worst first."""
    found = [*_in_matmul(figures), *_in_reading(figures), *_in_pairs(figures)]
    return sorted(found, key=lambda each: -each.factor)


def limit(values: Sequence[float], measure: str, part: int = 2) -> tuple[float, float]:
    """(the usual value, that from which on one is slow).  part: the usual is where the slowest n-1 of n parts begin."""
    ordered = sorted(values)
    usual = ordered[(len(ordered) - 1) // part]
    deviations = sorted(abs(value - usual) for value in ordered)
    spread = deviations[(len(deviations) - 1) // 2]
    return usual, usual + max((FACTOR - 1) * usual, _DEVIATIONS * spread if len(ordered) > 4 else 0, _FLOOR[measure])


def _by_host(measure: str, figures: Sequence[Figure]) -> dict[str, list[Figure]]:
    return grouped((figure.host, figure) for figure in figures if figure.measure == measure)


def _in_reading(figures: Sequence[Figure]) -> list[Slow]:
    """By hosts: the ranks of one share its file system, and who reads first fetches for the others."""
    times = {
        host: sorted(figure.seconds for figure in ranks)[(len(ranks) - 1) // 2]
        for host, ranks in _by_host("read", figures).items()
    }
    if len(times) < 2:
        return []
    usual, most = limit(list(times.values()), "read")
    return [Slow((host,), (), "read", seconds, usual) for host, seconds in times.items() if seconds > most]


def _in_matmul(figures: Sequence[Figure]) -> list[Slow]:
    """By ranks: all of a host, or some of its devices."""
    by_host = _by_host("matmul", figures)
    values = [figure.seconds for ranks in by_host.values() for figure in ranks]
    if len(values) < 2:
        return []
    usual, most = limit(values, "matmul")
    found = []
    for host, ranks in by_host.items():
        slow_ranks = [figure for figure in ranks if figure.seconds > most]
        if slow_ranks:
            all_slow = len(slow_ranks) == len(ranks) and len(by_host) > 1
            devices = () if all_slow else tuple(sorted(figure.device for figure in slow_ranks))
            found.append(Slow((host,), devices, "matmul", max(figure.seconds for figure in slow_ranks), usual))
    return found


def _in_pairs(figures: Sequence[Figure]) -> list[Slow]:
    """A host that is slow with each neighbour, and pairs that this does not explain."""
    pairs: dict[tuple[str, str], float] = {}
    for figure in figures:
        if figure.measure.startswith(PAIR) and figure.peer:
            key = min(figure.host, figure.peer), max(figure.host, figure.peer)
            pairs[key] = max(pairs.get(key, 0), figure.seconds)
    if len(pairs) < 2:
        return []
    usual, most = limit(list(pairs.values()), "pair", 3)
    slow_pairs = {pair for pair, seconds in pairs.items() if seconds > most}
    hosts = {host: {pair for pair in pairs if host in pair} for pair in slow_pairs for host in pair}
    guilty = [host for host, of_host in sorted(hosts.items()) if len(of_host) > 1 and of_host <= slow_pairs]
    found = [Slow((host,), (), "pair", max(pairs[pair] for pair in hosts[host]), usual) for host in guilty]
    rest = sorted(pair for pair in slow_pairs if not set(pair) & set(guilty))
    return [*found, *(Slow(pair, (), "pair", pairs[pair], usual) for pair in rest)]


def name_of(measure: str) -> str:
    """The measure; all rounds of pairs are one."""
    return "pair" if measure.startswith(PAIR) else measure


def summary(figures: Sequence[Figure]) -> Mapping[str, tuple[float, float, str]]:
    """{measure: (the middle value, the slowest, its host)}, in the order of the program."""
    found = grouped((name_of(figure.measure), figure) for figure in figures)
    result = {}
    for name, of_measure in found.items():
        ordered = sorted(of_measure, key=lambda figure: figure.seconds)
        result[name] = ordered[(len(ordered) - 1) // 2].seconds, ordered[-1].seconds, ordered[-1].host
    return result
