"""The trial on the page: each host's times, slow ones first, what fails, and how to continue without those hosts."""

from __future__ import annotations

from hccl_tools.common.language import tr
from hccl_tools.common.words import clauses, count
from hccl_tools.hosts import node_sets
from tools.preflight.trial import judge, report
from tools.run_page.markup import escaped, section, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tools.preflight.trial.judge import Slow
    from tools.preflight.trial.search import Fault
    from tools.preflight.trial.trial import Result
    from tools.run_page.markup import States, Writer

FAILED, SLOW, GOOD = "failed", "slow", "good"  # classes of style/hosts.css
_MOST_ROWS = 256  # hosts of the table
_MOST_SHOWN = 4  # hosts that are neither slow nor folded
_SCALE = 2.5  # times the usual: the least that a whole bar stands for
_MOST_NAMED = 12  # sets of hosts in a line


def html_of(result: Result | None, shown: States, writer: Writer) -> str:
    """The section; empty without a trial.  shown: the marks of hosts, as the page has them."""
    if result is None:
        return ""
    body = [f"<p>{writer.text(_sentence(result))}</p>", _found(result, writer)]
    if result.figures:
        body.append(_table(result, shown, writer))
    return section("trial", tr("A short real job"), "".join([*body, _advice(result, writer)]))


def _sentence(result: Result) -> str:
    """Whether a job has passed, and what it cost to know that."""
    jobs = tr("{jobs} in {seconds} s", jobs=count(result.jobs, "job"), seconds=f"{result.seconds:.0f}")
    if not result.figures:
        return clauses(tr("no job on all hosts passed"), jobs)
    passed = {
        "ranks": count(len({figure.rank for figure in result.figures}), "rank"),
        "hosts": count(len(result.found.left), "host"),
    }
    return clauses(tr("{ranks} on {hosts} passed", **passed), jobs)


def _found(result: Result, writer: Writer) -> str:
    """How halving and pairing have found what fails, and among which hosts more may fail."""
    told = [(fault.hosts, _how(fault)) for fault in result.found.faults]
    if result.found.unknown and result.found.faults:
        told.append(
            (tuple(result.found.unknown), tr("more may fail here: the limit of jobs or of time was reached first"))
        )
    items = [
        f"<li><b>{writer.text(node_sets.folded(hosts, _MOST_NAMED))}</b> {writer.text(how)}</li>" for hosts, how in told
    ]
    return f'<ul class="problems">{"".join(items)}</ul>' if items else ""


def _how(fault: Fault) -> str:
    if len(fault.hosts) > 1:
        return tr("found by halving: each of them passes, and together they fail")
    if fault.paired:
        return tr("found by halving; paired with {good}, which passes without it, it fails again", good=fault.paired)
    return tr("found by halving: it fails alone")


# ---- what each host took -------------------------------------------------------------------------------------------


def times(result: Result) -> dict[str, dict[str, float]]:
    """{host: {measure: what its slowest rank took}}; of pairs the fastest, unless the pair itself is slow.

    A neighbour that is slow must not make a host look slow.
    """
    found: dict[str, dict[str, float]] = {}
    for figure in result.figures:
        of_host, name = found.setdefault(figure.host, {}), judge.name_of(figure.measure)
        worst = min if name == "pair" else max
        of_host[name] = worst(of_host.get(name, figure.seconds), figure.seconds)
    for slow in result.slow:
        for host in slow.hosts:
            found.setdefault(host, {})[slow.measure] = slow.seconds
    return found


def order(of_hosts: Mapping[str, Mapping[str, float]], slow: Sequence[Slow], usual: Mapping[str, float]) -> list[str]:
    """The hosts: those that are slow as the judge has them, then those that took the most of what one host does."""
    named = list(dict.fromkeys(host for each in slow for host in each.hosts))

    def most(host: str) -> float:
        return max(
            (took / usual[name] for name, took in of_hosts[host].items() if _alone(name) and usual[name]), default=0
        )

    rest = sorted((host for host in of_hosts if host not in named), key=most, reverse=True)
    return [*(host for host in named if host in of_hosts), *rest]


def _alone(measure: str) -> bool:
    """Whether a host does it without waiting for all others."""
    return measure in ("matmul", "read", "pair")


def _table(result: Result, shown: States, writer: Writer) -> str:
    """A row for each host: first those that fail, the middle of all, and those that are slow."""
    of_hosts, names = times(result), report.measures()
    summary = judge.summary(result.figures)
    usual = {name: summary[name][0] for name in names if name in summary}
    scale = {name: max(_SCALE * usual[name], *(took.get(name, 0.0) for took in of_hosts.values())) for name in usual}
    slow = {(host, each.measure): each for each in result.slow for host in each.hosts}
    hosts = order(of_hosts, result.slow, usual)
    rows = []
    for host in hosts[:_MOST_ROWS]:
        cells = [_cell(of_hosts[host].get(name), scale[name], slow.get((host, name))) for name in usual]
        rows.append(_row(host, SLOW if any((host, name) in slow for name in usual) else GOOD, cells, shown, writer))
    failed = dict.fromkeys(host for fault in result.found.faults for host in fault.hosts if host not in of_hosts)
    above = [_row(host, FAILED, [""] * len(usual), shown, writer) for host in [*failed][:_MOST_ROWS]]
    middle = [f'<span class="same">{escaped(report.duration(seconds))}</span>' for seconds in usual.values()]
    above.append([f'<span class="same">{escaped(tr("the median of all"))}</span>', *middle])
    heads = [tr("host"), *(names[name] for name in usual)]
    first = len({host for host, _ in slow}) + _MOST_SHOWN
    return table(heads, [*above, *rows[:first]], cards=True) + _others(heads, rows[first:], len(hosts) - first)


def _others(heads: Sequence[str], rows: Sequence[Sequence[str]], number: int) -> str:
    """The hosts that are as most are, to be unfolded: there may be many."""
    if not rows:
        return ""
    title = tr("The other {hosts}, none of them slow", hosts=count(number, "host"))
    text = tr("{hosts} more; --json has all.", hosts=count(number - len(rows), "host"))
    note = f"<p>{escaped(text)}</p>" if number > len(rows) else ""
    return f"<details><summary>{escaped(title)}</summary>{table(heads, rows, cards=True)}{note}</details>"


def _row(host: str, state: str, cells: Sequence[str], shown: States, writer: Writer) -> list[str]:
    words = {FAILED: tr("fails"), SLOW: tr("slow"), GOOD: ""}[state]
    said = f"<small>{escaped(words)}</small>" if words else ""
    return [f'{shown.spot(state)} <b class="host-name">{writer.text(host)}</b>{said}', *cells]


def _cell(seconds: float | None, scale: float, slow: Slow | None) -> str:
    """What a host took, and a bar next to those of the others; a slow one states by how much."""
    if seconds is None:
        return ""
    kind = SLOW if slow else GOOD
    width = 100 * seconds / scale if scale else 0
    factor = ""
    if slow:
        factor = f"<small>{escaped(tr('{factor} times the usual', factor=f'{slow.factor:.1f}'))}</small>"
    return (
        f'<span class="took {kind}">{escaped(report.duration(seconds))}'
        f'<i aria-hidden="true" style="width:{width:.0f}%"></i></span>{factor}'
    )


# ---- how to do without some ----------------------------------------------------------------------------------------


def _advice(result: Result, writer: Writer) -> str:
    items = list(_commands(result, writer))
    if not items:
        return ""
    title = report.title_of_advice(result).rstrip(":：")
    return f'<h3>{writer.text(title)}</h3><ul class="problems">{"".join(items)}</ul>'


def _commands(result: Result, writer: Writer) -> Iterator[str]:
    for each in result.advice:
        first, *rest = each.text.splitlines()
        if rest:
            text = writer.lines([first, *rest])
            yield f"<li><details><summary>{writer.text(each.title)}</summary><pre>{text}</pre></details></li>"
        else:
            yield f'<li>{writer.text(each.title)}: <code class="type">{writer.text(first)}</code></li>'
