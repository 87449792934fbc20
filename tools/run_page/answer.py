"""The answer, at the head of the page: the outcome, which rank, why, and what to do; then the facts."""

from __future__ import annotations

import os
import re
from datetime import timedelta

from hccl_tools.common import documents, typed
from hccl_tools.common.language import tr
from hccl_tools.common.words import clauses, listed, one_line, short_path
from tools.diagnosis import hang, run, words
from tools.history.listing import LOST, RUNNING
from tools.progress.counting import axis_of
from tools.run_page import attempts, charts, markup, named, sections
from tools.run_page.markup import MOST_STEPS, capital, escaped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.run_page.explained import Explained
    from tools.run_page.markup import Writer
    from tools.run_page.named import Named
    from tools.run_page.outliers import Outlier
    from tools.run_page.reading import RunData

_LONGEST = 240  # characters of the first sentence
_MOST_ENDS = 3  # attempts that are named here
_MOST_ODD = 3  # ranks likewise
_FOLDERS = re.compile(r"(?<=\()(?:/[^/()\s]+)+/(?=[^/()\s]+:\d+\))")


def html_of(
    data: RunData,
    failure: Explained | None,
    found: list[Outlier],
    names: dict[int, Named],
    writer: Writer,
) -> str:
    """The head of the page.  failure: of the last attempt; found: ranks that differ; names: those with a colour."""
    how, state = sections.state_of(data.run)
    program = os.path.basename(data.run.program or "")
    what = " · ".join(filter(None, [data.name, data.run.script, program]))
    sentence = headline(data, failure)
    short = sentence if len(sentence) <= _LONGEST else sentence[:_LONGEST] + "…"
    guilty = {named.FAILED} if failure else {named.HUNG}
    spot = "".join(named.chip(one) for one in list(names.values())[:_MOST_ODD] if guilty & set(one.why[:1]))
    parts = [
        f'<p class="run"><span class="state {how}">{escaped(state)}</span> {writer.text(what)}</p>',
        f"<h1>{spot}{writer.text(capital(short))}</h1>",
        *_meaning(failure, sentence, writer),
        *(f'<p class="when">{writer.text(capital(line))}</p>' for line in _below(data, failure)),
        *_quoted(failure, short, writer),
        *_odd(data, found, names, writer),
        _to_do(data, failure, writer),
        _facts(data, writer),
    ]
    return f'<header id="outcome" class="{how}">' + "\n".join(filter(None, parts)) + "</header>\n"


def headline(data: RunData, failure: Explained | None) -> str:
    """The outcome of the run, in one sentence."""
    run, last = data.run, len(data.attempts) - 1
    if run.state == RUNNING:
        return tr("the run still goes on") + _so_far(data)
    if run.state == LOST:
        return tr("the launcher was killed: how the ranks ended is not known")
    if failure is not None:
        return failure.sentence
    if run.exit == 0:
        restarts = tr(", after {number} restarts", number=run.restarts) if run.restarts else ""
        restarts = tr(", after 1 restart") if run.restarts == 1 else restarts
        return tr("ended well") + restarts + _so_far(data)
    attempt = data.attempts[last]
    why = attempts.why(data, last)
    if attempt.stopped_by == "hang":
        why = _FOLDERS.sub("", why)  # the stacks below have the whole paths
    known = attempt.stopped_by or attempt.lost_host
    return why if known else run.cause or why


def _meaning(failure: Explained | None, sentence: str, writer: Writer) -> list[str]:
    """The cause, where the first sentence quotes a log instead."""
    cause = failure.cause if failure else None
    if cause is None or cause.cause in sentence:
        return []
    return [f'<p class="cause">{writer.text(tr("cause: {cause}", cause=cause.cause))}</p>']


def _so_far(data: RunData) -> str:
    """``: last loss 0.15, accuracy 93.2 %``, as far as they are known."""
    measured = [f"{name} {value}" for name, value in _measured(data)]
    return (tr(": {facts}", facts=listed(measured))) if measured else ""


def _below(data: RunData, failure: Explained | None) -> list[str]:
    """Where and when, how sure; what the earlier attempts came to."""
    lines: list[str] = []
    if failure is not None:
        lines += filter(None, [_when(data, failure)])
        if failure.certainty:
            lines.append(words.how_sure(failure.certainty, failure.why))
    if data.run.state == RUNNING:
        lines.append(tr("The run still goes on. This page shows what its logs had when the page was written."))
    return [*lines, *_earlier(data, failure)]


def _earlier(data: RunData, failure: Explained | None) -> list[str]:
    """What the earlier attempts came to; after a failure the table below the head states it, unless all are alike."""
    earlier = range(len(data.attempts) - 1)
    whys = [attempts.why(data, number) for number in earlier[-_MOST_ENDS:]]
    if data.run.failed:
        alike = failure is not None and whys and len(whys) == len(earlier) and set(whys) == {failure.sentence}
        if not alike:
            return []
        all_of = tr("all {number} attempts ended like this", number=len(data.attempts))
        return [tr("both attempts ended like this") if len(data.attempts) == 2 else all_of]
    lines = [
        tr("attempt {number}: {why}", number=number + 1, why=why) for number, why in zip(earlier[-_MOST_ENDS:], whys)
    ]
    if len(earlier) > _MOST_ENDS:
        lines.append(tr("and {number} more attempts", number=len(earlier) - _MOST_ENDS))
    return lines


def _when(data: RunData, failure: Explained) -> str:
    """At which step, and when, as far as it is known of the rank that the first sentence names."""
    number, parts = len(data.attempts) - 1, []
    if len(failure.roots) > 1:
        return ""
    name = str(failure.roots[0]) if failure.roots else failure.member.name
    logs = data.logs.get(failure.roots[0], []) if failure.roots else []
    if len(logs) == len(data.attempts) and logs[number].places:
        epoch, _ = place = logs[number].places[-1]
        step = axis_of(one.counted for each in data.logs.values() for one in each).at(place)
        parts.append(tr("the last step in its log is {step} (epoch {epoch})", step=step, epoch=epoch))
    seconds = data.attempts[number].members.get(name, {}).get("seconds")
    if isinstance(seconds, (int, float)) and not isinstance(seconds, bool) and 0 <= seconds < 1e9:
        parts.append(tr("it ended {time} after its start", time=timedelta(seconds=int(seconds))))
    return clauses(*parts)


def _quoted(failure: Explained | None, short: str, writer: Writer) -> list[str]:
    """The exception, where the first sentence has it not, and where it was raised."""
    if failure is None or not failure.raised:
        return []
    shown = [] if failure.raised in short else [failure.raised]
    text = f'<pre class="said">{writer.lines([*shown, *failure.more])}</pre>' if shown or failure.more else ""
    place = tr("raised at {place}", place=failure.place) if failure.place else ""
    if failure.rank not in failure.roots:  # the launcher saw another rank end first
        first = tr("{who} ended first", who=failure.who)
        place = listed(filter(None, [first, place]))
    return [text, f'<p class="hint">{writer.text(place)}</p>' if place else ""]


def odd(data: RunData, found: list[Outlier], names: dict[int, Named]) -> list[Outlier]:
    """The head's text about ranks that differ, each in what it differs most; only for a successful run."""
    most: dict[int, Outlier] = {}
    for one in found:
        most.setdefault(one.rank, one)
    return [] if data.run.failed else [most[rank] for rank in names if rank in most][:_MOST_ODD]


def _odd(data: RunData, found: list[Outlier], names: dict[int, Named], writer: Writer) -> list[str]:
    shown = odd(data, found, names)
    lines = [f"{named.chip(names[one.rank])}{writer.text(charts.outlier_text(one))}" for one in shown]
    more = len({one.rank for one in found}) - len(shown)
    if shown and more:
        lines.append(escaped(tr("{number} more ranks differ from the others", number=more)))
    return [f'<p class="odd">{"<br>".join(lines)}</p>'] if lines else []


# --- what to do -------------------------------------------------------------------------------------------------------


def _to_do(data: RunData, failure: Explained | None, writer: Writer) -> str:
    cause = failure.cause if failure else None
    code = f'<p class="code">{writer.text(tr("code: {code}", code=cause.code))}</p>' if cause else ""
    return markup.to_do(_steps(data, failure), writer, code)


def _steps(data: RunData, failure: Explained | None) -> list[str]:
    if data.run.state in (RUNNING, LOST) or data.run.exit in (None, 0):
        return []
    attempt = data.attempts[-1]
    if failure is None:
        return _after_stop(data) if attempt.stopped_by else []
    if failure.cause is not None:
        return failure.cause.steps
    found = [one_line(text) for text in documents.entries(failure.root, "next")[:MOST_STEPS]]
    command = typed.command("tools/diagnose.py", data.name)
    found.append(tr("read the end of its log, below"))
    found.append(tr('"{command}" reads the logs of all ranks', command=command))
    return found


def _after_stop(data: RunData) -> list[str]:
    """What to do after a hang, a limit, or a request."""
    what = data.attempts[-1].stopped_by
    if run.all_saved({"asked": data.attempts[-1].asked}):
        return [tr("the same command with --resume={run} continues from there", run=one_line(short_path(data.folder)))]
    if what == "hang":
        few = hang.apart(data.launch, data.folder)
        if few:
            text = tr("look at {ranks} first: the others may only have waited", ranks=named.ranks(few))
            return [text, tr("see below where in the code each rank was")]
        return [tr("see below where in the code each rank was; see whether all ranks call the same collectives")]
    if what == "timeout":
        return [tr("go on from the last checkpoint with --resume, and give more time with --timeout")]
    return []


# --- facts ------------------------------------------------------------------------------------------------------------


def _facts(data: RunData, writer: Writer) -> str:
    run = data.run
    hosts = f" · {run.hosts}" if run.hosts and run.hosts > 1 else ""
    facts = [
        (tr("started (UTC)"), (run.started or "?").replace("T", " ").rstrip("Z")),
        (tr("took"), "?" if run.seconds is None else str(timedelta(seconds=run.seconds))),
        (tr("ranks · hosts") if hosts else tr("ranks"), f"{len(data.ranks)}{hosts}"),
        (tr("hardware"), run.target or "?"),
    ]
    if run.failed:  # else the first sentence has them
        facts += [(name, value) for name, value in _measured(data)]
    cells = "".join(f"<div><dt>{writer.text(name)}</dt><dd>{writer.text(value)}</dd></div>" for name, value in facts)
    return f'<dl class="facts">{cells}</dl>'


def _measured(data: RunData) -> list[tuple[str, str]]:
    """The last loss, and the last measurement."""
    progress, found = data.run.progress, []
    if isinstance(progress.get("loss"), float):
        found.append((tr("last loss"), f"{progress['loss']:.5g}"))
    name = str(progress.get("metric", tr("measured")))
    if "percent" in progress:
        found.append((name, f"{progress['percent']:.4g} %"))
    elif "value" in progress:
        found.append((name, f"{progress['value']:.4g}"))
    return found
