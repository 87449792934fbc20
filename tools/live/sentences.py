"""Sentences about a job: which it is, how far it is, and what is wrong with it."""

from __future__ import annotations

from hccl_tools.common.language import tr
from hccl_tools.common.words import count, listed, one_line
from tools.launch import record
from tools.live.estimate import estimate
from tools.live.job import ENDED, LOST
from tools.live.watcher import SILENT, SLOW
from tools.progress import wording
from tools.progress.figures import age, clock, figure, middle, milliseconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.live.job import Place
    from tools.live.watcher import Seen, View


def title(view: View) -> str:
    """Which job it is, and since when it runs."""
    job = view.job
    ranks = count(len(job.places), "rank")
    where = tr("{ranks} on {hosts} hosts", ranks=ranks, hosts=job.hosts) if job.hosts > 1 else ranks
    parts = [one_line(job.script), where, _how(view)]
    if job.attempt:
        parts.append(tr("restart {number}", number=job.attempt))
    return listed(parts)


def _how(view: View) -> str:
    took = "" if view.seconds is None else clock(view.seconds)
    if view.job.state == ENDED:
        return tr("ended with {code} after {time}", code=view.job.exit, time=took or "?")
    if view.job.state == LOST:
        return tr("its launcher was killed")
    return tr("runs for {time}", time=took or "?")


def where(view: View) -> str:
    """Epoch and step, and when the job will end."""
    lead = view.lead
    if lead is None:
        return tr("no rank has printed a number yet")
    parts = []
    for name, most in (("epoch", "epochs"), ("step", "steps")):
        value, limit = lead.number(name), lead.number(most)
        if value is not None:
            parts.append(f"{name} {value:.0f}" + (f"/{limit:.0f}" if limit else ""))
    share, left = estimate(view)
    if share is not None:
        parts.append(f"{share:.0%}")
    if left is not None and view.job.state not in (ENDED, LOST):
        parts.append(tr("ends in {time}", time=clock(left)))
    return listed(parts)


def numbers(view: View) -> str:
    """Loss and times of the ranks in the middle."""
    values = {
        tr("loss"): figure(middle(row.progress.number("loss") for row in view.rows)),
        tr("step time"): milliseconds(middle(row.progress.step_ms for row in view.rows)),
        tr("samples/s"): figure(middle(row.progress.number("samples_per_s") for row in view.rows)),
    }
    return listed(f"{name} {value}" for name, value in values.items() if value)


def trouble(view: View) -> str:
    """The worst problem as a sentence; nothing if there is none."""
    worst = view.problems
    if view.job.state == ENDED:
        return view.job.hung
    if not worst:
        if view.quiet is not None and view.quiet >= 60:
            return tr("no rank has written to its log for {time}", time=clock(view.quiet))
        return ""
    first = worst[0]
    sentence = _sentence(first)
    more = len(worst) - 1
    return (
        tr("{sentence}; {ranks} more with problems", sentence=sentence, ranks=count(more, "rank")) if more else sentence
    )


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
        return wording.slow(_who(row.place), row.pace)
    if row.state == SILENT:
        return tr("{who} has written nothing for {time}", who=_who(row.place), time=age(row.age))
    return tr("{who}: {what}", who=_who(row.place), what=_WORDS.get(row.state, lambda: tr(row.state))())


_WORDS = {
    "held": lambda: tr("SIGSTOP or a debugger holds its process; kill -CONT PID lets it go on"),
    "loss?": lambda: tr("its loss is not a finite number"),
    "drifts": lambda: tr("its loss is far from that of the other ranks"),
}


def _who(place: Place) -> str:
    return one_line(record.who({"rank": place.rank, "device": place.device, "host": place.host}))
