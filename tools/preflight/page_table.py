"""What differs, as a table with a column for hosts that are alike in all of it; and the facts of some hosts."""

from __future__ import annotations

from hccl_tools.common.grouping import grouped
from hccl_tools.common.language import tr
from hccl_tools.common.words import count
from hccl_tools.hosts import node_sets
from tools.preflight import values
from tools.preflight.catalog.row import Equal, Least, Near
from tools.preflight.catalog.rows import ROWS
from tools.preflight.difference import BLOCKS, SLOWS, SURPRISES
from tools.preflight.trial import report
from tools.run_page.markup import escaped, section, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tools.preflight.catalog.row import Row
    from tools.preflight.difference import Difference, Facts
    from tools.preflight.words import Found
    from tools.run_page.markup import Writer

    Places = tuple[tuple[int, int], ...]  # (number of a Difference, number of a group in it) of a host

_MOST_COLUMNS = 5  # beside that of the other hosts
_MOST_ROWS = 100
_MOST_FOLDED = 3  # sets of hosts in the head of a column
_MOST_FACTS_OF = 8  # hosts


def html_of(found: Found, writer: Writer) -> str:
    """The table; empty if nothing differs.  What a trial has found is in page_trial.py."""
    shown = [each for each in found.differences if not each.key.startswith(report.KEY)][:_MOST_ROWS]
    columns = _columns(shown)
    others = _others(found, columns)
    heads = [tr("means"), *(node_sets.folded(hosts, _MOST_FOLDED) for hosts in list(columns.values())[:_MOST_COLUMNS])]
    if others:
        heads.append(tr("the other {hosts}", hosts=count(len(others), "host")))
    rows = [_row(number, one, list(columns)[:_MOST_COLUMNS], bool(others), writer) for number, one in enumerate(shown)]
    more = sum(len(hosts) for hosts in list(columns.values())[_MOST_COLUMNS:])
    note = tr("{hosts} differ in other ways; the lists above name them.", hosts=count(more, "host")) if more else ""
    body = table([writer.plain(head) for head in heads], rows, cards=True) if rows else ""
    return section("unlike", tr("What differs"), body + (f"<p>{escaped(note)}</p>" if note else ""))


def _others(found: Found, columns: dict[Places, list[str]]) -> list[str]:
    """The hosts that have answered and that are as most hosts."""
    named = {host for hosts in columns.values() for host in hosts}.union(found.silent)
    return [host for host in found.hosts if host not in named]


def _columns(differences: Sequence[Difference]) -> dict[Places, list[str]]:
    """The hosts that are in the same groups of all Differences; those with the worst one first."""
    places = grouped(
        (host, (number, place))
        for number, each in enumerate(differences)
        for place, group in enumerate(each.groups)
        for host in group.hosts
    )
    return grouped((tuple(found), host) for host, found in places.items())


def _row(number: int, each: Difference, columns: Sequence[Places], others: bool, writer: Writer) -> list[str]:
    """The cells of a Difference: in each column what its hosts have, as far as that is known."""
    level = {BLOCKS: tr("stops the job"), SLOWS: tr("slows the job"), SURPRISES: tr("may surprise")}[each.level]
    usual = f'<span class="same">{writer.text(each.others.text)}</span>' if each.others else ""
    cells = []
    for column in columns:
        place = next((place for of, place in column if of == number), None)
        cells.append(usual if place is None else writer.text(each.groups[place].text))
    return [escaped(level), *cells, *([usual] if others else [])]


def facts_of(found: Found, writer: Writer) -> str:
    """The facts of the first host of each column, as far as these are few, and of one that is as most hosts are."""
    columns = _columns(found.differences[:_MOST_ROWS])
    usual = _others(found, columns)[:1]
    parts = []
    for host in [*(hosts[0] for hosts in list(columns.values())[:_MOST_FACTS_OF]), *usual]:
        if host not in found.facts:
            continue
        items = "".join(f"<li>{writer.text(text)}</li>" for text in _phrases(found.facts[host]))
        title = tr("{host}, as most hosts", host=host) if host in usual else host
        parts.append(f"<details><summary>{writer.text(title)}</summary><ul>{items}</ul></details>")
    return section("facts", tr("Facts of a host"), "".join(parts))


def _phrases(facts: Facts) -> Iterator[str]:
    """What a host has, in the order of the catalogue.  A fact that is only yes or no has no words here."""
    seen = set()
    for row in ROWS:
        for key in _keys(row, facts):
            value = facts[key]
            if key not in seen and isinstance(row.rule, (Equal, Least, Near)) and (value is not None or row.without):
                seen.add(key)
                yield values.phrase(row, key, value)


def _keys(row: Row, facts: Facts) -> list[str]:
    if row.is_family:
        return sorted(key for key in facts if key.startswith(row.key))
    return [row.key] if row.key in facts else []
