"""Follows chains of waits when the logs contain only time-outs: to a silent rank, into a circle, or to a late rank."""

from __future__ import annotations

from hccl_tools.common.language import tr
from hccl_tools.common.words import count
from tools.diagnosis import collectives, failures, waits
from tools.diagnosis.processes import Job, Process
from tools.diagnosis.verdict import GUESS, LIKELY, Verdict, chain_lines, count_of, link_check, look_at, names, ping, who
from tools.diagnosis.waits import End, Target, Wait


def late(found: list[Wait], offsets: failures.Offsets) -> Verdict | None:
    """Two processes that waited for each other at different times: one gave up before the other came."""
    for end in waits.ends(found):
        circle = [one for one in end.members if isinstance(one, Process)]
        if len(circle) < 2:
            continue
        times = sorted(
            ((offsets.common(one, one.began), one) for one in circle if one.began is not None),
            key=lambda row: (row[0] or 0.0, row[1].place),
        )
        limit = _limit(end)
        if len(times) == len(circle) and (times[-1][0] or 0.0) - (times[0][0] or 0.0) > limit + offsets.tolerance:
            late, first = times[-1][1], times[0][1]
            seconds = (times[-1][0] or 0.0) - (times[0][0] or 0.0)
            return Verdict(
                kind="late",
                roots=[late],
                sentence=tr(
                    "{who} came {seconds} s too late: {first} waited {limit} s for it and had given up",
                    who=who(late),
                    seconds=f"{max(0.0, seconds - limit):.0f}",
                    first=who(first),
                    limit=limit,
                ),
                chain=chain_lines(end),
                certainty=LIKELY,
                why=collectives.both_waited(seconds),
                next=[collectives.did_before(late), _raise_limit(end)],
            )
    return None


def _limit(end: End) -> int:
    exec_limit = any(wait.kind == "notify" for wait in end.direct)
    for process in end.waiters:
        for event in process.events:
            what = event.values.get("what", "") if event.kind == "limit" else ""
            if what and exec_limit == what.lower().startswith("exec"):
                return int(event.values["seconds"])
    return waits.EXEC_SECONDS if exec_limit else waits.CONNECT_SECONDS


def chain(job: Job, found: list[Wait]) -> Verdict | None:
    all_ends = waits.ends(found)
    if not all_ends:
        return None
    end = all_ends[0]
    if len(end.members) > 1:
        return _circle(end, all_ends)
    last = end.members[0]
    if isinstance(last, Process) and any(wait.source is last and wait.target.process is last for wait in found):
        if len(job.processes) < 2:
            return _nobody_known(1, job)
        return Verdict(
            kind="self",
            roots=[last],
            sentence=tr(
                "{who} waited for its own device; {count} waited for it", who=who(last), count=count_of(end, last)
            ),
            chain=chain_lines(end),
            certainty=LIKELY,
            why=tr("the chains of waits end there"),
            next=look_at(last),
        )
    return _end_of_chain(job, end, last)  # type: ignore[arg-type]


def _circle(end: End, all_ends: list[End]) -> Verdict:
    circle = [one for one in end.members if isinstance(one, Process)]
    known = all(one.rank is not None for one in circle)
    circle_of = " -> ".join(tr("rank {rank}", rank=one.rank) if known else who(one) for one in [*circle, circle[0]])
    return Verdict(
        kind="circle",
        roots=list(circle),
        sentence=tr("{names} waited for each other: {circle}", names=names(circle), circle=circle_of),
        chain=chain_lines(*all_ends),
        certainty=LIKELY,
        why=tr("none of them has another error; the network between them, TLS, or different collectives"),
        next=[*(link_check(one) for one in circle[:2]), ping(circle[0], circle[1].address)],
    )


def _end_of_chain(job: Job, end: End, last: Process | Target) -> Verdict:
    connects = any(wait.kind != "notify" for wait in end.direct)
    rank = last.rank
    if isinstance(last, Target) and rank is not None and job.ranks and rank >= job.ranks:
        how = tr("is not one of the job's {ranks} ranks", ranks=job.ranks)
        certainty, why = LIKELY, tr("the logs say how many ranks the job has")
    elif isinstance(last, Target) or not last.findings:
        how = tr("has no log here")
        certainty, why = GUESS, tr("what it did is not known without its log")
    elif connects:
        how = tr("never opened its socket")
        certainty, why = LIKELY, tr("its own log has no error")
    else:
        how = tr("never reached the collective")
        certainty, why = LIKELY, tr("its own log has no error")
    first = end.waiters[0]
    if len(end.waiters) == 1:
        waited = tr("{first} waited {seconds} s for it", first=who(first), seconds=_limit(end))
    else:
        waited = tr(
            "{count} ranks waited {seconds} s for it, {first} first",
            count=len(end.waiters),
            seconds=_limit(end),
            first=who(first),
        )
    sentence = tr("{who} {how}; {waited}", who=who(last), how=how, waited=waited)
    return Verdict(
        kind="chain",
        roots=[last],
        sentence=sentence,
        chain=chain_lines(end),
        certainty=certainty,
        why=why,
        text=end.direct[0].text if end.direct else "",
        time=end.direct[0].time if end.direct else None,
        next=look_at(last),
    )


def silent(job: Job, found: list[Wait]) -> Verdict | None:
    """Ranks without a sign of trouble, or without a log, while others waited."""
    sources = {id(wait.source) for wait in found} | {id(one) for one in job.processes if failures.waited(one)}
    if not sources:
        return None
    quiet: list[Process | Target] = [one for one in job.processes if id(one) not in sources and failures.is_quiet(one)]
    quiet += [
        job.by_rank.get(rank) or Target(None, rank, None, None)
        for rank in range(min(job.ranks, 1 << 20))
        if rank not in job.by_rank or not job.by_rank[rank].findings
    ]
    if not quiet or len(quiet) > max(len(sources), 8) or (len(quiet) > 1 and len(quiet) >= len(sources)):
        return _nobody_known(len(sources), job)
    alone = len(quiet) == 1 and 1 < len(sources) == len(job.processes) - 1
    return Verdict(
        kind="silent",
        roots=quiet,
        sentence=tr("{who} reported nothing while {count} waited", who=names(quiet), count=count(len(sources), "rank")),
        certainty=LIKELY if alone else GUESS,
        why=tr("all others have errors"),
        next=[*look_at(quiet[0]), *_alone(quiet[0], job)],
    )


def _nobody_known(number: int, job: Job) -> Verdict:
    """Only waits are known, and not for whom."""
    alone = len(job.processes) < 2 and job.ranks < 2
    return Verdict(
        kind="unknown",
        roots=[],
        sentence=tr("{count} waited, and no log shows for which rank", count=count(number, "rank")),
        certainty=GUESS,
        why=tr("all ranks waited") if job.complete else tr("the logs of most ranks are not here"),
        next=[tr("the logs of the other ranks: one of them failed, is behind, or ended")] if alone else [],
    )


def _alone(quiet: Process | Target, job: Job) -> list[str]:
    """A rank that goes on without the others has no error, either."""
    if not isinstance(quiet, Process) or not quiet.findings:
        return []
    in_torch = any(event.kind == "watchdog" for one in job.processes for event in one.events)
    limit = "init_process_group(timeout=...)" if in_torch else "HCCL_EXEC_TIMEOUT, HCCL_CONNECT_TIMEOUT"
    return [
        tr(
            "whether it worked alone (compiling, evaluating, saving) for longer than the others may wait: {limit}",
            limit=limit,
        )
    ]


def _raise_limit(end: End) -> str:
    if any(wait.kind == "notify" for wait in end.direct):
        return collectives.raise_limit()
    return tr("or raise HCCL_CONNECT_TIMEOUT on all hosts")
