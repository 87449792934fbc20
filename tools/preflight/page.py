"""The result as one HTML file, with the look of the page of a run: the answer, what to do, the hosts, what differs."""

from __future__ import annotations

from hccl_tools.common.grouping import grouped
from hccl_tools.common.language import tr
from hccl_tools.common.words import clauses, count, some
from hccl_tools.hosts import node_sets
from tools.diagnosis.bundle.masking import Masker
from tools.preflight import document, page_table, page_trial, words
from tools.preflight.difference import BLOCKS, SLOWS, SURPRISES
from tools.run_page import markup, saving
from tools.run_page.markup import Writer, escaped, section

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tools.preflight.words import Found

PROGRAM = "scripts/preflight.sh"
STOPS, SILENT, SLOW, DIFFERS, GOOD = "failed", "silent", "slow", "differs", "good"  # classes of style/hosts.css
_OF_LEVEL = {BLOCKS: STOPS, SLOWS: SLOW, SURPRISES: DIFFERS}
_LONGEST = 240  # characters of the first sentence
_MOST_LINES = 200  # findings of a level
_MOST_NAMED = 256  # hosts whose names are beside their cells
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
        page_table.html_of(found, writer),
        page_table.facts_of(found, writer),
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
        document.STOPS: ("failed", tr("the job would stop")),
        document.DIFFERS: ("runs", tr("nothing blocks")),
        document.GOOD: ("good", tr("all alike")),
    }[document.verdict(found)]


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
    reasons = _reasons(found)
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


def _reasons(found: Found) -> dict[str, list[str]]:
    """{host: what a finding has about it}"""
    return grouped((host, group.text) for each in found.differences for group in each.groups for host in group.hosts)


def _title(host: str, state: str, reasons: Mapping[str, list[str]], shown: markup.States) -> str:
    return clauses(f"{host}: {shown.words[state]}", *filter(None, [some(reasons.get(host, []), _MOST_REASONS)]))
