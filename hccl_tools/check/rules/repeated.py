"""Finds repeated values that must be unique."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hccl_tools.check.rules.registry import Findings
from hccl_tools.common.language import tr
from hccl_tools.common.numbers import whole_number
from hccl_tools.common.words import shown


def is_number(value: object) -> bool:
    """Whether it is a number as the formats write it, in quotes."""
    return isinstance(value, str) and (number := whole_number(value)) is not None and str(number) == value


def repeated(
    values: Sequence[object],
    place: Callable[[int], str],
    what: str,
    texts: Sequence[object] | None = None,
    counts: Callable[[object], bool] = lambda value: value not in (None, ""),
) -> Findings:
    """What a rule yields for each repeated entry of `values`; None does not count.

    place(i) is the JSON pointer of values[i].  texts: what to show in place of values.  counts: whether a value is
    compared at all; one that another rule refuses for its form is not.
    """
    if len(set(values)) == len(values):  # the usual case, at the speed of C
        return
    first: dict[object, int] = {}
    for index, value in enumerate(values):
        earlier = index if not counts(value) else first.setdefault(value, index)
        if earlier != index:
            yield (
                place(index),
                tr(
                    "{what} {text} is also at {place}",
                    what=what,
                    text=shown((texts or values)[index]),
                    place=place(earlier),
                ),
            )
