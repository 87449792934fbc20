"""Compares the facts of all hosts by the catalogue: what differs, and what a host lacks; it queries no host.

Each fact is one column, {host: value}.  So the work grows with the number of hosts and facts, and never with pairs of
hosts.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping

from hccl_tools.common.grouping import grouped
from hccl_tools.common.language import tr
from hccl_tools.common.quoting import harmless
from hccl_tools.common.words import short
from tools.preflight.catalog.row import Equal, Least, Near, Nothing, Row, Shared, Yes
from tools.preflight.catalog.rows import COLLECTORS, ROWS, knows
from tools.preflight.difference import LEVELS, Answer, Difference, Group

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tools.preflight.difference import Value

    Column = dict[str, Value]  # {host: value} of one fact

_MOST_FACTS = 5  # of one family whose hosts are grouped alike, in one line
_MOST_TAKEN = 2000  # facts of a host
_MOST_ENTRIES = 256  # of a list
_MOST_TEXT = 300  # characters of a value
_MOST_KEY = 4200  # the longest path, and what is before it
_MOST_NUMBER = 1 << 62
_FILES = "file:"


def compare(answers: Mapping[str, Answer], rows: Iterable[Row] = ROWS) -> list[Difference]:
    """The Differences between the hosts, {host: its answer}, the worst first."""
    columns, families = _columns(answers)
    told: dict[str, set[str]] = {}  # {fact: hosts that a Difference has}
    found = [*_gave_up(answers)]
    for row in rows:
        keys = families.get(row.key, []) if row.is_family else [row.key]
        of_row = []
        for key in keys:
            column = _complete(row, columns.get(key, {}), answers)
            known = told.setdefault(key, set())
            of_row += _judged(row, key, {host: value for host, value in column.items() if host not in known})
            known.update(host for each in of_row if each.key == key for group in each.groups for host in group.hosts)
        found += _merged(of_row) if row.is_family else of_row
    return sorted(found, key=lambda each: LEVELS.index(each.level))


def _columns(answers: Mapping[str, Answer]) -> tuple[dict[str, Column], dict[str, list[str]]]:
    """({fact: its column}, {family: its facts, sorted})."""
    columns: dict[str, Column] = {}
    for host, answer in answers.items():
        for key, value in answer.facts.items():
            columns.setdefault(key, {})[host] = value
    families: dict[str, list[str]] = {}
    for key in sorted(columns):
        start, colon, _ = key.partition(":")
        if colon:
            families.setdefault(start + colon, []).append(key)
    return columns, families


def _complete(row: Row, column: Column, answers: Mapping[str, Answer]) -> Column:
    """The column with the hosts that do not have a fact of a family, if its collector has answered there."""
    if not row.is_family or len(column) == len(answers):
        return column
    return {
        host: column.get(host)
        for host, answer in answers.items()
        if host in column or row.collector not in answer.failed
    }


def _gave_up(answers: Mapping[str, Answer]) -> Iterator[Difference]:
    """The collectors that gave no facts, and why."""
    reasons = grouped(
        ((collector, why), host) for host, answer in answers.items() for collector, why in answer.failed.items()
    )
    for (collector, why), hosts in reasons.items():
        level, what = COLLECTORS[collector]
        said = tr("{what} could not be checked: {reason}", what=tr(what), reason=why)
        yield Difference(key=collector, level=level, groups=[Group(hosts=hosts, text=said)])


# ---- one column ----------------------------------------------------------------------------------------------------


def _judged(row: Row, key: str, column: Column) -> list[Difference]:
    rule = row.rule
    if not column:
        return []
    if isinstance(rule, Equal):
        return _by_majority(row, key, _alike(column, rule.enough))
    if isinstance(rule, Near):
        return _by_majority(row, key, _near(column, rule.part))
    if isinstance(rule, Shared):
        return _away(row, key, _alike(column))
    if isinstance(rule, Least):
        return _too_little(row, key, column, rule.least)
    assert isinstance(rule, (Yes, Nothing))
    lacking = {h: v for h, v in column.items() if (not v if isinstance(rule, Yes) else v)}
    groups = [_group(row, key, hosts, value) for hosts, value in _alike(lacking)]
    return [_difference(row, key, groups)] if groups else []


def _alike(column: Column, enough: int | None = None) -> list[tuple[list[str], Value]]:
    """The hosts with the same value, and that value, in the order of their first hosts."""
    found: dict[object, tuple[list[str], Value]] = {}
    for host, value in column.items():
        found.setdefault(_canonical(value, enough), ([], value))[0].append(host)
    return list(found.values())


def _canonical(value: Value, enough: int | None) -> object:
    if enough is not None and (value is None or (isinstance(value, (int, float)) and value >= enough)):
        return "enough"
    if isinstance(value, (list, tuple)):
        return tuple(value)
    return (type(value) is bool, value)  # 1 is not True


def _near(column: Column, part: float) -> list[tuple[list[str], Value]]:
    """The hosts whose number is near the middle one, and those of each other number."""
    numbers = sorted(value for value in column.values() if isinstance(value, (int, float)))
    middle = numbers[(len(numbers) - 1) // 2] if numbers else 0
    away = abs(middle) * part
    near = {h: v for h, v in column.items() if isinstance(v, (int, float)) and abs(v - middle) <= away}
    rest = _alike({host: value for host, value in column.items() if host not in near})
    return [(list(near), middle), *rest] if near else rest


def _by_majority(row: Row, key: str, alike: list[tuple[list[str], Value]]) -> list[Difference]:
    """The hosts that differ from the majority; without a majority, all of them."""
    if len(alike) < 2:
        return []
    hosts = sum(len(group) for group, _ in alike)
    groups = [_group(row, key, group, value) for group, value in alike]
    others = next((group for group in groups if 2 * len(group.hosts) > hosts), None)
    named = [group for group in groups if group is not others]
    there = [value for _, value in alike if value is not None]
    level = row.lacking if row.lacking and len(there) < 2 else row.level
    return [Difference(key=key, level=level, groups=named, others=others, remedy=tr(row.remedy) if row.remedy else "")]


def _away(row: Row, key: str, alike: list[tuple[list[str], Value]]) -> list[Difference]:
    """The hosts that do not have what most share."""
    hosts = sum(len(group) for group, _ in alike)
    if not any(2 * len(group) > hosts > len(group) for group, _ in alike):
        return []
    away = [host for group, _ in alike if 2 * len(group) <= hosts for host in group]
    return [_difference(row, key, [Group(hosts=away, text=row.phrase(key, None))])]


def _too_little(row: Row, key: str, column: Column, least: int) -> list[Difference]:
    few = {h: v for h, v in column.items() if isinstance(v, (int, float)) and v < least}
    if not few:
        return []
    low, high = min(few.values(), key=float), max(few.values(), key=float)
    text = tr("{text}; at least {least} is needed", text=row.between(low, high), least=row.shown(least))
    return [_difference(row, key, [Group(hosts=list(few), text=text, values={key: low})])]


def _difference(row: Row, key: str, groups: list[Group]) -> Difference:
    return Difference(key=key, level=row.level, groups=groups, remedy=tr(row.remedy) if row.remedy else "")


def _group(row: Row, key: str, hosts: list[str], value: Value) -> Group:
    shown = "" if value is None else row.shown(value)
    return Group(hosts=hosts, text=row.phrase(key, value), value=shown, values={key: value})


# ---- facts of a family ---------------------------------------------------------------------------------------------


def _merged(found: list[Difference]) -> list[Difference]:
    """The same with one Difference for all facts by which the hosts are grouped alike."""
    alike: dict[object, list[Difference]] = {}
    for each in found:
        groups = tuple(tuple(group.hosts) for group in each.groups)
        alike.setdefault((each.level, groups, each.others is None), []).append(each)
    return [same[0] if len(same) == 1 else _together(same) for same in alike.values()]


def _together(same: list[Difference]) -> Difference:
    groups = [_joined([each.groups[n] for each in same]) for n in range(len(same[0].groups))]
    others = _joined([each.others for each in same if each.others])
    return same[0].replace(groups=groups, others=others if same[0].others else None)


def _joined(groups: list[Group]) -> Group:
    texts = ", ".join(group.text for group in groups[:_MOST_FACTS])
    more = len(groups) - _MOST_FACTS
    text = tr("{names} and {number} more", names=texts, number=more) if more > 0 else texts
    return Group(hosts=groups[0].hosts if groups else (), text=text, values=_union(groups))


def _union(groups: list[Group]) -> dict[str, Value]:
    return {key: value for group in groups for key, value in group.values.items()}


def taken(content: Any) -> Answer | None:
    """The Answer in the data that a host has sent; None if it has another form."""
    facts, failed = (content.get(part) for part in ("facts", "failed")) if isinstance(content, dict) else (None, None)
    if not isinstance(facts, dict) or not isinstance(failed, dict) or len(facts) > _MOST_TAKEN:
        return None
    taken = {sys.intern(harmless(key)): _value(value) for key, value in facts.items() if _is_key(key)}
    why = {name: short(harmless(str(text)), _MOST_TEXT) for name, text in failed.items() if name in COLLECTORS}
    return Answer(facts=taken, failed=why, links=content.get("links"))


def _is_key(key: str) -> bool:
    return len(key) <= _MOST_KEY and knows(key)


def _value(value: Any) -> Value:
    if isinstance(value, list):
        return tuple(_text(str(entry)) for entry in value[:_MOST_ENTRIES])
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        return value if abs(value) < _MOST_NUMBER else None
    return _text(str(value))


def _text(text: str) -> str:
    return sys.intern(short(harmless(text), _MOST_TEXT))  # hosts that are alike say the same thousand times


def completed(answers: Mapping[str, Answer], files: Mapping[str, str]) -> dict[str, Answer]:
    """The same answers, with the asker's digest, {path: digest}, for files that a host did not report."""
    named = {key for answer in answers.values() for key in answer.facts if key.startswith(_FILES)}
    known = {_FILES + path: digest for path, digest in files.items()}
    added = {key: known[key] for key in sorted(named) if key in known}
    return {
        host: answer if "files" in answer.failed else answer.replace(facts={**added, **answer.facts})
        for host, answer in answers.items()
    }
