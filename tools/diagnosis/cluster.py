"""Reads the reports of MindSpore's scheduler and the ranks' starter: which ranks never came or ended silently.

These two are never ranks, and never the root.  They only note the loss of a rank that has an error of its own.  If a
rank was killed, they are the only ones that report it.
"""

from __future__ import annotations

from hccl_tools.common.language import tr
from hccl_tools.common.words import named, one_line, short_path
from tools.diagnosis import deaths, failures
from tools.diagnosis.deaths import Death
from tools.diagnosis.processes import Job, Process
from tools.diagnosis.verdict import GUESS, LIKELY, SURE, Verdict, look_at, names, on, said, who
from tools.diagnosis.waits import Target
from tools.logs import owners

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.diagnosis.failures import Failure
    from tools.logs.events import Event


def killed(job: Job, rows: list[Failure], end: Death | None) -> Verdict | None:
    """A rank that was killed before any other ended, and has no error of its own: the others' may follow from that."""
    if end is None or end.signal != deaths.KILLED or not isinstance(end.rank, Process):
        return None
    if not end.rank.findings or not failures.is_quiet(end.rank) or any(row.process is end.rank for row in rows):
        return None
    verdict = of_death(job, end)
    return verdict.replace(certainty=LIKELY) if rows else verdict


def ended(job: Job, end: Death | None) -> Verdict | None:
    """The first rank that ended silently, according to its starter, the scheduler, or the rank's own helper."""
    if end is not None and not (isinstance(end.rank, Process) and _only_waited(end.rank)):
        return of_death(job, end)
    lost = None if missing(job) else _first_lost(job)  # who waits for one that never comes is lost, too, at the end
    if lost is not None and not (isinstance(lost[0], Process) and _only_waited(lost[0])):
        return _verdict_of_loss(job, *lost)
    gone = [process for process in job.processes if any(event.kind == "gone" for event in process.events)]
    return _verdict_of_gone(gone) if gone and len(job.processes) > 1 else None


def _only_waited(process: Process) -> bool:
    """Whether it ended because others did not come: it is not the first."""
    return failures.waited(process)


def of_death(job: Job, end: Death) -> Verdict:
    """The verdict that this rank is the root."""
    roots = [end.rank, *end.others] if end.rank else []
    worker = names(roots) if roots else tr("process {pid}", pid=end.pid)
    if end.raised:
        sentence = tr("{who} failed first: {text}", who=worker, text=said(end.raised))
    elif end.signal and len(roots) > 1:
        sentence = tr("{who} were killed by signal {signal}", who=worker, signal=end.signal)
    elif end.signal:
        sentence = tr("{who} was killed by signal {signal}", who=worker, signal=end.signal)
    elif end.code:
        sentence = tr("{who} ended first, with exit code {code}", who=worker, code=end.code)
    else:
        sentence = tr("{who} ended first", who=worker)
    logged = isinstance(end.rank, Process) and bool(end.rank.findings)
    silent = isinstance(end.rank, Process) and logged and failures.is_quiet(end.rank)
    sure = job.complete and silent and not end.by_place and end.signal not in (0, deaths.TERMINATED)
    why = tr("the program that started the ranks reports it, and its own log has no error")
    if not silent:
        why = tr("the program that started the ranks reports it")
    if end.unclear:
        why = tr("its end was reported first, but others ended with the same code")
    elif end.by_place:
        why = tr("the program that started the ranks reports it, by the number of the rank on its host")
    return Verdict(
        kind="error" if end.raised else "killed",
        roots=list(roots),
        sentence=sentence,
        certainty=GUESS if end.unclear else SURE if sure else LIKELY,
        why=why,
        text=end.raised or end.event.text,
        time=end.event.time,
        next=[
            *([_memory(end.rank)] if end.signal == deaths.KILLED else []),
            *(look_at(end.rank)[:1] if end.rank and logged else []),
            *([_msrun_log(end.pid)] if end.rank is None and "exit with exception" in end.event.text else []),
        ],
    )


def _msrun_log(pid: int | None) -> str:
    return tr("the log of process {pid}: that worker_N.log in msrun's --log_dir that has its number", pid=pid)


def _memory(one: Process | Target | None) -> str:
    """The command that shows what the kernel has killed."""
    where = on(one) if one else ""
    return tr("whether memory ran out: {command}", command=f"{where}dmesg -T | grep -i -E 'oom|killed process'")


def _of_number(job: Job, rank: int) -> Process | Target:
    return job.by_rank.get(rank) or Target(None, rank, None, None)


def _first_lost(job: Job) -> tuple[Process | Target, Event] | None:
    for witness in job.witnesses:
        ranks = {
            event.values["node"]: event.values["rank"]
            for event in witness.events
            if "rank" in event.values and "node" in event.values
        }
        rows = [event for event in witness.events if event.kind == "node_lost"]
        first = next((event for event in rows if event.values.get("first")), rows[0] if rows else None)
        if first is None:
            continue
        node = first.values.get("first") or first.values.get("node") or first.values["nodes"].partition(",")[0].strip()
        number = ranks.get(node, node)
        if number.isdigit() and len(number) < 8:
            return _of_number(job, int(number)), first
    return None


def _verdict_of_loss(job: Job, rank: Process | Target, event: Event) -> Verdict:
    silent = isinstance(rank, Process) and bool(rank.findings) and failures.is_quiet(rank)
    why = tr("MindSpore's scheduler lost it first, and its own log has no error")
    if not silent:
        why = tr("MindSpore's scheduler lost it first")
    return Verdict(
        kind="killed",
        roots=[rank],
        sentence=tr("{who} was killed, or ended without a message", who=who(rank)),
        certainty=SURE if silent and job.complete else LIKELY,
        why=why,
        text=event.text,
        time=event.time,
        next=[_memory(rank), *(look_at(rank)[:1] if isinstance(rank, Process) and rank.findings else [])],
    )


def _verdict_of_gone(gone: list[Process]) -> Verdict:
    event = next(event for event in gone[0].events if event.kind == "gone")
    return Verdict(
        kind="killed",
        roots=list(gone),
        sentence=tr("{who} was killed, or ended without a message", who=names(gone)),
        certainty=LIKELY,
        why=tr("its own helper process reports that it is gone"),
        text=event.text,
        time=event.time,
        next=[_memory(gone[0])],
    )


def scheduler_failed(job: Job) -> Verdict | None:
    """MindSpore's scheduler had an error of its own before any rank came, so that all waited for it."""
    for witness in job.witnesses:
        kinds_of = {event.kind for event in witness.events}
        if "scheduler" not in kinds_of or "not_built" not in kinds_of or "registered" in kinds_of:
            continue
        own = next((one for one in witness.findings if one.error and one.owner.role == owners.SCHEDULER), None)
        if own is None or own.error is None:
            continue
        path = f"{one_line(short_path(own.path))}:{own.error.row}"
        return Verdict(
            kind="error",
            roots=[],
            sentence=tr("MindSpore's scheduler failed first: {text}", text=said(own.error.text)),
            certainty=LIKELY,
            why=tr("no rank connected to it"),
            text=own.error.text,
            time=own.error.time,
            next=[tr("the log of {who}: {path}", who=tr("MindSpore's scheduler"), path=path)],
        )
    return None


def missing(job: Job) -> Verdict | None:
    """Ranks that never came to MindSpore's scheduler."""
    for witness in job.witnesses:
        rows = [event for event in witness.events if event.kind == "registered"]
        wanted = max((int(event.values["ranks"]) for event in rows if "ranks" in event.values), default=0)
        came = {int(event.values["rank"]) for event in rows if "rank" in event.values}
        number = max((int(event.values["came"]) for event in rows if "came" in event.values), default=0)
        if not wanted or number >= wanted or wanted > 1 << 20:
            continue
        absent = sorted(set(range(wanted)) - came) if len(came) == number and max(came) < wanted else []
        # one that tried until its time was over did come, but late
        tried = {rank for rank in absent if rank in job.by_rank and failures.waited(job.by_rank[rank])}
        absent = [rank for rank in absent if rank not in tried] or absent
        roots = [_of_number(job, rank) for rank in absent]
        last = rows[-1]
        sentence = tr(
            "{count} of {wanted} ranks never connected to MindSpore's scheduler", count=wanted - number, wanted=wanted
        )
        if roots:
            sentence = tr(
                "{ranks} never connected to MindSpore's scheduler, {came} of {wanted} connected",
                ranks=named("rank", absent),
                came=number,
                wanted=wanted,
            )
        silent = all(not (isinstance(one, Process) and one.findings and not failures.is_quiet(one)) for one in roots)
        return Verdict(
            kind="missing",
            roots=list(roots),
            sentence=sentence,
            certainty=SURE if silent and roots else LIKELY,
            why=tr("the scheduler lists the ranks that connected"),
            text=last.text,
            time=last.time,
            next=look_at(roots[0]) if roots else [],
        )
    return None
