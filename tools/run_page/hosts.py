"""Where the ranks ran: a block for each host, with a cell for each rank, coloured by its outcome.

With very many ranks a cell is a host.  If there is a rank table, it is drawn below.
"""

from __future__ import annotations

import os

from hccl_tools.common.grouping import grouped
from hccl_tools.common.language import tr
from hccl_tools.common.record import Record
from hccl_tools.common.words import clauses, count, listed, one_line, short_path
from hccl_tools.show import drawing, overview
from hccl_tools.table import rank_table
from tools.diagnosis import run
from tools.diagnosis.run import STOPPED_BY_US
from tools.history.listing import RUNNING
from tools.run_page import explained, markup, named
from tools.run_page.markup import escaped, section

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.run_page.markup import Writer
    from tools.run_page.named import Named
    from tools.run_page.reading import Attempt, Rank, RunData

# The most important first.
FIRST, FAILED, APART, SLOW, SILENT, UNKNOWN, STOPPED, RUNS, GOOD = (
    *("first", "failed", "apart", "slow", "silent"),
    *("unknown", "stopped", "runs", "good"),
)
ORDER = (FIRST, FAILED, APART, SLOW, SILENT, UNKNOWN, STOPPED, RUNS, GOOD)
PROBLEMS = (FIRST, FAILED, APART, SLOW, SILENT)
MARKS = {FIRST: "✕", FAILED: "✕", APART: "‖", SLOW: "!", SILENT: "–", UNKNOWN: "?"}  # a colour alone says too little
_MOST_LARGE = 64  # ranks whose cells have their numbers in them
_MOST_CELLS = 4096  # of ranks; of more, a cell is a host
_MOST_HOSTS = 16_384
_MOST_NAMED = 12  # hosts with a problem
_MOST_TABLE = 4 << 20  # bytes of a rank table that is drawn
_MOST_DRAWN = 64  # devices


class Host(Record):
    """A host and its ranks."""

    name: str
    ranks: list[Rank]


def html_of(data: RunData, names: dict[int, Named], writer: Writer) -> str:
    """The section; empty where no rank is known."""
    hosts = _hosts(data)
    if not hosts:
        return ""
    states = states_of(data, names)
    if len(data.ranks) > _MOST_CELLS:
        drawn = _of_hosts(hosts, states, writer)
    else:
        large = " large" if len(data.ranks) <= _MOST_LARGE else ""
        blocks = "".join(_block(host, states, bool(large), writer) for host in hosts)
        drawn = f'<div class="hosts{large}">{blocks}</div>'
    told = tr("{ranks} on {hosts}", ranks=count(len(states), "rank"), hosts=count(len(hosts), "host"))
    parts = [
        f"<p>{escaped(told)}</p>",
        _states().legend(state.how for state in states.values()),
        _problems(hosts, states, names, writer),
        drawn,
    ]
    return section("placement", tr("Where the ranks ran"), "\n".join(filter(None, [*parts, _table(data, writer)])))


def _hosts(data: RunData) -> list[Host]:
    found = grouped((rank.host or str(data.launch.get("host") or "?"), rank) for rank in data.ranks)
    return [Host(name=one_line(name), ranks=ranks) for name, ranks in found.items()]


def _states() -> markup.States:
    words = words_of_state()
    return markup.States(words={how: words[how] for how in ORDER}, marks=MARKS)


def _block(host: Host, states: dict[int, State], large: bool, writer: Writer) -> str:
    """A host: its name, and its ranks.  A label has the same for a screen reader."""
    shown = _states()
    numbers = shown.numbers(states[rank.rank].how for rank in host.ranks)
    told = listed(f"{shown.words[how]}: {number}" for how, number in numbers.items())
    told = clauses(f"{host.name}: {named.ranks(rank.rank for rank in host.ranks)}", told)
    cells = [_cell(rank, states[rank.rank], large, shown) for rank in host.ranks]
    name = f'<p class="name">{writer.text(host.name)}</p>'
    return f'<div class="host">{name}{markup.of_cells(cells, writer.plain(told))}</div>\n'


def _cell(rank: Rank, state: State, large: bool, shown: markup.States) -> str:
    device = "" if rank.device is None else tr("device {device}", device=rank.device)
    status = "" if state.status is None else tr("exit code {status}", status=state.status)
    title = listed(filter(None, [named.label(rank.rank), device, shown.words[state.how], status]))
    return shown.cell(state.how, escaped(title), f"<b>{rank.rank}</b>" if large else "")


def _of_hosts(hosts: list[Host], states: dict[int, State], writer: Writer) -> str:
    """A cell for each host, of the most important state of its ranks."""
    shown, cells = _states(), []
    for host in hosts[:_MOST_HOSTS]:
        how = min((states[rank.rank].how for rank in host.ranks), key=ORDER.index)
        title = clauses(f"{host.name}: {named.ranks(rank.rank for rank in host.ranks)}", shown.words[how])
        cells.append(shown.cell(how, writer.text(title)))
    text = tr("One cell is a host, with the state of its worst rank.")
    if len(hosts) > _MOST_HOSTS:
        text += " " + tr("{some} of {all} hosts are shown.", some=_MOST_HOSTS, all=len(hosts))
    label = tr("{hosts}, one cell each", hosts=count(len(hosts), "host"))
    return f'<p class="hint">{escaped(text)}</p>{markup.of_cells(cells, label)}'


def _problems(hosts: list[Host], states: dict[int, State], names: dict[int, Named], writer: Writer) -> str:
    """The hosts with a problem, by name; the worst first."""
    found = []
    for host in hosts:
        bad = [rank.rank for rank in host.ranks if states[rank.rank].how in PROBLEMS]
        if bad:
            found.append((min(ORDER.index(states[rank].how) for rank in bad), host, bad))
    found.sort(key=lambda row: row[0])
    items = [f"<li>{_problem(host, bad, states, names, writer)}</li>" for _, host, bad in found[:_MOST_NAMED]]
    if len(found) > _MOST_NAMED:
        rest = tr("{number} more hosts with a problem", number=len(found) - _MOST_NAMED)
        items.append(f"<li>{escaped(rest)}</li>")
    return f'<ul class="problems">{"".join(items)}</ul>' if items else ""


def _problem(host: Host, bad: list[int], states: dict[int, State], names: dict[int, Named], writer: Writer) -> str:
    words = words_of_state()
    by_state = grouped((states[rank].how, rank) for rank in bad)
    parts = []
    for how in (how for how in ORDER if how in by_state):
        chips = "".join(named.chip(names[rank]) for rank in by_state[how] if rank in names)
        parts.append(f"{chips}{escaped(named.ranks(by_state[how]))}: {escaped(words[how])}")
    return f"<b>{writer.text(host.name)}</b> {'; '.join(parts)}"


# --- the rank table ---------------------------------------------------------------------------------------------------


def _table(data: RunData, writer: Writer) -> str:
    """The rank table as a drawing, where it is small enough to be looked at; otherwise its path."""
    path = run.table_of(data.launch)
    if path is None:
        return ""
    view = _read(path, data)
    title = tr("the rank table {path}", path=short_path(path))
    if view is None or sum(len(server.devices) for server in view.servers) > _MOST_DRAWN:
        return f'<p class="hint">{writer.text(title)}</p>' if view else ""
    drawn = "".join(drawing.parts(view))
    return (
        f'<details><summary>{writer.text(title)}</summary><p class="hint">{writer.text(view.headline)}</p>'
        f'<div class="drawing">{drawn}</div></details>'
    )


def _read(path: str, data: RunData) -> overview.Overview | None:
    """The rank table; None where it cannot be read, or has no servers."""
    beside = os.path.join(data.folder, os.path.basename(path))
    path = beside if os.path.exists(beside) else path  # the folder may have been moved
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > _MOST_TABLE:
            return None
        parsed, problems = rank_table.read(path)
    except (OSError, ValueError):
        return None
    view = None if problems else overview.of(parsed)
    return view if view and view.servers else None


# ---- What became of each rank in the last attempt, as one word of a few: for what shows all ranks at once.


class State(Record):
    """The state of one rank."""

    how: str
    status: int | None


def states_of(data: RunData, names: dict[int, Named]) -> dict[int, State]:
    """{rank: State} of all ranks of the plan."""
    attempt, silent, roots = data.attempts[-1], _silent(data), explained.roots_of(data)
    found = {}
    for rank in data.ranks:
        status = attempt.members.get(str(rank.rank), {}).get("status")
        status = status if type(status) is int else None
        why = names[rank.rank].why if rank.rank in names else ()
        how = _how(attempt, str(rank.rank), status, data.run.state == RUNNING)
        if rank.rank in roots:
            how = FIRST
        elif how not in (FIRST, FAILED):
            if named.HUNG in why:
                how = APART
            elif named.SLOW in why:
                how = SLOW
            elif rank.rank in silent:
                how = SILENT
        found[rank.rank] = State(how=how, status=status)
    return found


def _how(attempt: Attempt, name: str, status: int | None, runs: bool) -> str:
    if name == attempt.first_failure or name in attempt.also_failed:
        return FAILED
    if status is None:
        return RUNS if runs else UNKNOWN
    if status == 0:
        return GOOD
    if attempt.stopped_by and attempt.first_failure is None:
        return STOPPED  # the stack of a rank that hangs comes with SIGABRT
    return STOPPED if status in STOPPED_BY_US else FAILED


def _silent(data: RunData) -> set[int]:
    """Ranks whose log of the last attempt is here and has no number, where the logs of most ranks have some."""
    last = {rank: logs[-1] for rank, logs in data.logs.items() if len(logs) == len(data.attempts)}
    found = {rank for rank, log in last.items() if not log.columns and not log.metrics}
    return found if 2 * len(found) < len(last) else set()


def words_of_state() -> dict[str, str]:
    """{state: what it is called}"""
    return {
        FIRST: tr("failed first"),
        FAILED: tr("failed"),
        APART: tr("elsewhere than the others, when the job hung"),
        SLOW: tr("slow"),
        SILENT: tr("no numbers in its log"),
        UNKNOWN: tr("its end is not known"),
        STOPPED: tr("was stopped"),
        RUNS: tr("runs"),
        GOOD: tr("ended with 0"),
    }
