"""Draws one row of the time line, and the same as text: a rank in an attempt, or many ranks as one."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from itertools import accumulate

from hccl_tools.common.language import tr
from hccl_tools.common.record import Record, Row
from hccl_tools.common.words import clauses, listed
from tools.progress import phases
from tools.run_page import timeline
from tools.run_page.markup import escaped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tools.run_page.timeline import Bar, Segment

# What a rank does, the lowest layer of the drawing first.
STEPS, BEFORE, RUNS, QUIET, STOPPING = "steps", "before", "runs", "quiet", "stopping"
LAYERS = (STEPS, BEFORE, RUNS, QUIET, STOPPING)
_UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))
_EVERY = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)
_MOST = 7  # marks after the first one
HEIGHT, _TALL = 18, 36  # pixels
_PARTS, _HINTS = 240, 24  # of a drawing of many ranks, and those that state their numbers under the pointer
PLAIN = "plain"  # the colour of a bar of which no phase is known
FIRST_STEP, FAILED = "first-step", "failed"


class Drawn(Row):
    """A row."""

    svg: str
    keys: frozenset[str]  # the classes of its parts, for the legend


def words_of(key: str) -> str:
    """The meaning of a part of a drawing."""
    return {
        phases.START: tr("starts"),
        phases.IMPORT: tr("imports its modules"),
        phases.JOIN: tr("joins the others"),
        phases.PREPARE: tr("makes data and network"),
        phases.COMPILE: tr("compiles"),
        BEFORE: tr("starts"),
        phases.STEPS: tr("takes steps"),
        phases.SAVE: tr("saves a checkpoint"),
        phases.EVAL: tr("measures held-out data"),
        phases.STOP: tr("training is done"),
        RUNS: tr("runs; in which phase is not known"),
        PLAIN: tr("runs; in which phase is not known"),
        FIRST_STEP: tr("first numbers in its log"),
        QUIET: tr("writes no line"),
        STOPPING: tr("is stopped: from the first failure to its end"),
        FAILED: tr("failed"),
    }[key]


def way(how: str) -> str:
    """How a rank ended."""
    return {
        timeline.GOOD: tr("ended with 0"),
        timeline.FIRST: tr("failed first"),
        timeline.FAILED: tr("failed"),
        timeline.STOPPED: tr("was stopped"),
        timeline.RUNS: tr("runs"),
        timeline.UNKNOWN: tr("its end is not known"),
    }[how]


# --- one rank ---------------------------------------------------------------------------------------------------------


def draw(name: str, bar: Bar, told: list[Segment], seconds: float) -> Drawn:
    """Draws a rank in an attempt; told: its phases, from the bar's begin on."""
    until = bar.end if bar.stops is None else bar.stops
    spans = [(one.phase, bar.begin + one.begin, bar.begin + one.end) for one in told] or [(PLAIN, bar.begin, until)]
    if bar.stops is not None:
        spans.append((STOPPING, bar.stops, bar.end))
    parts, keys = [_rect(kind, begin, end, seconds) for kind, begin, end in spans], {kind for kind, _, _ in spans}
    if bar.quiet is not None:
        parts += [_rect(QUIET, bar.quiet, until, seconds), _line("no-line", bar.quiet, until, seconds)]
        keys.add(QUIET)
    if bar.first_step is not None:
        at = _percent(bar.first_step, seconds)
        parts.append(f'<line class="{FIRST_STEP}" x1="{at}%" x2="{at}%" y1="0" y2="{HEIGHT}"/>')
        keys.add(FIRST_STEP)
    if bar.how in (timeline.FIRST, timeline.FAILED):
        parts.append(_cross(_percent(bar.end, seconds)))
        keys.add(FAILED)
    return Drawn(_svg(f"{name}: {hint(bar, told)}", "".join(parts), HEIGHT), frozenset(keys))


def _rect(kind: str, begin: float, end: float, seconds: float) -> str:
    at = _percent(begin, seconds)
    width = max(0.25, _percent(end, seconds) - at)
    title = escaped(f"{words_of(kind)}: {span_of(begin, end)}")
    return (
        f'<rect class="{kind}" x="{at}%" width="{width:.2f}%" y="3" height="{HEIGHT - 6}"><title>{title}</title></rect>'
    )


def _line(kind: str, begin: float, end: float, seconds: float) -> str:
    middle = HEIGHT // 2
    return (
        f'<line class="{kind}" x1="{_percent(begin, seconds)}%" x2="{_percent(end, seconds)}%" '
        f'y1="{middle}" y2="{middle}"/>'
    )


def _cross(at: float) -> str:
    x = f"{min(99.5, at)}%"
    arms = "M-4,-4 L4,4 M4,-4 L-4,4"
    return f'<svg class="cross" x="{x}" y="{HEIGHT // 2}" overflow="visible"><circle r="7"/><path d="{arms}"/></svg>'


def _svg(label: str, inside: str, height: int) -> str:
    return f'<svg class="row" role="img" aria-label="{escaped(label)}" width="100%" height="{height}">{inside}</svg>'


def _percent(value: float, seconds: float) -> float:
    return round(min(100.0, max(0.0, 100 * value / seconds)), 2)


def hint(bar: Bar, told: Iterable[Segment] = ()) -> str:
    """All known facts of a rank in an attempt."""
    words = [span_of(bar.begin, bar.end), way(bar.how)]
    if bar.status is not None:
        words.append(tr("exit code {status}", status=bar.status))
    if bar.first_step is not None:
        words.append(tr("first numbers after {time}", time=duration(bar.first_step - bar.begin)))
    if bar.quiet is not None:
        words.append(quiet_words(bar.quiet))
    if bar.stops is not None:
        words.append(tr("{time} from SIGTERM to its end", time=duration(bar.end - bar.stops)))
    done = [f"{words_of(one.phase)} {span_of(bar.begin + one.begin, bar.begin + one.end)}" for one in told]
    return clauses(listed(words), *([listed(done[:8])] if done else []))


def quiet_words(since: float) -> str:
    """The text for a rank whose log ended long before the rank; since: seconds from the launch."""
    return tr("no line after {time}", time=duration(since))


# --- many ranks -------------------------------------------------------------------------------------------------------


def draw_many(name: str, bars: list[Bar], seconds: float) -> Drawn:
    """Ranks as one drawing: at each moment how many do what."""
    found, few = density_of(bars, _PARTS), density_of(bars, _HINTS)
    heights = list(accumulate(found.layers.values(), lambda below, layer: [a + b for a, b in zip(below, layer)]))
    stacked = reversed([*zip(found.layers, heights)])  # each is drawn from the bottom on, so the highest one first
    areas = "".join(f'<path class="{layer}" d="{_area(height, len(bars))}"/>' for layer, height in stacked)
    width = _PARTS / _HINTS
    hints = "".join(
        f'<rect class="hover" x="{width * part:g}" width="{width:g}" height="100">'
        f"<title>{escaped(_at(few, part))}</title></rect>"
        for part in range(_HINTS)
    )
    at = _percent(found.begin, seconds)
    inside = (
        f'<svg x="{at}%" width="{max(0.25, _percent(found.end, seconds) - at):.2f}%" viewBox="0 0 {_PARTS} 100" '
        f'preserveAspectRatio="none">{areas}{hints}</svg>'
    )
    return Drawn(_svg(f"{name}: {many_words(bars)}", inside, _TALL), frozenset(found.layers))


def _area(heights: list[int], ranks: int) -> str:
    """The area below a line of steps."""
    words, before = ["M0,100"], 0
    for place, height in enumerate(heights):
        if height != before:
            words.append(f"H{place}V{100 - 100 * height / ranks:.1f}")
            before = height
    return "".join([*words, f"H{len(heights)}V100Z"])


def _at(found: Density, part: int) -> str:
    doing = [f"{words_of(name)}: {layer[part]}" for name, layer in found.layers.items() if layer[part]]
    return clauses(duration(found.moments[part]), *(doing or [tr("no rank runs")]))


def many_words(bars: list[Bar]) -> str:
    """How many ended how, and when."""
    words = [ways(bars)]
    ends = [bar.end for bar in bars if bar.how != timeline.RUNS]
    if ends:
        words.append(tr("ends {span}", span=span_of(min(ends), max(ends))))
    first = [bar.first_step for bar in bars if bar.first_step is not None]
    if first:
        words.append(tr("first numbers {span}", span=span_of(min(first), max(first))))
    return listed(words)


def ways(bars: list[Bar]) -> str:
    """How many ended how, in short."""
    return listed(_counted(how, number) for how, number in Counter(bar.how for bar in bars).most_common())


def _counted(how: str, number: int) -> str:
    return {
        timeline.GOOD: tr("{number} ended with 0", number=number),
        timeline.FIRST: tr("{number} failed", number=number),
        timeline.FAILED: tr("{number} failed", number=number),
        timeline.STOPPED: tr("{number} stopped", number=number),
        timeline.RUNS: tr("{number} run", number=number),
        timeline.UNKNOWN: tr("{number} without a known end", number=number),
    }[how]


# ---- Seconds as people read them, and the marks of an axis of time.


def duration(seconds: float) -> str:
    """``9.5 s``, ``86 s``, ``35 min 10 s``, ``2 h 15 min``, ``3 d 4 h``."""
    if seconds < 119.5:
        return f"{seconds:.1f} s" if seconds < 99.95 and round(seconds, 1) % 1 else f"{seconds:.0f} s"
    whole = round(seconds)
    for size, unit in _UNITS[:-1]:
        if whole >= size:
            below, small = _UNITS[_UNITS.index((size, unit)) + 1]
            rest = whole % size // below
            return f"{whole // size} {unit}" + (f" {rest} {small}" if rest else "")
    return f"{whole} s"


def span_of(begin: float, end: float) -> str:
    """``0 s – 32.6 s``; once, where both are the same."""
    words = [duration(begin), duration(end)]
    return " – ".join(dict.fromkeys(words))


def axis_marks(seconds: float) -> list[tuple[float, str]]:
    """(seconds, text) of the marks of an axis from 0 on: at round numbers, in one unit, few enough to be read."""
    every = _every(seconds)
    size, unit = next(((size, unit) for size, unit in _UNITS if every >= size and every % size == 0), (1, "s"))
    number = int(seconds / every + 1e-9)
    return [(mark * every, _mark(mark * every / size, unit)) for mark in range(number + 1)]


def _mark(value: float, unit: str) -> str:
    return f"{value:g} {unit}" if value else "0"


def _every(seconds: float) -> float:
    for every in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, *_EVERY):
        if seconds <= every * _MOST:
            return every
    every = float(_EVERY[-1])
    while seconds > every * _MOST:  # days: 2, 4, 8 ...
        every *= 2
    return every


# ---- Many ranks as one row: how many of them do what, at each moment.


class Density(Record):
    """How many ranks are in which state, at regular moments in the time in which any of them ran."""

    begin: float
    end: float
    moments: list[float]
    layers: dict[str, list[int]]  # by LAYERS, only those that some rank is in; a rank that has ended is in none


def density_of(bars: Sequence[Bar], parts: int) -> Density:
    """The Density of the bars of these ranks, at the middles of `parts` parts of the time in which they ran."""
    begin, end = min(bar.begin for bar in bars), max(bar.end for bar in bars)
    moments = [begin + (end - begin) * (part + 0.5) / parts for part in range(parts)]
    changes = {layer: [0] * (parts + 1) for layer in LAYERS}
    for bar in bars:
        for layer, since, until in _spans(bar):
            changes[layer][bisect_left(moments, since)] += 1
            changes[layer][bisect_left(moments, until)] -= 1
    counted = {layer: list(accumulate(change[:-1])) for layer, change in changes.items()}
    return Density(
        begin=begin, end=end, moments=moments, layers={name: one for name, one in counted.items() if any(one)}
    )


def _spans(bar: Bar) -> list[tuple[str, float, float]]:
    """(layer, begin, end) of what one rank did; without a first step it is unknown whether it takes steps."""
    until = bar.end if bar.stops is None else bar.stops
    end = until if bar.quiet is None else min(until, bar.quiet)
    first = bar.first_step
    found = [(RUNS, bar.begin, end)] if first is None else [(BEFORE, bar.begin, min(first, end)), (STEPS, first, end)]
    return [span for span in [*found, (QUIET, end, until), (STOPPING, until, bar.end)] if span[1] < span[2]]
