"""Determines which ranks failed by themselves, which of them failed first, and how certain that is.

Only one case is certain: all ranks have a log, and just one has an error that cannot follow from a wait.  Where clocks
can be compared, the order in time decides, and the result is likely.  Ranks with the same failure are all named.
"""

from __future__ import annotations

from hccl_tools.common.grouping import grouped
from hccl_tools.common.language import tr
from hccl_tools.common.words import count, named, one_line, short_path
from tools.diagnosis import failures
from tools.diagnosis.failures import CLEAR, UNCLEAR, Failure
from tools.diagnosis.processes import Job, Process
from tools.diagnosis.verdict import GUESS, LIKELY, SURE, Verdict, names, ranks_of, said, who
from tools.diagnosis.waits import Wait

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.diagnosis.deaths import Death

    Timed = tuple[float, Failure]

_ALIKE = 60.0  # seconds: ranks that fail of the same do so within that time, from the first to the last
_NO_CLOCK = 5.0  # seconds that clocks may differ where no log names its host


def of_all(job: Job) -> list[Failure]:
    """The failure of each process that has one of its own, but for those whose card's network failed."""
    found = [failures.failure_of(process) for process in job.processes if not is_network(process)]
    return [one for one in found if one is not None]


def is_network(process: Process) -> bool:
    """Whether its card itself reports that its network failed."""
    return any(event.kind == "cqe" for event in process.events)


def clear(
    job: Job, rows: list[Failure], found: list[Wait], offsets: failures.Offsets, death: Death | None
) -> Verdict | None:
    """The root among processes whose error cannot follow from a wait; death: who ended first, where that is told."""
    mine = [one for one in rows if one.clear == CLEAR]
    if not mine or not _is_told(job):
        return None
    first = [row for row in mine if death is not None and row.process is death.rank]
    if death is not None and death.raised and not first:
        return None  # torchrun has kept the exception that ended it: its log is not here
    verdict = _of(job, mine, found, offsets, first)
    differs = death is not None and death.rank is not None and not death.is_stopped and not first
    return verdict.replace(certainty=LIKELY) if differs and verdict.certainty == SURE else verdict


def unclear(job: Job, rows: list[Failure], found: list[Wait], offsets: failures.Offsets) -> Verdict | None:
    """The root among the others: an exception in addition to a wait, or a wrapper where nothing shows a wait.

    Most ranks raise something after a wait: only what a few have tells them from the others.
    """
    mine = [one for one in rows if one.clear == UNCLEAR]
    if 2 * len(mine) > len(job.processes) and len(job.processes) > 1:
        mine = []
    mine = mine or [one for one in rows if one.clear != UNCLEAR]
    verdict = _of(job, mine, found, offsets) if mine and _is_told(job) else None
    return verdict.replace(certainty=LIKELY) if verdict and verdict.certainty == SURE else verdict


def _is_told(job: Job) -> bool:
    """Whether it states anything to name a root: not of one log alone, of a job with an unknown number of ranks."""
    return len(job.processes) > 1 or job.ranks > 0


def _of(
    job: Job,
    rows: list[Failure],
    found: list[Wait],
    offsets: failures.Offsets,
    ended_first: list[Failure] | None = None,
) -> Verdict:
    """ended_first: the one whose process ended first, as what started the ranks states."""
    if len(rows) == 1:
        why = tr("all errors of the other ranks follow from waits")
        if not job.complete:
            why = tr("all errors in the other logs follow from waits, but not all ranks' logs are here")
            if not job.ranks:
                why = tr("all errors in the other logs follow from waits, but no log tells how many ranks there are")
        elif rows[0].may_go_on:
            return _named(rows, found, LIKELY, tr("all errors of the other ranks follow from waits"))
        elif not rows[0].known and any(map(failures.is_quiet, job.processes)):
            why = tr(
                "its error is the only one that may not follow from a wait, but other ranks wrote nothing at "
                "all, as if they were killed"
            )
            return _named(rows, found, LIKELY, why)
        return _named(rows, found, SURE if job.complete else LIKELY, why)
    times = [(offsets.common(row.process, row.seen.time), row) for row in rows]
    timed = sorted(
        ((time, row) for time, row in times if time is not None), key=lambda row: (row[0], row[1].process.place)
    )
    if len(timed) == len(rows):
        return _by_time(timed, found, offsets)
    return _without_times(rows, found, ended_first or [])


def _by_time(timed: list[Timed], found: list[Wait], offsets: failures.Offsets) -> Verdict:
    begin, first = timed[0]
    alike = [row for time, row in timed if row.alike == first.alike and time - begin < _ALIKE]
    if len(alike) > 1:
        return _alike(
            alike,
            tr(
                "the same error on {ranks}; by the times {first} had it first",
                ranks=count(len(alike), "rank"),
                first=who(first.process),
            ),
        )
    tolerance = offsets.tolerance
    if any(not (row.process.host or row.process.server) for _, row in timed):
        tolerance = max(tolerance, _NO_CLOCK)
    near = [
        row.process
        for time, row in timed[1:]
        if _host(row.process) != _host(first.process) and time - begin < tolerance
    ]
    if near:
        why = tr(
            "the clocks of the hosts may differ by {seconds} s, and {others} failed within that time",
            seconds=f"{tolerance:g}",
            others=names(near),
        )
    else:
        why = tr("its error is the earliest of {count} that do not follow from a wait", count=len(timed))
    return _named([first], found, LIKELY, why)


def _host(process: Process) -> object:
    return process.host or process.server or id(process)


def _without_times(rows: list[Failure], found: list[Wait], ended_first: list[Failure]) -> Verdict:
    """Some have no time: what tells them apart is who ended first, who raised, or that others are alike."""
    if ended_first and len({row.alike for row in rows}) > 1:
        return _named(ended_first, found, LIKELY, tr("the program that started the ranks reports that it ended first"))
    for some in ([row for row in rows if row.raised], rows):
        groups = grouped((row.alike, row) for row in some)
        if len(groups) == 1:
            only = next(iter(groups.values()))
            if len(only) == 1:
                return _named(only, found, LIKELY, tr("it alone raised an exception of its own"))
            return _alike(only, tr("the same error on {ranks}", ranks=count(len(only), "rank")))
        small = [group for group in groups.values() if len(group) == 1]
        if len(groups) == 2 and len(small) == 1 and len(some) > 2:
            return _named(small[0], found, LIKELY, tr("it alone has another error than the rest"))
    return _alike(rows, tr("each has an error of its own, and no times tell which was first"), GUESS)


def _named(rows: list[Failure], found: list[Wait], certainty: str, why: str) -> Verdict:
    process, seen = rows[0].process, rows[0].seen
    sentence = tr("{who} failed first: {text}", who=who(process), text=said(seen.text))
    others = {id(wait.source): wait.source for wait in found if wait.source is not process}
    if others:
        waiting = named("rank", ranks_of(others.values()))
        sentence = tr("{sentence}; {count} waited for others", sentence=sentence, count=waiting)
    return Verdict(
        kind="error",
        roots=[process],
        sentence=sentence,
        certainty=certainty,
        why=why,
        text=seen.text,
        time=seen.time,
        next=[_log_of(rows[0])],
    )


def _alike(rows: list[Failure], why: str, certainty: str = LIKELY) -> Verdict:
    rows = sorted(rows, key=lambda row: (row.process.rank is None, row.process.rank or 0, row.process.place))
    processes = [row.process for row in rows]
    first = rows[0]
    if certainty == GUESS:
        sentence = tr(
            "{who} failed; {first}: {text}", who=names(processes), first=who(first.process), text=said(first.seen.text)
        )
    else:
        sentence = tr("{who} failed for the same reason: {text}", who=names(processes), text=said(first.seen.text))
    return Verdict(
        kind="error",
        roots=list(processes),
        sentence=sentence,
        certainty=certainty,
        why=why,
        text=first.seen.text,
        time=first.seen.time,
        next=[_log_of(row) for row in rows[:2]],
    )


def _log_of(row: Failure) -> str:
    return tr("the log of {who}: {path}", who=who(row.process), path=f"{one_line(short_path(row.path))}:{row.seen.row}")
