"""The attempts of a run that was restarted: how far each came, and why it ended."""

from __future__ import annotations

from datetime import timedelta

from hccl_tools.common import documents, utc
from hccl_tools.common.language import tr
from hccl_tools.common.words import listed, one_line, short, some
from tools.diagnosis import hang, run
from tools.history.listing import LOST, RUNNING
from tools.logs import line_heads
from tools.progress.counting import axis_of
from tools.run_page import explained, named
from tools.run_page.markup import escaped, section, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.progress.counting import Axis
    from tools.run_page.markup import Writer
    from tools.run_page.named import Named
    from tools.run_page.reading import RunData

_LONGEST, _MOST_CAUSES = 160, 5
_MOST_SHOWN = 10  # attempts; earlier ones are folded away


def why(data: RunData, number: int) -> str:
    """One sentence: why the attempt `number`, from 0 on, as in data.attempts, ended."""
    attempt = data.attempts[number]
    found = explained.of(data, number, most=1) if attempt.first_failure is not None else None
    if found is not None:
        return found.sentence
    if attempt.lost_host:
        return tr("the host {host} was lost", host=one_line(attempt.lost_host))
    if attempt.stopped_by:
        return stopped(data, number)
    if attempt.exit is not None:
        return tr("ended with exit code {status}", status=attempt.exit) if attempt.exit else tr("ended well")
    if number < len(data.attempts) - 1 or data.run.state not in (RUNNING, LOST):
        return tr("its end is not known")
    return tr("still runs") if data.run.state == RUNNING else tr("its launcher was killed")


def stopped(data: RunData, number: int) -> str:
    """The cause of an attempt's end if no rank failed."""
    attempt = data.attempts[number]
    what = attempt.stopped_by or ""
    by_request = run.of_request({"stopped_by": what, "asked": attempt.asked})
    if by_request:
        return by_request
    if what == "hang":
        outcome = {"stopped_by": what, "logs": explained.logs_of(data, number)}
        return hang.of_run({**data.launch, "outcome": outcome}, data.folder)
    if what == "stop_before":
        return tr("the time of --stop_before was reached")
    if what == "timeout":
        return tr("the time limit of --timeout was reached")
    if what.startswith("SIG") and what.isalnum():
        return tr("the launcher got {signal}, and stopped the ranks", signal=what)
    return tr("{host} ended the job", host=one_line(what))


# --- the section ------------------------------------------------------------------------------------------------------


def html_of(data: RunData, names: dict[int, Named], writer: Writer) -> str:
    """The section; empty for a run of one attempt."""
    if len(data.attempts) < 2:
        return ""
    axis = axis_of(one.counted for each in data.logs.values() for one in each)
    rows = [_row(data, number, axis, names, writer) for number in range(len(data.attempts))]
    told = any(attempt.progress for attempt in data.attempts)
    heads = [tr("attempt"), tr("from – to"), tr("steps"), *([tr("without progress")] if told else [])]
    heads += [tr("why it ended"), tr("exit code")]
    body = table(heads, rows[-_MOST_SHOWN:], cards=True)
    earlier = rows[:-_MOST_SHOWN]
    if earlier:
        title = tr("{number} earlier attempts", number=len(earlier))
        body += f"<details><summary>{escaped(title)}</summary>{table(heads, earlier, cards=True)}</details>"
    if told:
        body += "".join(f"<p>{writer.text(text)}</p>" for text in (_per_cause(data), _no_other(data)) if text)
    return section("attempts", tr("Attempts"), body)


def _per_cause(data: RunData) -> str:
    """How many attempts ended of the same, the most frequent cause first; causes that differ in numbers are one."""
    causes: dict[str, list[str]] = {}
    for number, attempt in enumerate(data.attempts):
        if attempt.exit:
            text = one_line(attempt.progress.get("error") or why(data, number))
            causes.setdefault(line_heads.pattern_of(text), []).append(text)
    rows = sorted(causes.values(), key=len, reverse=True)
    shown = some([f"{len(same)} × {short(same[0], _LONGEST)}" for same in rows], _MOST_CAUSES)
    return tr("Attempts per cause: {causes}", causes=shown) if rows else ""


def _no_other(data: RunData) -> str:
    """Why there was no other attempt."""
    text = documents.text(data.attempts[-1].progress, "no_restart")
    return tr("No other restart: {reason}", reason=one_line(text)) if text is not None else ""


def _row(data: RunData, number: int, axis: Axis, names: dict[int, Named], writer: Writer) -> list[str]:
    attempt = data.attempts[number]
    first = attempt.first_failure or ""
    rank = int(first) if first.isdecimal() else None
    chip = named.chip(names[rank]) if rank is not None and rank in names else ""
    reason = f"{chip}{writer.text(why(data, number))}"
    changed = _changed(data, number)
    if changed:
        reason += f'<br><span class="hint">{writer.text(changed)}</span>'
    status = "?" if attempt.exit is None else str(attempt.exit)
    return [
        str(number + 1),
        escaped(_times(data, number)),
        escaped(_steps(data, number, axis)),
        *_in_vain(data, number),
        reason,
        escaped(status),
    ]


def _in_vain(data: RunData, number: int) -> list[str]:
    """Whether the restart counts; nothing where no attempt states it."""
    if not any(attempt.progress for attempt in data.attempts):
        return []
    return [escaped(tr("yes") if data.attempts[number].progress.get("counted") is True else tr("no"))]


def _times(data: RunData, number: int) -> str:
    """From when to when, since the launch; of the launcher's clock."""
    started, ended = utc.seconds(data.run.started), utc.seconds(data.attempts[number].ended)
    before = utc.seconds(data.attempts[number - 1].ended) if number else started
    lasted = [member.get("seconds") for member in data.attempts[number].members.values()]
    known = [one for one in lasted if isinstance(one, (int, float)) and 0 <= one < 1e9]
    if started is None or ended is None or not known or ended < started:
        return "?"
    begin = max(before or started, int(ended - max(known)), started)
    return f"{timedelta(seconds=begin - started)} – {timedelta(seconds=ended - started)}"


def _steps(data: RunData, number: int, axis: Axis) -> str:
    """The first and the last step that a log of the attempt has."""
    logs = [each[number] for each in data.logs.values() if len(each) == len(data.attempts)]
    steps = [axis.at(place) for one in logs if one.places for place in (one.places[0], one.places[-1])]
    made = data.attempts[number].progress.get("steps")
    if not steps:
        return str(made) if isinstance(made, int) else "–"
    text = f"{min(steps)} – {max(steps)}"
    return tr("{steps} ({number} made)", steps=text, number=made) if isinstance(made, int) else text


def _changed(data: RunData, number: int) -> str:
    """What the next attempt had otherwise: fewer ranks, other hosts."""
    if number == len(data.attempts) - 1:
        return ""
    now, then = (explained.places_of(data, one) for one in (number, number + 1))
    hosts, later = ({str(host) for host in places.values() if host} for places in (now, then))
    parts = []
    if len(now) != len(then):
        parts.append(tr("then {now} ranks instead of {before}", now=len(then), before=len(now)))
    if hosts - later:
        parts.append(tr("without {hosts}", hosts=some(sorted(map(one_line, hosts - later)), 4)))
    if later - hosts:
        parts.append(tr("with {hosts}", hosts=some(sorted(map(one_line, later - hosts)), 4)))
    return listed(parts)
