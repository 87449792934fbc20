"""Small parts of the page of one run: its state, signs of separate training, the command, the environment, notes."""

from __future__ import annotations

import os

from hccl_tools.common import documents
from hccl_tools.common.language import tr
from hccl_tools.common.words import clauses, count
from tools.diagnosis import slow_ranks
from tools.diagnosis.bundle import pages
from tools.history.listing import LOST, RUNNING
from tools.run_page import charts, named, surroundings
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

_MOST_VALUES = 20  # of one variable
_MOST_NAMES = 40


def state_of(run: Run) -> tuple[str, str]:
    """(class, text) of the run's outcome."""
    if run.state == RUNNING:
        return "runs", tr("still runs")
    if run.state == LOST:
        return "failed", tr("its launcher was killed")
    if run.exit is None:
        return "unknown", tr("its end is not known")
    return ("failed" if run.exit else "good"), tr("exit {status}", status=run.exit)


def notes(data: RunData, writer: Writer) -> str:
    """What the page does not show."""
    return section("notes", tr("What is not on this page"), writer.items(data.notes))


def together(data: RunData, writer: Writer) -> str:
    """The signs that the ranks did not train together."""
    lines = findings.report(findings.all_of(data.launch))
    return section("together", tr("Does it train what it should?"), writer.items(lines))


def before_start(data: RunData, writer: Writer) -> str:
    """What --preflight found on the hosts before the start, and what has changed there; nothing if all was alike."""
    told = documents.part(data.launch, "preflight")
    body = writer.items(map(_finding, documents.objects(told, "findings")))
    changed = documents.part(told, "changed")
    facts = documents.texts(changed, "facts")
    if facts:
        since = tr("Changed since the last job that ended well ({made}):", made=str(changed.get("since")))
        body += f"<p>{writer.text(since)}</p>{writer.items(facts)}"
    return section("before", tr("The hosts before the start"), body)


def _finding(each: dict[str, Any]) -> str:
    return clauses(*(str(each[part]) for part in ("text", "remedy") if each.get(part)))


def differing(data: RunData, found: list[Outlier], shown: list[Outlier], writer: Writer) -> str:
    """The ranks that differ from the others, by name: those that --straggler named, and what the curves show.

    shown: what the head of the page states already.
    """
    lines = slow_ranks.report(slow_ranks.of_run(data.launch))
    body = writer.items([*lines, *(charts.outlier_text(one) for one in found if one not in shown)])
    if any(one.kind == "slow" and one.field == "step_ms" for one in found):
        text = tr(
            "Ranks that wait for one another in every step all take the time of the slowest one. The times for "
            "data, and before the ranks wait, show which rank that is."
        )
        body += f'<p class="hint">{escaped(text)}</p>'
    return section("differing", tr("Ranks that differ"), body)


def command(around: Surroundings, writer: Writer) -> str:
    """The command that starts the same again."""
    if around.command is None:
        return ""
    body = f"<pre>{writer.text(around.command)}</pre>"
    if not around.typed:
        text = tr("This is the command of one rank: launch.json does not have the one that was typed.")
        body += f'<p class="hint">{escaped(text)}</p>'
    return section("command", tr("To repeat it"), body)


# ---- The environment of the ranks on the page: what differs between them, what the launcher set, versions.


def environment(around: Surroundings, writer: Writer) -> str:
    """Differences between the ranks' environments, what they share, versions."""
    parts = []
    if around.unreadable:
        text = tr("The environments of {ranks} belong to another user.", ranks=count(around.unreadable, "rank"))
        parts.append(f'<p class="hint">{escaped(text)}</p>')
    parts += _differences(around, writer)
    shared = [
        (f"<code>{writer.text(name)}</code>", _value(name, value, writer)) for name, value in around.exports.items()
    ]
    if shared:
        inside = table([tr("variable"), tr("value")], shared, cards=True)
        title = tr("Set by the launcher for all ranks: {number}", number=len(shared))
        parts.append(f"<details><summary>{escaped(title)}</summary>{inside}</details>")
    versions = writer.lines(pages.versions().splitlines())
    title = tr("Versions where this page was written, on {host}", host=os.uname().nodename)
    parts.append(f"<details><summary>{escaped(title)}</summary><pre>{versions}</pre></details>")
    return section("environment", tr("Environment"), "\n".join(parts))


def _differences(around: Surroundings, writer: Writer) -> list[str]:
    if not around.files:
        return []
    parts = []
    rows = [
        (f"<code>{writer.text(one.name)}</code>", _value(one.name, value, writer), escaped(named.ranks(ranks)))
        for one in around.different
        for value, ranks in one.values[:_MOST_VALUES]
    ]
    if rows:
        parts.append(f"<h3>{escaped(tr('Differences between the ranks'))}</h3>")
        parts.append(table([tr("variable"), tr("value"), tr("ranks")], rows, cards=True))
    else:
        parts.append(f"<p>{escaped(tr('No variable differs in only some of the ranks.'))}</p>")
    for text, names in (
        (tr("Each rank has its own: {names}"), around.own),
        (tr("Each host has its own: {names}"), around.of_hosts),
    ):
        if names:
            line = text.replace("{names}", ", ".join(names[:_MOST_NAMES]))
            parts.append(f'<p class="hint">{writer.text(line)}</p>')
    return parts


def _value(name: str, value: str | None, writer: Writer) -> str:
    shown = surroundings.shown(name, value)
    return f"<i>{escaped(tr('not set'))}</i>" if shown is None else f"<code>{writer.text(shown)}</code>"
