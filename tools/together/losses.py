"""Checks whether the losses of the ranks fit one training, from the numbers in their logs, step by step.

In data parallel each rank prints the loss of its own part of the data.  So the losses differ a little in every step,
and are alike in the long run.
"""

from __future__ import annotations

import math
from statistics import median

from hccl_tools.common.grouping import grouped
from tools.together import findings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tools.progress.counting import Place
    from tools.progress.series import Series
    from tools.together.findings import Row

    Losses = dict[int, dict[Place, float]]  # of each rank

LEAST_STEPS = 8  # that are compared, each with a loss of its own: fewer may be alike by chance
_LEAST_DIGITS = 4  # of a loss that tells one set of samples from another
_PART = 0.01  # of the loss: a smaller difference may come from the order in which numbers are added
_BEGIN, _LAST = 5, 20  # steps
_ALIKE, _APART, _SHARE = 1.25, 1.5, 0.25  # what they differ by at first, and at last; and this share of the first loss
_MOST_OF = 0.9  # of the last steps


def of_logs(logs: dict[int, Series]) -> Losses:
    """The losses in these logs; ranks that print none are left out."""
    found: Losses = {}
    for rank, log in logs.items():
        column = log.columns.get("loss", [])
        pairs = {place: value for place, value in zip(log.places, column) if value is not None}
        if pairs:
            found[rank] = pairs
    return found


def find(losses: Losses, each_has_own: Callable[[], bool]) -> list[Row]:
    """Finds what is unusual about them.

    each_has_own: whether each rank is known to print the loss of its own data; asked only if all losses are the same.
    """
    if len(losses) < 2:
        return []
    places = sorted(set.intersection(*(set(each) for each in losses.values())))
    rows = _first_not_finite(losses)
    if rows:
        return rows
    same = _same_until(losses, places)
    if same == len(places):
        return _same_data(losses, places) if _tells(losses, places) and each_has_own() else []
    if _tells(losses, places[:same]):
        return _parted(losses, places, same)
    return _drifting(losses, places)


# ---- the same losses -------------------------------------------------------------------------------------------------


def _same_until(losses: Losses, places: Sequence[Place]) -> int:
    """In so many of the first places all ranks have the same loss."""
    first, *others = losses.values()
    for number, place in enumerate(places):
        if any(each[place] != first[place] for each in others):
            return number
    return len(places)


def _tells(losses: Losses, places: Sequence[Place]) -> bool:
    """Whether the losses of one rank have enough digits, and change enough, that others cannot be so by chance."""
    one = next(iter(losses.values()))
    values = {one[place] for place in places}
    long = [value for value in values if _digits(value) >= _LEAST_DIGITS]
    return len(long) >= LEAST_STEPS and 2 * len(values) > len(places)


def _digits(value: float) -> int:
    """How many digits were printed, without zeros at the ends."""
    return len(f"{value!r}".partition("e")[0].replace(".", "").replace("-", "").strip("0"))


def _same_data(losses: Losses, places: Sequence[Place]) -> list[Row]:
    epoch, step = places[-1]
    loss = next(iter(losses.values()))[places[-1]]
    return [findings.row("same-data", losses, steps=len(places), loss=loss, epoch=epoch, step=step)]


def _parted(losses: Losses, places: Sequence[Place], same: int) -> list[Row]:
    """Ranks that have left a majority whose losses are the same to the last digit; of two ranks the second one."""
    rest = places[same:]
    if len(rest) < LEAST_STEPS:
        return []
    ways = grouped((tuple(each[place] for place in rest), rank) for rank, each in losses.items())
    most = max(ways.values(), key=len)
    if 2 * len(most) <= len(losses) != 2:
        return []
    rows = []
    for ranks in ways.values():
        left, stayed = losses[ranks[0]], losses[most[0]]
        if all(abs(left[place] - stayed[place]) > _PART * abs(stayed[place]) for place in rest[-LEAST_STEPS:]):
            epoch, step = rest[0]
            evidence = {"steps": same, "loss": left[rest[-1]], "others": stayed[rest[-1]], "epoch": epoch, "step": step}
            rows.append(findings.row("parted", ranks, **evidence))
    return rows


# ---- losses that leave the others' -----------------------------------------------------------------------------------


def _drifting(losses: Losses, places: Sequence[Place]) -> list[Row]:
    """Ranks that began like the others, and are far from all of them in nearly all of the last steps.

    Of two ranks it is the one with the higher loss: it does not learn, or not any more.
    """
    if len(places) < _BEGIN + 2 * _LAST:
        return []
    first = {rank: median(each[place] for place in places[:_BEGIN]) for rank, each in losses.items()}
    if min(first.values()) <= 0:
        return []
    last = {rank: [each[place] for place in places[-_LAST:]] for rank, each in losses.items()}
    means = {rank: sum(values) / _LAST for rank, values in last.items()}
    began, level = median(first.values()), median(means.values())
    if len(losses) == 2:
        level = min(means.values())
    rows = []
    for rank, values in last.items():
        others = [values for other, values in last.items() if other != rank]
        apart = abs(means[rank] - level) > _SHARE * began and 1 / _ALIKE < first[rank] / began < _ALIKE
        if apart and (_is_above(values, others) or _is_below(values, others)):
            rows.append(findings.row("drifts", [rank], steps=_LAST, loss=means[rank], others=level))
    return rows if 2 * len(rows) < len(losses) or len(losses) == 2 else []


def _is_above(values: Sequence[float], others: Sequence[Sequence[float]]) -> bool:
    """Whether nearly every value is far above all of the others' in its step."""
    tops = [max(column) for column in zip(*others)]
    return _counts(value > top * _APART for value, top in zip(values, tops))


def _is_below(values: Sequence[float], others: Sequence[Sequence[float]]) -> bool:
    lowest = [min(column) for column in zip(*others)]
    return _counts(value * _APART < low for value, low in zip(values, lowest))


def _counts(steps: Iterable[bool]) -> bool:
    return sum(steps) >= _MOST_OF * _LAST


# ---- nan and inf -----------------------------------------------------------------------------------------------------


def _first_not_finite(losses: Losses) -> list[Row]:
    """The ranks whose loss was nan or infinite first, where others had a finite one in the same step."""
    begun: dict[int, Place] = {}
    for rank, each in losses.items():
        places = [place for place, value in each.items() if not math.isfinite(value)]
        if places:
            begun[rank] = min(places)
    if not begun:
        return []
    place = min(begun.values())
    first = [rank for rank in begun if begun[rank] == place]
    if not any(place in each and rank not in first for rank, each in losses.items()):
        return []
    later = min((place for rank, place in begun.items() if rank not in first), default=(0, 0))
    loss = str(losses[first[0]][place])
    place_of_others = {"later_epoch": later[0], "later_step": later[1]}
    return [findings.row("not-finite", first, loss=loss, epoch=place[0], step=place[1], **place_of_others)]
