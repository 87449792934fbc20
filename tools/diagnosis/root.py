"""Determines which rank really failed first, from the logs of all ranks: one sentence, with the reasons.

The questions in their order; the logs answer each:

1. Do ranks call different collectives, or have different TLS switches?  Then the waits follow from that.
2. Does a rank have an error that does not follow from a wait?  The earliest is the root, as far as clocks can be
   compared.  But a rank that was killed (SIGKILL) before all others ended has no error, and those of others follow
   from its end.
3. Does MindSpore's scheduler, or the starter of the ranks, name a rank that ended silently, or never came?
4. Did a card's network send without an answer (error CQE)?
5. Does HCCL's heartbeat name a device, or its search after a time-out?
6. Which ranks never came to a communicator?
7. Does a rank have an error that may follow from a wait, while the others have none?
8. Where do the chains of waits end: at a silent rank, at one that is not in the job, in a circle?
9. Which rank is silent while others wait?
"""

from __future__ import annotations

import re

from hccl_tools.common.language import tr
from hccl_tools.common.record import Record
from hccl_tools.common.words import named, one_line
from tools.diagnosis import chains, cluster, collectives, deaths, differing, failures, first_error, waits
from tools.diagnosis.processes import Job, Process
from tools.diagnosis.verdict import LIKELY, SURE, Verdict, link_check, look_at, names, ping, said, who
from tools.diagnosis.waits import Target, Wait

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.logs.events import Event

_DIGITS = re.compile(r"\d+")


def verdict_of(job: Job) -> Verdict | None:
    """The root; None, where the logs hold neither an error nor a wait."""
    found = waits.waits_of(job)
    offsets = failures.offsets(job)
    rows = first_error.of_all(job)
    death = deaths.first(job)
    return (
        collectives.conflict(job, found)
        or differing.mismatch(job)
        or collectives.tls(job, found)
        or cluster.killed(job, rows, death)
        or first_error.clear(job, rows, found, offsets, death)
        or cluster.scheduler_failed(job)
        or cluster.ended(job, death)
        or cluster.missing(job)
        or of_one_file(job)
        or _network(job, offsets)
        or _lost(job, found)
        or _missing(job)
        or differing.absent(job)
        or first_error.unclear(job, rows, found, offsets)
        or differing.watchdogs(job)
        or collectives.behind(found)
        or differing.stalled(job)
        or chains.late(found, offsets)
        or collectives.apart(found, offsets)
        or chains.chain(job, found)
        or chains.silent(job, found)
    )


# --- the network ------------------------------------------------------------------------------------------------------


def _network(job: Job, offsets: failures.Offsets) -> Verdict | None:
    rows: list[tuple[float, Process, Event]] = []
    for process in job.processes:
        for event in process.events:
            if event.kind == "cqe":
                rows.append((offsets.common(process, failures.said_time(event)) or 0.0, process, event))
                break
    if not rows:
        return None
    rows.sort(key=lambda row: (row[0], row[1].place))
    _, process, event = rows[0]
    target = job.by_address.get(event.values["ip"])
    peer = who(target) if target else tr("the address {address}", address=one_line(event.values["ip"]))
    sentence = tr(
        "the card of {who} got no answer over its network from {peer} (error CQE)", who=who(process), peer=peer
    )
    others = [row[1] for row in rows[1:]]
    if others:
        sentence = tr("{sentence}; so did {others} after it", sentence=sentence, others=names(others))
    return Verdict(
        kind="network",
        roots=[row[1] for row in rows],
        sentence=sentence,
        certainty=LIKELY,
        why=tr("the cards themselves report it, and the one of {who} first", who=who(process)),
        text=event.text,
        time=event.time,
        next=[link_check(process), ping(process, event.values["ip"])],
    )


# --- what HCCL found out itself ---------------------------------------------------------------------------------------


def _lost(job: Job, found: list[Wait]) -> Verdict | None:
    votes: dict[tuple[str, int, str], list[tuple[Process, Event]]] = {}
    for process in job.processes:
        for event in process.events:
            if event.kind == "lost":
                said = event.values
                votes.setdefault((said["ip"], int(said["device"]), said["what"]), []).append((process, event))
            elif event.kind == "detected":
                said = event.values
                votes.setdefault((said["ip"], int(said["device"]), ""), []).append((process, event))
    if not votes:
        return None
    (address, device, what), rows = max(votes.items(), key=lambda item: (len(item[1]), -(item[1][0][1].time or 0.0)))
    target = _placed(job, address, device, found, [process for process, _ in rows])
    sayers = names([_sayer(process, event) for process, event in rows])
    if what:
        sentence = tr(
            "HCCL's heartbeat names {who}: {what}; reported by {others}",
            who=who(target),
            what=one_line(what),
            others=sayers,
        )
    else:
        sentence = tr(
            "no connection to {who} succeeded, not even in HCCL's own test; reported by {others}",
            who=who(target),
            others=sayers,
        )
    silent = isinstance(target, Process) and bool(target.findings) and failures.is_quiet(target)
    sure = silent and what and job.complete and len(rows) > 1 and len({key[:2] for key in votes}) == 1
    return Verdict(
        kind="lost",
        roots=[target],
        sentence=sentence,
        certainty=SURE if sure else LIKELY,
        why=tr("it has no error of its own") if silent else tr("HCCL asks every rank for signs of life"),
        text=rows[0][1].text,
        time=rows[0][1].time,
        next=look_at(target)
        if silent
        else [tr("whether {who} still runs, and its log", who=who(target)), *_link(target)],
    )


def _sayer(process: Process, event: Event) -> Process | Target:
    """Who states it: by the line itself where the log does not tell."""
    said = event.values
    if process.rank is not None or process.pid is not None or not said.get("by_device"):
        return process
    return Target(None, None, said["by_ip"], int(said["by_device"]))


def _link(one: Process | Target) -> list[str]:
    return [] if one.device is None else [link_check(one)]


def _placed(job: Job, address: str, device: int, found: list[Wait], sayers: list[Process]) -> Process | Target:
    """Who is at that device of that host.

    Where no log names the host, it is the one that all waited for who state this, if its number fits the device.
    """
    here = job.by_place.get((address, device))
    if here is not None:
        return here
    said_by = {id(process) for process in sayers}
    ranks = {wait.target.rank for wait in found if id(wait.source) in said_by and wait.kind == "notify"}
    rank = ranks.pop() if len(ranks) == 1 else None
    fits = rank is not None and any(rank % cards == device for cards in (4, 8, 16))
    known = job.by_rank.get(rank) if rank is not None and fits else None
    if known is not None and known.device in (None, device) and known.server in (None, address):
        return known
    return Target(None, rank if fits and known is None else None, address, device)


class _Came(Record):
    """What the root of a communicator states about those that came to it."""

    wanted: int = 0  # 0: no line states it
    number: int = 0  # of those that came; 0: no line states it
    came: frozenset[int] = frozenset()
    missing: frozenset[int] = frozenset()
    limit: int = 0  # seconds
    text: str = ""
    time: float | None = None


def _came(process: Process) -> _Came:
    found = _Came()
    for event in process.events:
        said = event.values
        if event.kind == "root_waits":
            found = found.replace(wanted=int(said["ranks"]), time=event.time)
        elif event.kind == "came":
            found = found.replace(came=found.came | _numbers(said["came"]), text=event.text)
        elif event.kind == "came_number":
            found = found.replace(number=int(said["number"]))
        elif event.kind == "missing":
            missing = found.missing | _numbers(said["missing"])
            found = found.replace(missing=missing, text=event.text, time=event.time)
        elif event.kind == "limit":
            found = found.replace(limit=int(said["seconds"]))
    return found


def _numbers(text: str) -> frozenset[int]:
    return frozenset(map(int, _DIGITS.findall(text)))


def _missing(job: Job) -> Verdict | None:
    of_job = job.ranks if all(len(process.groups) < 2 for process in job.processes) else 0
    for process in job.processes:
        list_of = _came(process)
        wanted, came, missing = list_of.wanted, list_of.came, set(list_of.missing)
        if came and list_of.number in (0, len(came)):  # else the list is not whole
            # where no line states how many: a gap in the numbers shows those up to the last one that came
            missing |= set(range(min(wanted or max(*came, of_job), 1 << 20))) - came
        if not missing:
            continue
        roots: list[Process | Target] = [
            job.by_rank.get(rank) or Target(None, rank, None, None) for rank in sorted(missing)
        ]
        sentence = tr("{ranks} never joined the communicator", ranks=named("rank", missing))
        if wanted:
            sentence = tr(
                "{ranks} never joined the communicator: {who} waited {seconds} s for {wanted} ranks, and {came} joined",
                ranks=named("rank", missing),
                who=who(process),
                seconds=list_of.limit or waits.CONNECT_SECONDS,
                wanted=wanted,
                came=len(came),
            )
        without = [one for one in roots if not (isinstance(one, Process) and one.findings)]
        why = tr("HCCL lists the ranks that joined")
        if len(without) == len(roots):
            why = tr("HCCL lists the ranks that joined, and the logs of the missing ranks are not here")
        return Verdict(
            kind="missing",
            roots=roots,
            sentence=sentence,
            certainty=SURE if (wanted or of_job or list_of.missing) and all(map(_is_silent, roots)) else LIKELY,
            why=why,
            text=list_of.text,
            time=list_of.time,
            next=look_at(roots[0]),
        )
    return None


def _is_silent(one: Process | Target) -> bool:
    return not (isinstance(one, Process) and one.findings) or failures.is_quiet(one)


def of_one_file(job: Job) -> Verdict | None:
    """The first process whose card failed, or had no memory left, where others in the file only lost their peer.

    It is for NCCL's lines of several processes in one file: each names its host, process and device, but hardly ever
    its rank.
    """
    for process in [*job.processes, *job.witnesses]:
        if process.rank is not None:
            continue
        event = next((event for event in process.events if event.kind == "own" and event.values.get("pid")), None)
        if event is None:
            continue
        one = Process("", int(event.values["pid"]))
        one.host, one.device = event.values["host"], int(event.values["device"])
        return Verdict(
            kind="error",
            roots=[one],
            sentence=tr("{who} failed first: {text}", who=who(one), text=said(event.text)),
            certainty=LIKELY,
            why=tr("its line names the process, and all errors of other processes follow from waits"),
            text=event.text,
            time=event.time,
        )
    return None
