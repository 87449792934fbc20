"""Where in the code the ranks of a job that hung were: those with the same stack together, the odd ones first."""

from __future__ import annotations

from hccl_tools.common.grouping import grouped
from hccl_tools.common.language import tr
from hccl_tools.common.words import count
from tools.diagnosis import hang, stacks
from tools.logs.raised import in_library
from tools.run_page import named
from tools.run_page.markup import escaped, section

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.diagnosis.stacks import Frame
    from tools.run_page.markup import Writer
    from tools.run_page.named import Named
    from tools.run_page.reading import RunData

_MOST_GROUPS = 12
_MOST_FRAMES = 6  # that are not folded away
_MOST_LINES = 200  # of a whole stack


def html_of(data: RunData, names: dict[int, Named], writer: Writer) -> str:
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
    whole = writer.lines(stack.splitlines()[:_MOST_LINES])
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
