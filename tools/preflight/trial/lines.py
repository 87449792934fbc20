"""The lines of a trial's ranks: only those with the trial's number, of the right form, are taken."""

from __future__ import annotations

import json
import math

from hccl_tools.common.record import Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

MEASURES = frozenset(
    ["join", "allreduce_1k", "allreduce_1m", "allreduce_16m", "pair_0", "pair_1", "pair_2", "matmul", "read", "end"]
)
_MOST_BYTES = 64 << 20  # of a file
_LONGEST = 1000  # characters of a line
_MOST_DEVICES = 1 << 16


class Line(Row):
    """One measure of a rank."""

    rank: int
    device: int
    measure: str
    seconds: float
    peer: int | None = None


def lines_of(paths: Iterable[str], number: str, ranks: int) -> list[Line]:
    """Those in the files, each measure of a rank once."""
    found: dict[tuple[int, str], Line] = {}
    for path in paths:
        for text in _texts(path):
            line = take(text, number, ranks)
            if line:
                found.setdefault((line.rank, line.measure), line)
    return list(found.values())


def _texts(path: str) -> Iterator[str]:
    try:
        with open(path, "rb") as file:
            data = file.read(_MOST_BYTES)
    except OSError:  # a rank that has started nothing has no log
        return
    yield from data.decode("utf-8", "replace").splitlines()


def take(text: str, number: str, ranks: int) -> Line | None:
    """The measure in a line, which may have the rank's number in front; None if it is another line."""
    if number not in text or len(text) > _LONGEST:
        return None
    try:
        told = json.loads(text[text.index("{") :])
    except ValueError:
        return None
    if not isinstance(told, dict) or told.get("trial") != number:
        return None
    measure = told.get("measure")
    if not isinstance(measure, str) or measure not in MEASURES:
        return None
    rank, device, peer = (_whole(told.get(name)) for name in ("rank", "device", "peer"))
    seconds = _time(told.get("seconds"))
    if rank is None or rank >= ranks or device is None or seconds is None:
        return None
    return Line(rank, device, measure, seconds, peer)


def _whole(value: Any) -> int | None:
    right = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST_DEVICES
    return value if right else None


def _time(value: Any) -> float | None:
    right = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < math.inf
    return float(value) if right else None
