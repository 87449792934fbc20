"""Problems that are one mistake made many times, such as a key that every device lacks: one line for all of them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hccl_tools.common.language import tr
from hccl_tools.common.problem import Problem

_MOST = 3  # lines of one kind that a person reads one by one
_NUMBERS = re.compile(r"/[0-9]+(?=/|$)")


def collapsed(problems: Sequence[Problem]) -> list[Problem]:
    """The problems in their order; of more than _MOST that are alike only the first, which says how many there are.

    Alike: the same code at the same keys of different entries, with the same text, or with values of the wrong type.
    """
    groups: dict[tuple[str, str, str, str], list[Problem]] = {}
    for problem in problems:
        text = "" if problem.code == "wrong-type" else problem.text
        kind = problem.code, problem.severity, _NUMBERS.sub("/*", problem.pointer), text
        groups.setdefault(kind, []).append(problem)
    if all(len(alike) <= _MOST for alike in groups.values()):
        return list(problems)
    left = {id(each) for alike in groups.values() if len(alike) > _MOST for each in alike[1:]}
    firsts = {id(alike[0]): alike for alike in groups.values() if len(alike) > _MOST}
    return [_of_all(firsts[id(each)]) if id(each) in firsts else each for each in problems if id(each) not in left]


def _of_all(alike: list[Problem]) -> Problem:
    first = alike[0]
    last = alike[-1].pointer
    text = tr(
        "{text} (and {number} more like it, the last at {last})", text=first.text, number=len(alike) - 1, last=last
    )
    return first._replace(text=text)
