"""The time line of the ranks as HTML: a row of small drawings for each rank, as wide as the screen."""

from __future__ import annotations

from datetime import timedelta

from hccl_tools.common.language import tr
from hccl_tools.common.words import listed
from tools.run_page import timeline
from tools.run_page.markup import escaped, section

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.run_page.markup import Writer
    from tools.run_page.reading import RunData
    from tools.run_page.timeline import Bar, Timeline

_HEIGHT = 16
_TICKS = 4


def html_of(data: RunData, writer: Writer) -> str:
    """The section; empty where nothing is known of times."""
    line = timeline.of(data)
    if line is None or not any(bars for _, bars in line.rows):
        return ""
    rows = "".join(_row(rank, bars, line.seconds) for rank, bars in line.rows)
    notes = [tr("Times are those of the launcher's clock, in seconds from the launch.")]
    if len(line.rows) < line.all_ranks:
        notes.append(tr("{some} of {all} ranks are shown.", some=len(line.rows), all=line.all_ranks))
    notes += [
        tr(
            "The first lines of {host} and of {other} are {seconds} s apart: the clocks differ, or the ranks began at "
            "different times. Times in their logs are not compared.",
            host=host,
            other=other,
            seconds=f"{abs(seconds):.0f}",
        )
        for host, other, seconds in timeline.clocks(data)[:8]
    ]
    below = "".join(f'<p class="hint">{writer.text(note)}</p>' for note in notes)
    body = f'<div class="times">{rows}{_axis(line.seconds)}</div>\n{_legend(line)}{below}'
    return section("times", tr("Time line"), body)


def _row(rank: int, bars: list[Bar], seconds: float) -> str:
    drawn = "".join(_bar(bar, seconds) for bar in bars)
    name = escaped(tr("rank {rank}", rank=rank))
    return f'<div class="name">{name}</div><svg class="row" width="100%" height="{_HEIGHT}">{drawn}</svg>\n'


def _bar(bar: Bar, seconds: float) -> str:
    begin, end = _percent(bar.begin, seconds), _percent(bar.end, seconds)
    parts = [f"<g><title>{escaped(_hint(bar))}</title>", _rect(begin, end, bar.how)]
    if bar.stops is not None:
        parts.append(_rect(_percent(bar.stops, seconds), end, "grace"))
    if bar.first_step is not None:
        at = _percent(bar.first_step, seconds)
        parts.append(f'<line class="step" x1="{at}%" x2="{at}%" y1="0" y2="{_HEIGHT}"/>')
    if bar.how == timeline.FIRST:
        parts.append(f'<circle class="mark" cx="{max(0.7, end - 0.7):.2f}%" cy="{_HEIGHT // 2}" r="4"/>')
    return "".join([*parts, "</g>"])


def _rect(begin: float, end: float, kind: str) -> str:
    width = max(0.3, end - begin)
    return f'<rect class="{kind}" x="{begin}%" width="{width:.2f}%" y="2" height="{_HEIGHT - 4}" rx="3"/>'


def _percent(value: float, seconds: float) -> float:
    return round(min(100.0, max(0.0, 100 * value / seconds)), 2)


def _hint(bar: Bar) -> str:
    """What is known of a bar, shown under the pointer."""
    words = [f"{bar.begin:.1f} s – {bar.end:.1f} s", _ways()[bar.how]]
    if bar.status is not None:
        words.append(tr("exit code {status}", status=bar.status))
    if bar.first_step is not None:
        words.append(tr("first numbers after {seconds} s", seconds=f"{bar.first_step - bar.begin:.1f}"))
    if bar.stops is not None:
        words.append(tr("{seconds} s from SIGTERM to its end", seconds=f"{bar.end - bar.stops:.1f}"))
    if bar.attempt:
        words.append(tr("restart {number}", number=bar.attempt))
    return listed(words)


def _ways() -> dict[str, str]:
    return {
        timeline.GOOD: tr("ended with 0"),
        timeline.FIRST: tr("failed first"),
        timeline.FAILED: tr("failed"),
        timeline.STOPPED: tr("was stopped"),
        timeline.RUNS: tr("runs"),
        timeline.UNKNOWN: tr("its end is not known"),
    }


def _legend(line: Timeline) -> str:
    """The colours that are there, and what they mean."""
    bars = [bar for _, bars in line.rows for bar in bars]
    keys = [(how, text) for how, text in _ways().items() if any(bar.how == how for bar in bars)]
    if any(bar.stops is not None for bar in bars):
        keys.append(("grace", tr("from the first failure to its end: the grace time")))
    if any(bar.first_step is not None for bar in bars):
        keys.append(("step", tr("first numbers in its log")))
    items = "".join(f'<span><i class="{how}"></i>{escaped(text)}</span>' for how, text in keys)
    return f'<p class="keys">{items}</p>\n'


def _axis(seconds: float) -> str:
    parts = []
    for number in range(_TICKS + 1):
        anchor = "start" if number == 0 else "end" if number == _TICKS else "middle"
        at = 100 * number // _TICKS
        parts.append(f'<text x="{at}%" y="12" text-anchor="{anchor}">{_clock(seconds * number / _TICKS)}</text>')
    return f'<div></div><svg class="row" width="100%" height="{_HEIGHT}">{"".join(parts)}</svg>'


def _clock(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 60 else str(timedelta(seconds=int(seconds)))
