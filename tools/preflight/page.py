"""The result as one HTML file, in the style of a run's page: the answer, what to do, the hosts, what differs."""

from __future__ import annotations

from hccl_tools.common.grouping import grouped
from hccl_tools.common.language import tr
from hccl_tools.common.words import clauses, count, some
from hccl_tools.hosts import node_sets
from tools.diagnosis.bundle.masking import Masker
from tools.preflight import page_trial, words
from tools.preflight.catalog.row import Equal, Least, Near
from tools.preflight.catalog.rows import ROWS
from tools.preflight.difference import BLOCKS, SLOWS, SURPRISES
from tools.preflight.trial import report
from tools.run_page import markup, saving
from tools.run_page.markup import Writer, escaped, section, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tools.preflight.catalog.row import Row
    from tools.preflight.difference import Difference, Facts
    from tools.preflight.words import Found
    from tools.run_page.markup import Writer

    Places = tuple[tuple[int, int], ...]  # (number of a Difference, number of a group in it) of a host

_MOST_COLUMNS = 5  # next to that of the other hosts
_MOST_ROWS = 100
_MOST_FOLDED = 3  # sets of hosts in the head of a column
_MOST_FACTS_OF = 8  # hosts
PROGRAM = "scripts/preflight.sh"
STOPS, SILENT, SLOW, DIFFERS, GOOD = "failed", "silent", "slow", "differs", "good"  # classes of style/hosts.css
_OF_LEVEL = {BLOCKS: STOPS, SLOWS: SLOW, SURPRISES: DIFFERS}
_LONGEST = 240  # characters of the first sentence
_MOST_LINES = 200  # findings of a level
_MOST_NAMED = 256  # hosts whose names are next to their cells
_MOST_HOSTS = 16_384
_MOST_REASONS = 3  # that a pointer shows


def html_of(found: Found, made: str) -> str:
    """The page.  made: when the hosts were asked."""
    writer = Writer(Masker({}))
    parts = [
        _head(found, made, writer),
        *_findings(found, writer),
        page_trial.html_of(found.trial, shown(), writer),
        _hosts(found, writer),
        facts_html(found, writer),
        facts_of(found, writer),
    ]
    return saving.file_of(
        tr("hosts before a job: {summary}", summary=words.summary(found)), "".join(parts), PROGRAM, False
    )


def _head(found: Found, made: str, writer: Writer) -> str:
    """The answer, and what to do."""
    how, state = _verdict(found)
    first = next(_lines(found), words.summary(found))
    short = first if len(first) <= _LONGEST else first[:_LONGEST] + "…"
    parts = [
        f'<p class="run"><span class="state {how}">{escaped(state)}</span> {writer.text(made)}</p>',
        f"<h1>{writer.text(short)}</h1>",
        f'<p class="when">{writer.text(words.summary(found))}</p>' if first != words.summary(found) else "",
        markup.to_do(list(dict.fromkeys(each.remedy for each in found.differences if each.remedy)), writer),
    ]
    return f'<header id="outcome" class="{how}">' + "\n".join(filter(None, parts)) + "</header>\n"


def _verdict(found: Found) -> tuple[str, str]:
    """(the class of its colour, words)"""
    return {
        words.STOPS: ("failed", tr("the job would stop")),
        words.DIFFERS: ("runs", tr("nothing blocks")),
        words.GOOD: ("good", tr("all alike")),
    }[words.verdict(found)]


def _lines(found: Found) -> Iterator[str]:
    yield from found.lines
    yield from (words.line(each, found.hosts) for each in found.differences)


def _findings(found: Found, writer: Writer) -> Iterator[str]:
    """A section for each level that has findings."""
    for level, title in words.titles().items():
        lines = [f"<li>{writer.text(line)}</li>" for line in found.lines] if level == BLOCKS else []
        for each in (each for each in found.differences if each.level == level):
            remedy = f'<p class="what">{writer.text(each.remedy)}</p>' if each.remedy else ""
            lines.append(f"<li>{writer.text(words.line(each, found.hosts))}{remedy}</li>")
        if lines[_MOST_LINES:]:
            rest = tr("and {number} more; --json has all", number=len(lines) - _MOST_LINES)
            lines[_MOST_LINES:] = [f"<li>{escaped(rest)}</li>"]
        yield section(level, title.rstrip(":："), f"<ul>{''.join(lines)}</ul>" if lines else "")


# ---- the hosts -----------------------------------------------------------------------------------------------------


def states(found: Found) -> dict[str, str]:
    """{host: its state}, that of the worst Difference that names it."""
    known = dict.fromkeys(found.silent, SILENT)
    for each in found.differences:  # the worst first
        for group in each.groups:
            for host in group.hosts:
                known.setdefault(host, _OF_LEVEL[each.level])
    return {host: known.get(host, GOOD) for host in found.hosts}


def shown() -> markup.States:
    """The states of hosts: their words and marks."""
    called = {
        STOPS: tr("stops the job"),
        SILENT: tr("no answer"),
        SLOW: tr("slows the job"),
        DIFFERS: tr("may surprise"),
        GOOD: tr("as most hosts"),
    }
    return markup.States(words=called, marks={STOPS: "✕", SILENT: "–", SLOW: "!", DIFFERS: "≠"})


def _hosts(found: Found, writer: Writer) -> str:
    """All hosts as a grid; of many hosts a pointer shows the names."""
    marks, of_hosts = shown(), states(found)
    reasons = grouped((host, group.text) for each in found.differences for group in each.groups for host in group.hosts)
    if len(of_hosts) <= _MOST_NAMED:
        drawn = "".join(
            f'<p class="name" title="{writer.text(_title(host, state, reasons, marks))}">{marks.spot(state)} '
            f'{writer.text(host)}<span class="unseen">: {escaped(marks.words[state])}</span></p>'
            for host, state in of_hosts.items()
        )
        drawn = f'<div class="hosts">{drawn}</div>'
    else:
        some_hosts = list(of_hosts.items())[:_MOST_HOSTS]
        cells = [marks.cell(state, writer.text(_title(host, state, reasons, marks))) for host, state in some_hosts]
        drawn = markup.of_cells(cells, tr("{hosts}, one cell each", hosts=count(len(some_hosts), "host")))
    text = tr("{some} of {all} hosts are shown.", some=_MOST_HOSTS, all=len(of_hosts))
    note = f"<p>{escaped(text)}</p>" if len(of_hosts) > _MOST_HOSTS else ""
    return section(
        "hosts", tr("The hosts"), marks.legend(of_hosts.values()) + note + _named(of_hosts, marks, writer) + drawn
    )


def _named(of_hosts: Mapping[str, str], shown: markup.States, writer: Writer) -> str:
    """The hosts in each state but the good one, by name."""
    items = []
    for state, word in shown.words.items():
        hosts = [host for host, how in of_hosts.items() if how == state]
        if hosts and state != GOOD:
            items.append(f"<li><b>{writer.text(node_sets.folded(hosts, 12))}</b> {escaped(word)}</li>")
    return f'<ul class="problems">{"".join(items)}</ul>' if items else ""


def _title(host: str, state: str, reasons: Mapping[str, list[str]], shown: markup.States) -> str:
    return clauses(f"{host}: {shown.words[state]}", *filter(None, [some(reasons.get(host, []), _MOST_REASONS)]))


# ---- What differs, as a table with a column for hosts that are alike in all of it; and the facts of some hosts.


def facts_html(found: Found, writer: Writer) -> str:
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
                yield row.phrase(key, value)


def _keys(row: Row, facts: Facts) -> list[str]:
    if row.is_family:
        return sorted(key for key in facts if key.startswith(row.key))
    return [row.key] if row.key in facts else []
