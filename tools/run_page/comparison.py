"""The page of several runs: which was best, the results side by side, and the differences between them."""

from __future__ import annotations

import functools
import math

from hccl_tools.common.language import tr
from tools.progress import figures
from tools.run_page import charts, named, plans, results, sections, unlike
from tools.run_page.markup import escaped, section, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tools.run_page.markup import Writer
    from tools.run_page.reading import RunData
    from tools.run_page.results import Result
    from tools.run_page.surroundings import Surroundings
    from tools.run_page.unlike import Label, Unlike

    Column = tuple[str, list[str]]  # a head, and a cell for each run

_MOST_METRICS = 4
_EMPTY = '""'  # a text without a letter
_BETTER, _WORSE, _NEITHER = "better", "worse", ""


def html_of(runs: list[RunData], around: list[Surroundings], writer: Writer) -> str:
    """The body of the page."""
    every = [results.of(data) for data in runs]
    configs = [plans.config_of(data, each) for data, each in zip(runs, around)]
    there = [config for config in configs if config is not None]
    in_configs = unlike.of(there) if len(there) == len(runs) else []
    in_plans = unlike.of([plans.plan_of(data, each) for data, each in zip(runs, around)])
    labels = unlike.labels(len(runs), [*in_configs, *in_plans], [data.run.started for data in runs])
    parts = [
        _head(every, labels, writer),
        _outcomes(runs, every, labels, writer),
        section("configs", tr("Differences between the configs"), _configs(configs, in_configs, labels, writer)),
        section("differences", tr("Differences between the plans"), _unlike(in_plans, labels, writer)),
        charts.html_of(charts.of_runs(runs, [writer.plain(label.text) for label in labels])),
        section("commands", tr("To repeat one of them"), _commands(around, labels, writer)),
    ]
    notes = [f"{label.letter}: {note}" for data, label in zip(runs, labels) for note in data.notes]
    items = "".join(f"<li>{writer.text(note)}</li>" for note in notes)
    parts.append(section("notes", tr("What is not on this page"), f"<ul>{items}</ul>" if items else ""))
    return "".join(parts)


def _head(every: list[Result], labels: list[Label], writer: Writer) -> str:
    """The answer: which run did best, and which failed."""
    names = [f"{label.letter} ({label.what})" if label.what else label.letter for label in labels]
    lines = _shorter(results.answer(every, names), dict(zip(names, (label.letter for label in labels))))
    items = "".join(f"<li>{writer.text(line)}</li>" for line in lines)
    body = f'<ul class="answers">{items}</ul>' if items else ""
    return f'<header id="outcome"><h1>{escaped(results.title(every))}</h1>\n{body}</header>\n'


def _shorter(lines: list[str], letters: dict[str, str]) -> list[str]:
    """The sentences, with only the letter of a run that an earlier one has named."""
    found: list[str] = []
    for line in lines:
        for name, letter in letters.items():
            if any(name in earlier for earlier in found):
                line = line.replace(name, letter)
        found.append(line)
    return found


def _chip(place: int) -> str:
    """A spot of the colour that the run has in the charts."""
    return f'<i class="chip rank-{place % named.MOST}" aria-hidden="true"></i>'


# --- what they reached ------------------------------------------------------------------------------------------------


def _outcomes(runs: list[RunData], every: list[Result], labels: list[Label], writer: Writer) -> str:
    called = [
        f'<span class="run">{_chip(place)}<b>{writer.text(label.letter)}</b> {writer.text(label.what)}</span>'
        f"<small>{writer.text(data.name)}</small>"
        for place, (data, label) in enumerate(zip(runs, labels))
    ]
    ended = [_outcome(*pair, writer) for pair in zip(runs, every)]
    columns: list[Column] = [(tr("run"), called), (tr("outcome"), ended)]
    columns += [column for column in _numbers(every) if any(column[1])]
    rows = zip(*(cells for _, cells in columns))
    hint = tr("Differences are those to {run}. The best is one of those that did not fail.", run=labels[0].letter)
    body = table([head for head, _ in columns], list(rows), cards=True)
    return section("runs", tr("Outcomes"), f'{body}<p class="hint">{escaped(hint)}</p>')


def _outcome(data: RunData, one: Result, writer: Writer) -> str:
    how, words = sections.state_of(data.run)
    cause = f"<small>{writer.text(one.cause)}</small>" if one.cause else ""
    return f'<span class="state {how}">{escaped(words)}</span>{cause}'


def _numbers(every: list[Result]) -> list[Column]:
    """The columns with numbers, each with its difference to the first run, the best one marked."""
    share, loss = _share(True), _difference(True, "{:+.3g}")
    alike = len({one.steps for one in every}) == 1  # else more time is not worse
    took = _column(every, lambda one: one.seconds, figures.clock, _share(alike or None), results.fastest(every))
    took = [_alone(cell) if one.failed or every[0].failed else cell for cell, one in zip(took, every)]
    steps = _column(every, lambda one: one.steps, "{:,.0f}".format, _difference(None, "{:+,.0f}"), [])
    last = _column(every, lambda one: one.loss, "{:.5g}".format, loss, [])
    best = results.best(every, results.lowest_of, low=True)
    lowest = _column(every, results.lowest_of, "{:.5g}".format, loss, best)
    where = [tr("at step {step}", step=f"{one.lowest[1]:,}") if one.lowest else "" for one in every]
    lowest = [cell + (f"<small>{escaped(text)}</small>" if text else "") for cell, text in zip(lowest, where)]
    each = _column(every, lambda one: one.step_ms, figures.milliseconds, share, results.quickest(every))
    columns = [(tr("took"), took), (tr("steps"), steps), (tr("last loss"), last), (tr("lowest loss"), lowest)]
    metrics = list(dict.fromkeys(name for one in every for name in one.measured))[:_MOST_METRICS]
    return [*columns, *(_metric(every, metric) for metric in metrics), (tr("time of a step"), each)]


def _alone(cell: str) -> str:
    """The cell without the difference: the time until a failure states nothing beside another."""
    return cell.partition("<small")[0]


def _metric(every: list[Result], metric: str) -> Column:
    name, _, unit = metric.partition(" ")
    low = results.lower_is_better(metric)
    value = functools.partial(results.measured, metric=metric)

    def said(number: float) -> str:
        return f"{number:.4g} {unit}".rstrip()

    form = "{:+.2f}" if unit == "%" else "{:+.3g}"
    return name, _column(every, value, said, _difference(low, form), results.best(every, value, low))


def _column(
    every: list[Result],
    value: Callable[[Result], float | None],
    said: Callable[[float], str],
    to_first: Callable[[float, float], tuple[str, str]],
    best: Sequence[int],
) -> list[str]:
    """A cell for each run; said: the number as text; to_first: the difference to the first run, and what it means."""
    first, cells = value(every[0]), []
    for place, one in enumerate(every):
        number = value(one)
        text = "" if number is None else escaped(said(number))
        if place in best:
            text = f'<b>{text}</b> <span class="best">{escaped(tr("best"))}</span>'
        if place and number is not None and first is not None and math.isfinite(number) and math.isfinite(first):
            difference, how = to_first(number, first)
            text += f'<small class="{how}">{escaped(difference)}</small>'
        cells.append(text)
    return cells


def _share(low: bool | None) -> Callable[[float, float], tuple[str, str]]:
    """The difference in percent."""

    def to_first(number: float, first: float) -> tuple[str, str]:
        if abs(number - first) < results.ALIKE * abs(first) or not first:
            return tr("the same"), _NEITHER
        percent = f"{100 * abs(number / first - 1):.0f}"
        text = tr("{percent} % less", percent=percent) if number < first else tr("{percent} % more", percent=percent)
        return text, _meaning(number < first, low)

    return to_first


def _meaning(less: bool, low: bool | None) -> str:
    """What it means that a number is less, or more, than that of the first run."""
    return _NEITHER if low is None else _BETTER if less == low else _WORSE


def _difference(low: bool | None, form: str) -> Callable[[float, float], tuple[str, str]]:
    """The difference in the number's own unit; low: whether less is better, None: unknown."""

    def to_first(number: float, first: float) -> tuple[str, str]:
        if number == first:
            return tr("the same"), _NEITHER
        return form.format(number - first).replace("-", "−", 1), _meaning(number < first, low)

    return to_first


# --- what is different ------------------------------------------------------------------------------------------------


def _configs(configs: Sequence[dict[str, str] | None], rows: list[Unlike], labels: list[Label], writer: Writer) -> str:
    """What the configs do not have alike, as they are today."""
    if not any(configs):
        return ""
    missing = [label.letter for label, config in zip(labels, configs) if config is None]
    if missing:
        text = tr(
            "The configs of these runs cannot be read: {runs}. So the configs are not compared.",
            runs=", ".join(missing),
        )
        return f'<p class="hint">{escaped(text)}</p>'
    hint = tr("The files as they are now; a run keeps no copy of its config.")
    return f'{_unlike(rows, labels, writer)}<p class="hint">{escaped(hint)}</p>'


def _unlike(rows: list[Unlike], labels: list[Label], writer: Writer) -> str:
    """A row for each name; what is as in the first run is pale."""
    if not rows:
        return f"<p>{escaped(tr('None.'))}</p>"
    cells = [[_name(row, writer), *(_value(row, place, writer) for place in range(len(row.values)))] for row in rows]
    return table([tr("name"), *(label.letter for label in labels)], cells, cards=True)


def _name(row: Unlike, writer: Writer) -> str:
    also = f"<small>{writer.text(tr('also {names}', names=', '.join(row.also)))}</small>" if row.also else ""
    return f"<code>{writer.text(row.name)}</code>{also}"


def _value(row: Unlike, place: int, writer: Writer) -> str:
    value = row.values[place]
    if value is None:
        shown = f"<i>{escaped(tr('not set'))}</i>"
    elif not value and row.name.startswith("-"):
        shown = f"<i>{escaped(tr('given'))}</i>"
    else:
        shown = f"<code>{writer.text(value or _EMPTY)}</code>"
    return f'<span class="same">{shown}</span>' if place and value == row.values[0] else shown


def _commands(around: list[Surroundings], labels: list[Label], writer: Writer) -> str:
    return "\n".join(
        f"<h3>{_chip(place)}{writer.text(label.text)}</h3><pre>{writer.text(each.command)}</pre>"
        for place, (label, each) in enumerate(zip(labels, around))
        if each.command
    )
