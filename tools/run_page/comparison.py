"""The page of several runs: side by side, and what is different between them."""

from __future__ import annotations

import os
from datetime import timedelta

from hccl_tools.common import documents
from hccl_tools.common.language import tr
from tools.run_page import charts, sections, surroundings
from tools.run_page.markup import escaped, section, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.run_page.markup import Writer
    from tools.run_page.reading import RunData
    from tools.run_page.surroundings import Surroundings

_MOST_CONFIG = 1 << 20  # bytes
_MOST_ROWS = 500


def html_of(runs: list[RunData], around: list[Surroundings], writer: Writer) -> str:
    """The body of the page."""
    head = f'<header id="outcome"><h1>{escaped(tr("{number} runs", number=len(runs)))}</h1></header>\n'
    parts = [head, _table(runs, writer), charts.html_of(charts.of_runs(runs, [data.name for data in runs]))]
    parts += [_differences(runs, around, writer), _configs(runs, writer)]
    for number, (data, each) in enumerate(zip(runs, around), 1):
        if each.command:
            body = f"<pre>{writer.text(each.command)}</pre>"
            parts.append(section(f"command-{number}", tr("To repeat {run}", run=data.name), body))
    notes = [f"<li>{writer.text(f'{data.name}: {note}')}</li>" for data in runs for note in data.notes]
    parts.append(section("notes", tr("What is not on this page"), f"<ul>{''.join(notes)}</ul>" if notes else ""))
    return "".join(parts)


def _table(runs: list[RunData], writer: Writer) -> str:
    rows = []
    for data in runs:
        how, words = sections.state_of(data.run)
        metric = data.run.progress.get("percent", data.run.progress.get("value"))
        loss = data.run.progress.get("loss")
        rows.append(
            [
                writer.text(data.name),
                f'<span class="state {how}">{escaped(words)}</span>',
                writer.text(data.run.cause or ""),
                str(len(data.ranks)),
                "?" if data.run.seconds is None else str(timedelta(seconds=data.run.seconds)),
                f"{loss:.5g}" if isinstance(loss, float) else "",
                f"{metric:.4g}" if isinstance(metric, float) else "",
            ]
        )
    heads = [tr("run"), tr("outcome"), tr("cause"), tr("ranks"), tr("took"), tr("last loss"), tr("measured")]
    return section("runs", tr("Outcomes"), table(heads, rows))


def _differences(runs: list[RunData], around: list[Surroundings], writer: Writer) -> str:
    """What the plans do not have alike."""
    plans = [surroundings.masked_document(data, each) for data, each in zip(runs, around)]
    body = _unlike(runs, plans, writer)
    return section("differences", tr("Differences between the plans"), body)


def _configs(runs: list[RunData], writer: Writer) -> str:
    """What the configs do not have alike, as they are today: no run keeps a copy."""
    configs = []
    for data in runs:
        folder, program = data.launch.get("folder"), data.run.program
        path = os.path.join(folder, program) if isinstance(folder, str) and program else ""
        configs.append(_config(path) if path.endswith((".yaml", ".yml")) else None)
    read = [config for config in configs if config is not None]
    if len(read) < len(runs) or len({data.run.program for data in runs}) < 2:
        return ""
    hint = tr("The files as they are now; a run keeps no copy of its config.")
    body = _unlike(runs, read, writer)
    return section("configs", tr("Differences between the configs"), f'<p class="hint">{escaped(hint)}</p>{body}')


def _config(path: str) -> dict[str, str] | None:
    """The config as flat keys, without secrets; None where it cannot be read."""
    from tools.config import config_file

    try:
        documents.refuse_special(path)
        if os.path.getsize(path) > _MOST_CONFIG:
            return None
        return _flat(config_file.load(path).data, "")
    except (OSError, ValueError, config_file.ConfigError):
        return None


def _flat(value: object, name: str) -> dict[str, str]:
    if not isinstance(value, dict):
        return {name: surroundings.shown(name.rpartition(".")[2], str(value)) or ""}
    found: dict[str, str] = {}
    for key, inner in value.items():
        found.update(_flat(inner, f"{name}.{key}" if name else str(key)))
    return found


def _unlike(runs: list[RunData], values: list[dict[str, str]], writer: Writer) -> str:
    names = list(dict.fromkeys(name for each in values for name in each))
    unlike = [name for name in names if len({each.get(name) for each in values}) > 1]
    rows = [
        [f"<code>{writer.text(name)}</code>", *(f"<code>{writer.text(each.get(name, '–'))}</code>" for each in values)]
        for name in unlike[:_MOST_ROWS]
    ]
    if not rows:
        return f"<p>{escaped(tr('None.'))}</p>"
    return table([tr("name"), *(data.name for data in runs)], rows)
