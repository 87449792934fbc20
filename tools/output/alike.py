"""Groups ranks that have something in common, such as the way in which they ended.

A job may have 65,536 ranks, and every third of them may be special. So output for people has at most MOST_RANGES ranges
of numbers, and the total number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hccl_tools.common.language import tr

MOST_RANGES = 20


def named(ranks: Sequence[int]) -> str:
    """``rank 3``, ``ranks 0-5,7``, ``ranks 0,2,4 and 5 more``.  The ranks are in ascending order."""
    parts, omitted = [], len(ranks)
    for first, last in _ranges(ranks):
        parts.append(str(first) if first == last else f"{first}{',' if first + 1 == last else '-'}{last}")
        omitted -= last - first + 1
        if len(parts) == MOST_RANGES:
            break
    text = f"{tr('rank') if len(ranks) == 1 else tr('ranks')} {','.join(parts)}"
    return tr("{names} and {number} more", names=text, number=omitted) if omitted else text


def _ranges(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """(first, last) of each range of consecutive numbers."""
    first = last = numbers[0]
    for number in numbers[1:]:
        if number != last + 1:
            yield first, last
            first = number
        last = number
    yield first, last
