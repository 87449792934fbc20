"""The parts of the page of one run that are words and tables."""

from __future__ import annotations

import base64
import os
from datetime import timedelta

from hccl_tools.common import typed
from hccl_tools.common.language import tr
from hccl_tools.common.words import count, ranges, short_path
from hccl_tools.show import drawing, overview
from hccl_tools.table import rank_table
from tools.diagnosis import hang, slow_ranks
from tools.diagnosis import run as run_folder
from tools.diagnosis.bundle import pages
from tools.history.listing import LOST, RUNNING
from tools.logs import known_failures
from tools.run_page import charts, surroundings
from tools.run_page.markup import escaped, section, table
from tools.together import findings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tools.history.listing import Run
    from tools.run_page.markup import Writer
    from tools.run_page.outliers import Outlier
    from tools.run_page.reading import RunData
    from tools.run_page.surroundings import Surroundings

_EXCERPT = 40  # lines of a log
_MOST_FOUND = 5  # known failures
_MOST_TABLE = 4 << 20  # bytes of a rank table that is drawn
_MOST_DRAWN = 512  # ranks


def state_of(run: Run) -> tuple[str, str]:
    """(class, words) of what became of the run."""
    if run.state == RUNNING:
        return "runs", tr("still runs")
    if run.state == LOST:
        return "failed", tr("its launcher was killed")
    if run.exit is None:
        return "unknown", tr("its end is not known")
    return ("failed" if run.exit else "good"), tr("exit {status}", status=run.exit)


def head(data: RunData, writer: Writer) -> str:
    """Name, outcome and cause, and the facts in short."""
    run = data.run
    how, words = state_of(run)
    cause = f'<p class="cause {how}">{writer.text(run.cause)}</p>' if run.cause else ""
    if run.state == RUNNING:
        text = tr("The run still goes on. This page shows what its logs had when the page was written.")
        cause += f'<p class="hint">{escaped(text)}</p>'
    facts = "".join(f"<div><dt>{escaped(name)}</dt><dd>{writer.text(value)}</dd></div>" for name, value in _facts(data))
    what = writer.text(" ".join(filter(None, [run.script, run.program])))
    return (
        f'<header id="outcome"><h1>{writer.text(data.name)} <span class="state {how}">{escaped(words)}</span></h1>\n'
        f'<p class="what">{what}</p>\n{cause}\n<dl class="facts">{facts}</dl></header>\n'
    )


def _facts(data: RunData) -> list[tuple[str, str]]:
    run = data.run
    hosts = f" · {run.hosts}" if run.hosts and run.hosts > 1 else ""
    facts = [
        (tr("started (UTC)"), (run.started or "?").replace("T", " ").rstrip("Z")),
        (tr("took"), "?" if run.seconds is None else str(timedelta(seconds=run.seconds))),
        (tr("ranks · hosts") if hosts else tr("ranks"), f"{len(data.ranks)}{hosts}"),
        (tr("hardware"), run.target or "?"),
    ]
    if run.restarts:
        facts.append((tr("restarts"), str(run.restarts)))
    progress = run.progress
    if isinstance(progress.get("loss"), float):
        facts.append((tr("last loss"), f"{progress['loss']:.5g}"))
    if "percent" in progress:
        facts.append((str(progress.get("metric", tr("measured"))), f"{progress['percent']:.4g} %"))
    elif "value" in progress:
        facts.append((str(progress.get("metric", tr("measured"))), f"{progress['value']:.4g}"))
    return facts


def notes(data: RunData, writer: Writer) -> str:
    """What the page does not show."""
    items = "".join(f"<li>{writer.text(note)}</li>" for note in data.notes)
    return section("notes", tr("What is not on this page"), f"<ul>{items}</ul>" if items else "")


# --- why it failed ----------------------------------------------------------------------------------------------------


def diagnosis(data: RunData, writer: Writer) -> str:
    """What the diagnosis says, and the last lines of the log that it is about."""
    outcome = data.launch.get("outcome")
    outcome = outcome if isinstance(outcome, dict) else {}
    said = outcome.get("diagnosis")
    said = said if isinstance(said, dict) else {}
    hung = hang.of_run(data.launch, data.folder)
    parts = [f'<p class="strong">{writer.text(hung)}</p>'] if hung else []
    shown = _sentence(said.get("root"))
    parts += [*_root(said.get("root"), writer), *_exception(said.get("exception"), shown, writer)]
    shown += _text(said.get("exception"))
    found: dict[str, dict[str, Any]] = {}
    for entry in [*_dicts(said.get("matches")), *_dicts(said.get("faults"))]:
        found.setdefault(str(entry.get("code")), entry)
    parts += [_known(entry, shown, writer) for entry in list(found.values())[:_MOST_FOUND]]
    excerpt = _excerpt(data, writer) if outcome else ""
    if excerpt and not parts:
        text = tr(
            "Nothing more is known. {command} reads all logs.", command=typed.command("tools/diagnose.py", data.name)
        )
        parts.append(f'<p class="hint">{writer.text(text)}</p>')
    return section("diagnosis", tr("Why it failed"), "\n".join([*parts, excerpt]).strip())


def _sentence(root: object) -> str:
    return str(root.get("sentence") or "") if isinstance(root, dict) else ""


def _text(raised: object) -> str:
    if not isinstance(raised, dict) or not raised.get("type"):
        return ""
    return f"{raised['type']}: {raised.get('message')}".rstrip(": ")


def _root(root: object, writer: Writer) -> list[str]:
    if not isinstance(root, dict) or not root.get("sentence"):
        return []
    sure = {"sure": tr("sure"), "likely": tr("likely"), "guess": tr("a guess")}.get(str(root.get("certainty")), "?")
    parts = [f'<p class="strong">{writer.text(root["sentence"])}</p>']
    parts.append(f"<p>{writer.text(tr('how sure: {certainty}; {why}', certainty=sure, why=root.get('why')))}</p>")
    for name in ("chain", "next"):
        lines = root.get(name)
        items = "".join(f"<li>{writer.text(line)}</li>" for line in lines[:20]) if isinstance(lines, list) else ""
        parts += [f"<ul>{items}</ul>"] if items else []
    return parts


def _exception(raised: object, shown: str, writer: Writer) -> list[str]:
    """shown: what is on the page already."""
    if not isinstance(raised, dict) or not raised.get("type"):
        return []
    lines = _text(raised).split("\n")[:12]
    lines = lines[1:] if lines[0] in shown else lines
    place = tr("raised at {place}", place=f"{raised.get('file')}:{raised.get('line')}")
    text = f'<pre class="strong">{writer.lines(lines)}</pre>' if lines else ""
    return [f'{text}<p class="hint">{writer.text(place)}</p>']


def _known(entry: dict[str, Any], shown: str, writer: Writer) -> str:
    cause, remedy = entry.get("cause"), entry.get("remedy")
    chinese = known_failures.in_chinese(str(entry.get("code")))
    if chinese:
        cause, remedy = chinese
    said = str(entry.get("line") or "")
    line = f"<pre>{writer.lines([said])}</pre>" if said and said.strip() not in shown else ""
    return (
        f"<h3>{writer.text(entry.get('code'))}</h3>{line}<p>{writer.text(tr('cause: {cause}', cause=cause))}<br>"
        f"{writer.text(tr('remedy: {remedy}', remedy=remedy))}</p>"
    )


def _excerpt(data: RunData, writer: Writer) -> str:
    """The last lines of the member that failed first."""
    members = run_folder.read_members(data.launch, data.folder)[:1]
    if not members or not any(members[0].log.lines):
        return ""
    path = os.path.join(os.path.basename(data.folder), os.path.relpath(members[0].path, data.folder))
    title = tr("the last lines of {log}", log=path)
    lines = writer.lines(members[0].log.lines[-_EXCERPT:])
    return f'<details open><summary>{writer.text(title)}</summary><pre class="end">{lines}</pre></details>'


def together(data: RunData, writer: Writer) -> str:
    """What speaks against one training of all ranks."""
    items = "".join(f"<li>{writer.text(line)}</li>" for line in findings.report(findings.all_of(data.launch)))
    return section("together", tr("Does it train what it should?"), f"<ul>{items}</ul>" if items else "")


def differing(data: RunData, found: list[Outlier], writer: Writer) -> str:
    """The ranks that differ from the others, by name: those that --straggler named, and what the curves show."""
    outcome = data.launch.get("outcome")
    named = slow_ranks.rows_of(outcome.get("stragglers")) if isinstance(outcome, dict) else []
    lines = [*slow_ranks.report(named), *map(charts.outlier_text, found)]
    items = "".join(f"<li>{writer.text(line)}</li>" for line in lines)
    body = f"<ul>{items}</ul>" if items else ""
    if any(one.kind == "slow" and one.field == "step_ms" for one in found):
        text = tr(
            "Ranks that wait for one another in every step all take the time of the slowest one. The times for data, "
            "and before the ranks wait, show whose it is."
        )
        body += f'<p class="hint">{escaped(text)}</p>'
    return section("differing", tr("Ranks that differ"), body)


# --- where and how it ran ---------------------------------------------------------------------------------------------


def placement(data: RunData, writer: Writer) -> str:
    """The rank table, drawn; without one, the ranks and their devices."""
    entry = data.launch.get("rank_table")
    path = entry.get("file") if isinstance(entry, dict) else None
    path = path or _exported(data, "RANK_TABLE_FILE")
    drawn = _drawn(path, data) if isinstance(path, str) else ""
    if drawn:
        encoded = base64.b64encode(drawn.encode()).decode("ascii")
        image = f'<div class="wide"><img alt="" src="data:image/svg+xml;base64,{encoded}"></div>'
        body = f'{image}<p class="hint">{writer.text(short_path(str(path)))}</p>'
    else:
        hosts: dict[str, list[int]] = {}
        for rank in data.ranks:
            hosts.setdefault(rank.host or str(data.launch.get("host") or "?"), []).append(rank.rank)
        rows = [(writer.text(host), writer.text(ranges(ranks))) for host, ranks in list(hosts.items())[:_MOST_DRAWN]]
        body = table([tr("host"), tr("ranks")], rows) if rows else ""
    return section("placement", tr("Where the ranks ran"), body)


def _exported(data: RunData, name: str) -> object:
    exports = data.launch.get("exports")
    return exports.get(name) if isinstance(exports, dict) else None


def _drawn(path: str, data: RunData) -> str:
    """The drawing of a rank table as SVG; empty where it cannot be read."""
    beside = os.path.join(data.folder, os.path.basename(path))
    path = beside if os.path.exists(beside) else path  # the folder may have been moved
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > _MOST_TABLE:
            return ""
        parsed, problems = rank_table.read(path)
    except (OSError, ValueError):
        return ""
    view = None if problems else overview.of(parsed)
    return drawing.svg(view) if view and view.servers else ""


def around(around: Surroundings, writer: Writer) -> str:
    """Differences between the ranks' environments, what they share, versions."""
    parts = []
    if around.unreadable:
        text = tr("The environments of {ranks} belong to another user.", ranks=count(around.unreadable, "rank"))
        parts.append(f'<p class="hint">{escaped(text)}</p>')
    if around.files:
        parts.append(f"<h3>{escaped(tr('Differences between the ranks'))}</h3>")
    rows = [
        (f"<code>{writer.text(one.name)}</code>", _value(one.name, value, writer), escaped(_ranks(ranks)))
        for one in around.different
        for value, ranks in one.values[:20]
    ]
    if rows:
        parts.append(table([tr("variable"), tr("value"), tr("ranks")], rows))
    elif around.files:
        parts.append(f"<p>{escaped(tr('No variable has another value in some of the ranks.'))}</p>")
    if around.own:
        text = tr("Each rank has its own: {names}", names=", ".join(around.own))
        parts.append(f'<p class="hint">{writer.text(text)}</p>')
    shared = [
        (f"<code>{writer.text(name)}</code>", _value(name, value, writer)) for name, value in around.exports.items()
    ]
    if shared:
        inside = table([tr("variable"), tr("value")], shared)
        title = tr("Set by the launcher for all ranks: {number}", number=len(shared))
        parts.append(f"<details><summary>{escaped(title)}</summary>{inside}</details>")
    versions = writer.lines(pages.versions().splitlines())
    title = tr("Versions where this page was written, on {host}", host=os.uname().nodename)
    parts.append(f"<details open><summary>{escaped(title)}</summary><pre>{versions}</pre></details>")
    return section("environment", tr("Environment"), "\n".join(parts))


def _value(name: str, value: str | None, writer: Writer) -> str:
    shown = surroundings.shown(name, value)
    return f"<i>{escaped(tr('not set'))}</i>" if shown is None else f"<code>{writer.text(shown)}</code>"


def _ranks(ranks: list[int]) -> str:
    text = ranges(ranks)
    return text if len(text) <= 60 else text[:60] + "…"


def command(around: Surroundings, writer: Writer) -> str:
    """The command that starts the same again."""
    if around.command is None:
        return ""
    body = f"<pre>{writer.text(around.command)}</pre>"
    if not around.typed:
        text = tr("This is the command of one rank: launch.json does not have the one that was typed.")
        body += f'<p class="hint">{escaped(text)}</p>'
    return section("command", tr("To repeat it"), body)


def _dicts(value: object) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
