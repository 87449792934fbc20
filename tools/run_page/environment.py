"""The environment of the ranks on the page: what differs between them, what the launcher set, versions."""

from __future__ import annotations

import os

from hccl_tools.common.language import tr
from hccl_tools.common.words import count
from tools.diagnosis.bundle import pages
from tools.run_page import named, surroundings
from tools.run_page.markup import escaped, section, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.run_page.markup import Writer
    from tools.run_page.surroundings import Surroundings

_MOST_VALUES = 20  # of one variable
_MOST_NAMES = 40


def html_of(around: Surroundings, writer: Writer) -> str:
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
        parts.append(f"<p>{escaped(tr('No variable has another value in some of the ranks.'))}</p>")
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
