"""The time line as HTML: the ranks that matter, the others as one row, and the attempts one below the other."""

from __future__ import annotations

import os

from hccl_tools.common.language import tr
from hccl_tools.common.words import listed
from tools.progress import phases
from tools.progress.lines import Kinds
from tools.run_page import attempts, bars, named, timeline
from tools.run_page.markup import escaped, section
from tools.run_page.timeline import log_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from tools.run_page.markup import Writer
    from tools.run_page.named import Named
    from tools.run_page.reading import RunData
    from tools.run_page.timeline import Bar, Block, Segment, Timeline

_MOST_HOSTS = 8  # whose clocks differ
# The parts of a drawing, in the order of the legend.
_KEYS = (
    *(bars.BEFORE, *phases.PHASES, bars.PLAIN, bars.RUNS),
    *(bars.FIRST_STEP, bars.QUIET, bars.STOPPING, bars.FAILED),
)
_HATCH = (
    '<svg class="defs" width="0" height="0" aria-hidden="true"><defs><pattern id="hatch" width="6" height="6" '
    'patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="hatch-back" width="6" height="6"/>'
    '<rect class="hatch-line" width="2.5" height="6"/></pattern></defs></svg>'
)


def html_of(data: RunData, writer: Writer, names: Mapping[int, Named]) -> str:
    """The section; empty where nothing is known of times."""
    line = timeline.of(data, names)
    if line is None or not any(block.bars for block in line.blocks):
        return ""
    kinds, keys = Kinds(list(data.patterns)), set()
    rows = []
    for block in line.blocks:
        rows.append(_heading(data, block, writer) if len(line.blocks) > 1 else "")
        for text, drawn in _rows(data, line, block, names, kinds):
            rows.append(text)
            keys |= drawn
    rows.append(_axis(line.seconds))
    notes = _notes(data, line.blocks[-1], writer)
    body = f'{_HATCH}<div class="times">{"".join(rows)}</div>\n{_legend(keys)}{notes}'
    return section("times", tr("Time line"), body)


def _heading(data: RunData, block: Block, writer: Writer) -> str:
    """Which attempt, from when until when, and how it ended; the page states above why the rank failed."""
    name = tr("Attempt {number} of {all}", number=block.number + 1, all=len(data.attempts))
    span = bars.span_of(block.begin, block.end)
    failed = data.attempts[block.number].first_failure
    if failed is None:
        why = attempts.why(data, block.number)
    else:
        who = named.label(int(failed)) if failed.isdecimal() else failed
        why = tr("{who} failed first", who=who)
    return f'<h3 class="attempt">{escaped(name)} <span>{span}</span> <span>{writer.text(why)}</span></h3>\n'


def _rows(
    data: RunData, line: Timeline, block: Block, names: Mapping[int, Named], kinds: Kinds
) -> list[tuple[str, set[str]]]:
    """(HTML, classes of its parts) of each row of an attempt."""
    logs = {rank.rank: rank.log for rank in data.ranks} if block.rows else {}
    last = block.number == len(data.attempts) - 1
    all_quiet = last and _all_quiet(block) is not None
    found = []
    for rank in block.rows:
        bar, one = block.bars.get(rank), names.get(rank)
        if bar is None:
            continue
        told = _phases(data, block.number, rank, logs[rank], bar, kinds)
        drawn = bars.draw(named.label(rank), bar, timeline.wide_segments(told, line.seconds), line.seconds)
        chip = named.chip(one) if one else ""
        note = _note(bar, one.why if one and last else (), all_quiet)
        found.append((_row(chip + escaped(named.label(rank)), drawn.svg, note), set(drawn.keys)))
    others = [block.bars[rank] for rank in block.others if rank in block.bars]
    if others:
        name = tr("{number} others", number=len(others)) if found else tr("{number} ranks", number=len(others))
        drawn = bars.draw_many(name, others, line.seconds)
        found.append((_row(escaped(name), drawn.svg, bars.ways(others)), set(drawn.keys)))
    return found


def _row(name: str, svg: str, note: str) -> str:
    return f'<div class="name">{name}</div>{svg}<div class="note">{escaped(note)}</div>\n'


def _phases(data: RunData, number: int, rank: int, name: str, bar: Bar, kinds: Kinds) -> list[Segment]:
    """The phases of a rank; none where its log tells nothing but its start, or has no times."""
    log = log_of(data, rank, number)
    if log is None or log.first is None:
        return []
    until = (bar.end if bar.stops is None else bar.stops) - bar.begin
    try:
        found = timeline.segments_of_log(os.path.join(data.attempts[number].logs, name), kinds, log.first, until)
    except (OSError, ValueError):  # it was there a moment ago; without it the bar has no phases
        return []
    return [] if all(one.phase == phases.START for one in found) else found


def _all_quiet(block: Block) -> float | None:
    """When the last line of any rank came, if that is long before the end of each: said once, and not of each rank."""
    quiet = [bar.quiet for bar in block.bars.values()]
    since = [one for one in quiet if one is not None]
    return max(since) if len(since) == len(quiet) > 1 else None


def _note(bar: Bar, why: tuple[str, ...], all_quiet: bool) -> str:
    """What a reader must know of a rank, in a few words."""
    words = []
    if bar.how in (timeline.FIRST, timeline.FAILED, timeline.UNKNOWN):
        words.append(bars.way(bar.how))
        words += [tr("exit code {status}", status=bar.status)] if bar.status is not None else []
    if bar.quiet is not None and (not all_quiet or named.SILENT in why):
        words.append(bars.quiet_words(bar.quiet))
    known = {
        named.HUNG: tr("hung elsewhere than the others"),
        named.SLOW: tr("slow"),
        named.DRIFTS: tr("its loss drifts away"),
        named.NOT_FINITE: tr("has nan or infinite numbers"),
        named.SILENT: "" if bar.quiet is not None else tr("silent"),
    }
    return listed(filter(None, [*words, *(known.get(reason, "") for reason in why)]))


def _legend(keys: set[str]) -> str:
    """The parts that are there, and what they mean; each meaning once."""
    known = {bars.words_of(key): key for key in reversed(_KEYS) if key in keys}
    items = "".join(
        f'<span><i class="{key}"></i>{escaped(words)}</span>' for words, key in reversed(list(known.items()))
    )
    return f'<p class="keys">{items}</p>\n'


def _notes(data: RunData, last: Block, writer: Writer) -> str:
    since = _all_quiet(last)
    notes = [] if since is None else [tr("No rank has a line after {time}.", time=bars.duration(since))]
    notes += [
        tr(
            "Times are seconds since the launch, by the launcher's clock. The times in a log are placed as if its "
            "first line was written when its rank started."
        )
    ]
    notes += [
        tr(
            "The first lines of {host} and of {other} are {seconds} s apart: the clocks differ, or the ranks began at "
            "different times. Times in their logs are not compared.",
            host=host,
            other=other,
            seconds=f"{abs(seconds):.0f}",
        )
        for host, other, seconds in timeline.clocks(data)[:_MOST_HOSTS]
    ]
    return "".join(f'<p class="hint">{writer.text(note)}</p>' for note in notes)


def _axis(seconds: float) -> str:
    parts = []
    for at, text in bars.axis_marks(seconds):
        place = round(100 * at / seconds, 2)
        anchor = "start" if not at else "end" if place > 96 else "middle"
        parts.append(f'<line x1="{place}%" x2="{place}%" y1="0" y2="4"/>')
        parts.append(f'<text x="{place}%" y="16" text-anchor="{anchor}">{text}</text>')
    return f'<div></div><svg class="row axis" width="100%" height="20" aria-hidden="true">{"".join(parts)}</svg>'
