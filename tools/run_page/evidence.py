"""The details of a failure: evidence from the logs of all ranks, other known failures, the end of the first log."""

from __future__ import annotations

import os

from hccl_tools.common import documents, typed
from hccl_tools.common.grouping import grouped
from hccl_tools.common.language import tr
from hccl_tools.common.words import count, one_line
from tools.diagnosis import hang, stacks
from tools.logs.findings import in_library
from tools.run_page import markup, named
from tools.run_page.markup import escaped, section

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.diagnosis.stacks import Frame
    from tools.run_page.explained import Explained, Known
    from tools.run_page.markup import Writer
    from tools.run_page.named import Named
    from tools.run_page.reading import RunData

_MOST_GROUPS = 12
_MOST_FRAMES = 6  # that are not folded away
_MOST_OF_STACK = 200  # of a whole stack
_EXCERPT = 40  # lines of a log
_MOST_FOUND = 5  # known failures
_MOST_LINES = 20  # of a chain


def html_of(data: RunData, failure: Explained | None, names: dict[int, Named], writer: Writer) -> str:
    """The section; empty if no rank failed.  It does not repeat the head of the page."""
    if failure is None:
        return ""
    parts = [*_others(data, names, writer), *_chain(failure, writer)]
    others = [one for one in failure.known if one is not failure.cause]
    parts += [_known(one, failure, writer) for one in others[:_MOST_FOUND]]
    parts += _excerpt(data, failure, writer)
    if not parts and not failure.known:
        command = typed.command("tools/diagnose.py", data.name)
        text = tr("Nothing more is known. {command} reads all logs.", command=command)
        parts = [f'<p class="hint">{writer.text(text)}</p>']
    return section("diagnosis", tr("Why it failed"), "\n".join(parts))


def _others(data: RunData, names: dict[int, Named], writer: Writer) -> list[str]:
    """Which ranks failed after the first one."""
    also = [name for name in data.attempts[-1].also_failed if name.isdecimal()]
    ranks = [int(name) for name in also]
    if not ranks:
        return []
    chips = "".join(named.chip(names[rank]) for rank in ranks if rank in names)
    text = tr("Also failed, after the first one: {ranks}", ranks=named.ranks(ranks))
    return [f"<p>{chips}{writer.text(text)}</p>"]


def _chain(failure: Explained, writer: Writer) -> list[str]:
    """Who waited for whom; what to look at next, where the head of the page has other advice."""
    found = []
    for name in ("chain", "next") if failure.cause else ("chain",):
        found.append(writer.items(documents.entries(failure.root, name)[:_MOST_LINES]))
    return found


def _known(one: Known, failure: Explained, writer: Writer) -> str:
    """Another known failure: its cause is the heading, its code comes last."""
    shown = [failure.raised, *failure.more, failure.sentence]
    is_shown = not one.line or any(one.line in text or (text and text in one.line) for text in shown)
    line = "" if is_shown else f"<pre>{writer.lines([one.line])}</pre>"
    hint = ""
    if not one.sure:
        text = tr(
            "This appears in the logs, but not in what ended the rank: the rank may have failed for another reason."
        )
        hint = f'<p class="hint">{escaped(text)}</p>'
    steps = "".join(f"<li>{markup.step_html(step, writer)}</li>" for step in one.steps)
    code = f'<p class="code">{writer.text(tr("code: {code}", code=one.code))}</p>'
    cause = writer.text(markup.capital(one.cause))
    return f"<h3>{cause}</h3>{hint}{line}<ul>{steps}</ul>{code}"


def _excerpt(data: RunData, failure: Explained, writer: Writer) -> list[str]:
    """The last lines of the member that failed first, with the line that the head of the page quotes marked."""
    member = failure.member
    if member.trouble:
        text = tr("its log {log} {trouble}", log=_name_of(data, failure), trouble=member.trouble)
        return [f'<p class="hint">{writer.text(text)}</p>']
    if not any(member.log.lines):
        return []
    title = tr("the last lines of {log}", log=_name_of(data, failure))
    lines = writer.lines(member.log.lines[-_EXCERPT:]).split("\n")
    raised = writer.text(failure.raised) if failure.raised else None
    lines = [f"<mark>{line}</mark>" if raised and line.strip() == raised else line for line in lines]
    inside = "\n".join(lines)
    return [
        f'<details open><summary>{writer.text(title)}</summary><pre class="end" tabindex="0">{inside}</pre></details>'
    ]


def _name_of(data: RunData, failure: Explained) -> str:
    return one_line(os.path.join(data.name, os.path.relpath(failure.member.path, data.folder)))


# ---- Where in the code the ranks of a job that hung were: those with the same stack together, the odd ones first.


def hung_html(data: RunData, names: dict[int, Named], writer: Writer) -> str:
    """The section; empty where no stack is known."""
    found = hang.stacks_of(data.launch, data.folder)
    groups = grouped(
        ((stacks.is_held(stack), tuple(stacks.main_thread(stack))), rank) for rank, stack in found.items() if stack
    )
    if not groups:
        return ""
    ordered = sorted(groups.items(), key=lambda pair: (not pair[0][0], not pair[0][1], len(pair[1])))
    parts = [
        _group(ranks, held, frames, found[ranks[0]], names, writer) for (held, frames), ranks in ordered[:_MOST_GROUPS]
    ]
    rest = ordered[_MOST_GROUPS:]
    if rest:
        ranks = [rank for _, each in rest for rank in each]
        text = tr("{ranks} were at {number} more places: see rank_N.stack", ranks=named.ranks(ranks), number=len(rest))
        parts.append(f'<p class="hint">{writer.text(text)}</p>')
    silent = [rank for rank, stack in found.items() if not stack]
    if silent:
        text = tr("No stack is known of {ranks}.", ranks=named.ranks(silent))
        parts.append(f'<p class="hint">{writer.text(text)}</p>')
    if len(found) < len(data.ranks):
        text = tr("The stacks of {some} of {all} ranks are read.", some=len(found), all=len(data.ranks))
        parts.append(f'<p class="hint">{escaped(text)}</p>')
    return section("stacks", tr("Where in the code the ranks were"), "\n".join(parts))


def _group(
    ranks: list[int], held: bool, frames: tuple[Frame, ...], stack: str, names: dict[int, Named], writer: Writer
) -> str:
    """The ranks with one stack, its innermost frames, and all of it."""
    chips = "".join(named.chip(names[rank]) for rank in ranks if rank in names)
    title = named.ranks(ranks)
    number = f" <small>{escaped(count(len(ranks), 'rank'))}</small>" if len(ranks) > 1 else ""
    body = f'<p class="strong">{escaped(tr("stopped by SIGSTOP or a debugger"))}</p>' if held else ""
    if frames:
        body += f"<ol>{''.join(_frame(frame, writer) for frame in frames[:_MOST_FRAMES])}</ol>"
    else:
        body += f'<p class="hint">{escaped(tr("The main thread is not in the stack."))}</p>'
    whole = writer.lines(stack.splitlines()[:_MOST_OF_STACK])
    summary = tr("the whole stack of rank {rank}", rank=ranks[0])
    return (
        f'<div class="stack"><h3>{chips}{writer.text(title)}{number}</h3>{body}'
        f'<details><summary>{escaped(summary)}</summary><pre tabindex="0">{whole}</pre></details></div>'
    )


def _frame(frame: Frame, writer: Writer) -> str:
    """The innermost frame comes first; the user's own code is bold."""
    kind = "" if in_library(frame.file) else ' class="own"'
    place = writer.text(f"{frame.file}:{frame.line}")
    return f"<li{kind}><b>{writer.text(frame.function)}</b> <span>{place}</span></li>"
