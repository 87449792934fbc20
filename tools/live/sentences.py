"""Sentences about a job: its name, its progress, and its problems."""

from __future__ import annotations

import time

from hccl_tools.common.grouping import grouped
from hccl_tools.common.language import marked, tr
from hccl_tools.common.words import clauses, count, listed, named, one_line
from tools.launch import record
from tools.live import phase as phase_of
from tools.live.estimate import estimate
from tools.live.job import ENDED, LOST
from tools.live.watcher import DRIFTS, HELD, NOT_FINITE, SILENT, SLOW
from tools.progress import figures, phases
from tools.progress.figures import age, clock, figure, middle, milliseconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tools.live.job import Place
    from tools.live.phase import Phase
    from tools.live.watcher import Seen, View

_LISTED = 64  # ranges of ranks that are put into one line
_ALONE = 3  # slow ranks that have a sentence of their own


def title(view: View) -> str:
    """Which job it is, and since when it runs."""
    job = view.job
    ranks = count(len(job.places), "rank")
    where = tr("{ranks} on {hosts} hosts", ranks=ranks, hosts=job.hosts) if job.hosts > 1 else ranks
    parts = [one_line(job.script), where, _how(view)]
    if job.attempt:
        parts.append(tr("restart {number}", number=job.attempt))
    if job.asked:
        parts.append(tr("asked to save and end"))
    return listed(parts)


def _how(view: View) -> str:
    took = "" if view.seconds is None else clock(view.seconds)
    if view.job.state == ENDED:
        return tr("ended with {code} after {time}", code=view.job.exit, time=took or "?")
    if view.job.state == LOST:
        return tr("its launcher was killed")
    return tr("runs for {time}", time=took or "?")


def where(view: View) -> str:
    """The phase, epoch and step, and when the job will end."""
    lead, phase = view.lead, view.phase
    parts = [_doing(phase)] if phase is not None and phase.name in _PHASES else []
    if lead is None:
        return parts[0] if parts else tr("no rank has printed a number yet")
    for name, most in (("epoch", "epochs"), ("step", "steps")):
        value, limit = lead.number(name), lead.number(most) or _of_plan(view, most)
        if value is not None:
            parts.append(f"{name} {value:.0f}" + (f"/{limit:.0f}" if limit else ""))
    share, left, ends = estimate(view)
    if share is not None:
        parts.append(f"{share:.0%}")
    if left is not None:
        parts.append(_until(view, left, ends))
    return listed(parts)


def _of_plan(view: View, name: str) -> int | None:
    return None if view.plan is None else view.plan[0 if name == "steps" else 1]


def _until(view: View, left: float, ends: float | None) -> str:
    """How long it will take, and the time of day when it ends; with the day, if that is another one."""
    if ends is None:
        return tr("ends in {time}", time=clock(left))
    there = time.localtime(ends)
    same = there[:3] == time.localtime(view.date)[:3]
    at = time.strftime("%H:%M" if same else "%Y-%m-%d %H:%M", there)
    return tr("ends in {time}, at {clock}", time=clock(left), clock=at)


def _doing(phase: Phase) -> str:
    """The phase, how many ranks are in it if not all, and for how long."""
    if phase.ended:
        ended = {"some": phase.ended, "ranks": count(phase.of, "rank")}
        return tr("stops: {some} of {ranks} have ended", **ended)
    more = []
    if phase.ranks < phase.of:
        more.append(tr("{some} of {ranks}", some=phase.ranks, ranks=count(phase.of, "rank")))
    if phase.seconds is not None and phase.name != phases.STEPS:
        more.append(age(phase.seconds))
    said = tr(_PHASES[phase.name])
    return tr("{what} ({more})", what=said, more=listed(more)) if more else said


_PHASES = {
    phases.START: marked("starts: no rank has written a line"),
    phase_of.RESTART: marked("restarts: no rank has written a line"),
    phases.IMPORT: marked("imports MindSpore"),
    phases.JOIN: marked("the ranks find one another"),
    phases.PREPARE: marked("prepares data and network"),
    phases.COMPILE: marked("compiles before the first step"),
    phases.STEPS: marked("trains"),
    phases.SAVE: marked("saves a checkpoint"),
    phases.EVAL: marked("measures on held-out data"),
    phases.STOP: marked("training is done"),
}


def numbers(view: View) -> str:
    """Loss and times of the ranks in the middle, of those whose numbers are not old."""
    rows = [row for row in view.rows if not row.stale] or view.rows
    values = {
        tr("loss"): figure(middle(row.progress.number("loss") for row in rows)),
        tr("step time"): milliseconds(middle(row.progress.step_ms for row in rows)),
        tr("samples/s"): figure(middle(row.progress.number("samples_per_s") for row in rows)),
    }
    return listed(f"{name} {value}" for name, value in values.items() if value)


def trouble(view: View) -> str:
    """All problems as one sentence; nothing if there is none."""
    return clauses(*troubles(view))


def troubles(view: View) -> list[str]:
    """A sentence for each problem, the worst first; ranks that have the same one share it."""
    if view.job.state == ENDED:
        return [view.job.hung] if view.job.hung else []
    if not view.problems:
        if view.quiet is not None and view.quiet >= 60:
            return [tr("no rank has written to its log for {time}", time=clock(view.quiet))]
        return []
    by_state = grouped((row.state, row) for row in view.problems)
    return [sentence for state, rows in by_state.items() for sentence in _of_state(state, rows)]


def in_short(view: View) -> str:
    """The ranks with problems by their state, in one line."""
    by_state = grouped((row.state, row.rank) for row in view.problems)
    return clauses(*(f"{_ranks(ranks)}: {tr(state)}" for state, ranks in by_state.items()))


def _of_state(state: str, rows: Sequence[Seen]) -> list[str]:
    if len(rows) == 1:
        return [_sentence(rows[0])]
    who = _ranks(row.rank for row in rows)
    if state == SLOW:
        found = [figures.slow(_who(row.place), row.pace) for row in rows[:_ALONE] if row.pace]
        more = _ranks(row.rank for row in rows[_ALONE:])
        return [*found, tr("{who}: {what}", who=more, what=tr("slow, too"))] if more else found
    if state == SILENT:  # the longest silence comes first
        low, high = age(rows[-1].age), age(rows[0].age)
        if low == high:
            return [tr("{ranks} have written nothing for {time}", ranks=who, time=high)]
        return [tr("{ranks} have written nothing for {low} to {high}", ranks=who, low=low, high=high)]
    return [tr("{who}: {what}", who=who, what=_what(state, rows[0].status))]


def _ranks(ranks: Iterable[int]) -> str:
    """The ranks by their numbers; of very many the first ones."""
    known = sorted(ranks)
    if not known:
        return ""
    parts = named("rank", known).split(",")
    shown = ", ".join(parts[:_LISTED])
    if len(parts) <= _LISTED:
        return shown
    last = int(parts[_LISTED - 1].rpartition("-")[2])
    return tr("{names} and {number} more", names=shown, number=sum(rank > last for rank in known))


def clocks(view: View) -> str:
    """Which clocks are wrong; nothing if none is."""
    found = sorted(view.clocks.items(), key=lambda each: -abs(each[1]))
    if not found:
        return ""
    host, ahead = found[0]
    values = {"host": one_line(host) or "?", "time": clock(abs(ahead)), "more": len(found) - 1}
    if len(found) > 1:
        return tr("the clocks of {host} and {more} more differ from ours, by up to {time}", **values)
    if ahead > 0:
        return tr("the clock of {host} is {time} ahead of ours", **values)
    return tr("the clock of {host} is {time} behind ours", **values)


def _sentence(row: Seen) -> str:
    if row.state == SLOW and row.pace:
        return figures.slow(_who(row.place), row.pace)
    if row.state == SILENT:
        return tr("{who} has written nothing for {time}", who=_who(row.place), time=age(row.age))
    return tr("{who}: {what}", who=_who(row.place), what=_what(row.state, row.status))


def _what(state: str, status: int | None) -> str:
    if state in _WORDS:
        return _WORDS[state]()
    return f"{tr(state)} {status}" if status else tr(state)


_WORDS = {
    HELD: lambda: tr("SIGSTOP or a debugger holds the process; kill -CONT PID lets it go on"),
    NOT_FINITE: lambda: tr("the loss is not a finite number"),
    DRIFTS: lambda: tr("the loss is far from that of the other ranks"),
}


def _who(place: Place) -> str:
    return one_line(record.who({"rank": place.rank, "device": place.device, "host": place.host}))
