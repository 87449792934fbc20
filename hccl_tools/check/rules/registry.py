"""Registers the rules, selects those that apply to a table, and finds repeated values for them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from hccl_tools.common.language import tr
from hccl_tools.common.numbers import whole_number
from hccl_tools.common.problem import ERROR, Problem
from hccl_tools.common.record import Row
from hccl_tools.common.words import shown
from hccl_tools.table.view import View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import TypeAlias

GENERATIONS = ("910A", "A2", "A3", "950")

LISTED = ("v1.0", "v1.2", "cross_cluster")  # formats with server_list
LEGACY = ("legacy_lab", "legacy_cloud")
WITH_DEVICES = (*LISTED, *LEGACY)
ALL = (*WITH_DEVICES, "v1.1", "v2.0")

# What a rule yields for each problem: (JSON pointer, text, remedy); the remedy's default is in the docstring.
Findings: TypeAlias = "Iterator[tuple[str, str] | tuple[str, str, str]]"

_PARTS = re.compile(r"(?P<what>.*?)\n\s*Why: (?P<why>.*?)\n\s*Remedy: (?P<remedy>.*)", re.DOTALL)


class Rule(Row):
    """One rule: its code and severity, the formats and generations (None: all) it is for, and its function.

    strict: the generations on which it is an error, whatever its severity is elsewhere.
    """

    code: str
    severity: str
    formats: tuple[str, ...]
    generations: tuple[str, ...] | None
    strict: tuple[str, ...]
    find: Callable[[View], Findings]

    def words(self) -> tuple[str, str, str]:
        """What is wrong, why that matters, and the remedy, from the function's docstring."""
        match = _PARTS.fullmatch(self.find.__doc__ or "")
        if not match:  # python -OO removes docstrings
            return "", "", "see docs/rank_table_checks.md."
        what, why, remedy = (" ".join(part.split()) for part in match.groups())
        return what, why, remedy


_rules: list[Rule] = []


def rule(
    code: str,
    formats: tuple[str, ...],
    severity: str = ERROR,
    generations: tuple[str, ...] | None = None,
    strict: tuple[str, ...] = (),
) -> Callable[[Callable[[View], Findings]], Callable[[View], Findings]]:
    """Makes a function a rule: it takes a View and yields Findings.

    Its docstring is its documentation: what is wrong, "Why:" with the source, and "Remedy:".
    """

    def register(find: Callable[[View], Findings]) -> Callable[[View], Findings]:
        _rules.append(Rule(code, severity, formats, generations, strict, find))
        return find

    return register


def registered() -> tuple[Rule, ...]:
    """All rules of the modules that are imported."""
    return tuple(_rules)


def broken(view: View, generation: str | None) -> Iterator[Problem]:
    """The Problems of the rules for the view's format and `generation`."""
    for each in _rules:
        if view.format in each.formats and (each.generations is None or generation in each.generations):
            for pointer, text, *remedy in each.find(view):
                said = remedy[0] if remedy else tr(each.words()[2].rstrip("."))
                yield Problem(each.code, pointer, text, said, ERROR if generation in each.strict else each.severity)


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
