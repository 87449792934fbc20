"""Which rank failed first in truth: from the logs of all ranks, in one sentence, with the reasons.

The order of the questions, each answered by the logs:

1. Do ranks call different collectives, or have different TLS switches?  Then nobody waits in vain by accident.
2. Has a rank an error that does not follow from a wait?  The earliest is the root, as far as clocks can be compared.
3. Did a card's network send in vain (error CQE)?
4. Does HCCL's heartbeat name a device, or its search after a time-out?
5. Which ranks never came to a communicator?
6. Where do the chains of waits end: at a silent rank, at one that is not in the job, in a circle?
7. Who is silent while others wait?
"""

from __future__ import annotations

from hccl_tools.common.language import tr
from hccl_tools.common.words import named, one_line, short_path
from tools.diagnosis import chains, clocks, collectives, waits
from tools.diagnosis.processes import Job, Process
from tools.diagnosis.verdict import LIKELY, SURE, Verdict, link_check, look_at, names, ping, ranks_of, said, who
from tools.diagnosis.waits import Target, Wait

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.logs.events import Event
    from tools.logs.scan import Seen


def verdict_of(job: Job) -> Verdict | None:
    """The root; None, where the logs hold neither an error nor a wait."""
    found = waits.waits_of(job)
    offsets = clocks.offsets(job)
    return (
        collectives.conflict(job, found)
        or collectives.tls(job, found)
        or _error(job, found, offsets)
        or _network(job, offsets)
        or _lost(job)
        or _missing(job)
        or collectives.behind(job, found)
        or chains.late(job, found, offsets)
        or chains.chain(job, found)
        or chains.silent(job, found)
    )


# --- an error of its own ----------------------------------------------------------------------------------------------


def _error(job: Job, found: list[Wait], offsets: clocks.Offsets) -> Verdict | None:
    """The earliest error of a process that had not waited in vain before."""
    first_wait: dict[int, float] = {}
    for wait in found:
        if wait.time is not None:
            key = id(wait.source)
            first_wait[key] = min(first_wait.get(key, wait.time), wait.time)
    rows = []
    for process in job.processes:
        seen = process.error
        if seen is None or _is_network(process):
            continue
        waited = first_wait.get(id(process))
        if waited is None or seen.time is None or seen.time < waited - clocks.MOMENT:
            rows.append((offsets.common(process, seen.time), process, seen))
    if not rows:
        return None
    rows.sort(key=lambda row: (row[0] is None, row[0] or 0.0, row[1].place))
    at, process, seen = rows[0]
    near = [
        other
        for when, other, _ in rows[1:]
        if other.host != process.host and when is not None and at is not None and when - at < offsets.tolerance
    ]
    sentence = tr("{who} failed first: {text}", who=who(process), text=said(seen.text))
    if found:
        sentence = tr("{sentence}; {count} waited for others", sentence=sentence, count=_waiting(found, process))
    if near:
        why = tr(
            "the clocks of the hosts may differ by {seconds} s, and {others} failed within that time",
            seconds=f"{offsets.tolerance:g}",
            others=names(near),
        )
    elif len(rows) > 1:
        why = tr("its error is the earliest of {count} that do not follow from a wait", count=len(rows))
    else:
        why = tr("no other rank has an error that does not follow from a wait")
    return Verdict(
        kind="error",
        roots=[process],
        sentence=sentence,
        certainty=LIKELY if near else SURE,
        why=why,
        text=seen.text,
        time=seen.time,
        next=[tr("the log of {who}: {path}", who=who(process), path=_path_of(process, seen))],
    )


def _waiting(found: list[Wait], but: Process) -> str:
    return named("rank", ranks_of({id(wait.source): wait.source for wait in found if wait.source is not but}.values()))


def _path_of(process: Process, seen: Seen) -> str:
    for one in process.findings:
        raised = one.exception and one.exception.row + 1 == seen.row and one.exception.text == seen.text
        if one.error == seen or raised:
            return f"{one_line(short_path(one.path))}:{seen.row}"
    return one_line(short_path(process.findings[0].path))


# --- the network ------------------------------------------------------------------------------------------------------


def _is_network(process: Process) -> bool:
    return any(event.kind == "cqe" for event in process.events)


def _network(job: Job, offsets: clocks.Offsets) -> Verdict | None:
    rows: list[tuple[float, Process, Event]] = []
    for process in job.processes:
        for event in process.events:
            if event.kind == "cqe":
                rows.append((offsets.common(process, clocks.said(event)) or 0.0, process, event))
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


def _lost(job: Job) -> Verdict | None:
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
    target = job.by_place.get((address, device)) or Target(None, None, address, device)
    sayers = names([process for process, _ in rows])
    if what:
        sentence = tr(
            "HCCL's heartbeat names {who}: {what}; said by {others}",
            who=who(target),
            what=one_line(what),
            others=sayers,
        )
    else:
        sentence = tr(
            "no connection to {who} could be made, also in HCCL's own test; said by {others}",
            who=who(target),
            others=sayers,
        )
    silent = isinstance(target, Process) and not target.errors
    return Verdict(
        kind="lost",
        roots=[target],
        sentence=sentence,
        certainty=SURE if silent and what else LIKELY,
        why=tr("it has no error of its own") if silent else tr("HCCL asks every rank for signs of life"),
        text=rows[0][1].text,
        time=rows[0][1].time,
        next=look_at(target),
    )


def _missing(job: Job) -> Verdict | None:
    for process in job.processes:
        wanted, came, missing, limit, text, time = 0, set(), set(), 0, "", None
        for event in process.events:
            if event.kind == "root_waits":
                wanted, time = int(event.values["ranks"]), event.time
            elif event.kind == "came":
                came |= {
                    int(number)
                    for number in event.values["came"]
                    .replace("[", " ")
                    .replace("]", " ")
                    .replace(",", " ")
                    .replace(";", " ")
                    .split()
                }
                text = event.text
            elif event.kind == "missing":
                missing |= {int(number) for number in event.values["missing"].replace(",", " ").split()}
                text, time = event.text, event.time
            elif event.kind == "limit":
                limit = int(event.values["seconds"])
        missing |= set(range(min(wanted, 1 << 20))) - came if wanted and came else set()
        if not missing:
            continue
        roots: list[Process | Target] = [
            job.by_rank.get(rank) or Target(None, rank, None, None) for rank in sorted(missing)
        ]
        sentence = tr("{ranks} never came to the communicator", ranks=named("rank", missing))
        if wanted:
            sentence = tr(
                "{ranks} never came to the communicator: {who} waited {seconds} s for {wanted} ranks, and {came} came",
                ranks=named("rank", missing),
                who=who(process),
                seconds=limit or waits.CONNECT_SECONDS,
                wanted=wanted,
                came=len(came),
            )
        without = [one for one in roots if not (isinstance(one, Process) and one.findings)]
        why = tr("HCCL lists who came")
        if len(without) == len(roots):
            why = tr("HCCL lists who came, and no log of the missing ones is here")
        return Verdict(
            kind="missing",
            roots=roots,
            sentence=sentence,
            certainty=SURE,
            why=why,
            text=text,
            time=time,
            next=look_at(roots[0]),
        )
    return None
