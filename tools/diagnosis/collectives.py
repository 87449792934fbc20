"""Finds ranks that differ from the others in their collectives, their steps or their TLS switches."""

from __future__ import annotations

from collections import Counter

from hccl_tools.common.language import tr
from hccl_tools.common.words import named, one_line
from tools.diagnosis.processes import Job, Process
from tools.diagnosis.verdict import LIKELY, SURE, Verdict, who
from tools.diagnosis.waits import Target, Wait

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.diagnosis.failures import Offsets

_SAME_MOMENT = 30.0  # seconds between the time-outs of ranks that came together


def same_order() -> str:
    """Why ranks in different collectives wait for ever."""
    return tr("all ranks of a communicator must call the same collectives in the same order")


def both_waited(seconds: float) -> str:
    """Why one of them came late; seconds: between their time-outs."""
    return tr("both waited, and their time-outs are {seconds} s apart", seconds=f"{seconds:.0f}")


def did_before(late: Process) -> str:
    """What to look at of the process that came late."""
    return tr("what {who} did before: data, compilation, a checkpoint", who=who(late))


def raise_limit() -> str:
    """What else helps a process that came late to a collective."""
    return tr("or raise HCCL_EXEC_TIMEOUT on all hosts")


def to_compare() -> str:
    """What to compare if ranks do not do the same."""
    return tr("batch sizes, shapes, branches of the program and the number of steps, rank by rank")


def conflict(job: Job, found: list[Wait]) -> Verdict | None:
    """HCCL compared what two ranks want to do, and it differs."""
    if len(job.processes) < 2 and not job.ranks and not found:
        return None  # its line states all that is known
    for process in job.processes:
        for event in process.events:
            if event.kind != "conflict":
                continue
            other = _peer(process, found)
            said = event.values
            roots = [process, other] if other else _with_conflicts(job)
            return Verdict(
                kind="conflict",
                roots=list(roots),
                sentence=tr(
                    "{who} and {other} call different collectives: {what} is {local} here and {remote} there",
                    who=who(process),
                    other=who(other) if other else tr("another rank"),
                    what=one_line(said["what"]),
                    local=one_line(said["local"]),
                    remote=one_line(said["remote"]),
                ),
                certainty=SURE if isinstance(other, Process) else LIKELY,
                why=tr("HCCL compared the two"),
                text=event.text,
                time=event.time,
                next=[to_compare()],
            )
    return None


def _peer(process: Process, found: list[Wait]) -> Process | Target | None:
    """With whom it compared them; None if its lines name several, none of which has a log."""
    targets = [wait.target for wait in found if wait.source is process and wait.kind == "transport"]
    if targets and (targets[0].process or len(set(targets)) == 1):
        return targets[0].process or targets[0]
    return None


def _with_conflicts(job: Job) -> list[Process]:
    return [process for process in job.processes if any(event.kind == "conflict" for event in process.events)]


def tls(job: Job, found: list[Wait]) -> Verdict | None:
    """TLS is on for some cards and off for others: they cannot connect."""
    switch: dict[int, str] = {}
    differs = None
    for process in job.processes:
        for event in process.events:
            if event.kind == "tls":
                switch[id(process)] = event.values["switch"]
            elif event.kind == "tls_differs":
                differs = differs or event
    for wait in found:
        if wait.tls in ("ENABLE", "DISABLE"):
            switch.setdefault(id(wait.source), "1" if wait.tls == "ENABLE" else "0")
    counts = Counter(switch.values())
    if len(counts) < 2 and not differs:
        return None
    rarest = min(counts, key=lambda key: counts[key]) if len(set(counts.values())) > 1 else None
    roots = [one for one in job.processes if rarest and switch.get(id(one)) == rarest]
    value = tr("on") if roots and switch[id(roots[0])] == "1" else tr("off")
    sentence = tr("the TLS switches of the cards differ")
    if roots:
        sentence = tr("TLS is {value} for {who} and not for the others", value=value, who=_listed(roots))
    return Verdict(
        kind="tls",
        roots=list(roots),
        sentence=sentence,
        certainty=SURE if job.complete and len(switch) == len(job.processes) else LIKELY,
        why=tr("cards with different switches cannot connect"),
        text=differs.text if differs else "",
        next=[tr("on every host, for every device N: {command}", command="hccn_tool -i N -tls -g")],
    )


def behind(found: list[Wait]) -> Verdict | None:
    """All wait for a notify, but one is in another collective than the others."""
    mine = {id(wait.source): wait for wait in reversed(found) if wait.kind == "notify"}
    steps = Counter((wait.tag, wait.index) for wait in mine.values())
    if len(mine) == 2:
        return _of_two(*sorted(mine.values(), key=lambda wait: wait.source.place))
    if len(steps) < 2 or len(mine) < 3:
        return None
    (usual, number), *rest = steps.most_common()
    if sum(count for _, count in rest) >= number:
        return None
    odd = [wait for wait in mine.values() if (wait.tag, wait.index) != usual]
    odd.sort(key=lambda wait: wait.source.place)
    first = odd[0]
    return Verdict(
        kind="conflict",
        roots=[wait.source for wait in odd],
        sentence=tr(
            "{who} waited in {odd}, the others in {usual}",
            who=_listed([wait.source for wait in odd]),
            odd=_step(first.tag, first.index),
            usual=_step(*usual),
        ),
        certainty=LIKELY,
        why=same_order(),
        text=first.text,
        time=first.time,
        next=[to_compare()],
    )


def _of_two(one: Wait, other: Wait) -> Verdict | None:
    """Two ranks that wait in different collectives, where the numbers say that these should be the same one."""
    if one.index is None or (one.index, one.group) != (other.index, other.group) or one.tag == other.tag:
        return None
    return Verdict(
        kind="conflict",
        roots=[one.source, other.source],
        sentence=tr(
            "{who} waited in {here}, and {other} in {there}",
            who=who(one.source),
            here=_step(one.tag, one.index),
            other=who(other.source),
            there=_step(other.tag, other.index),
        ),
        certainty=LIKELY,
        why=same_order(),
        text=one.text,
        time=one.time,
        next=[to_compare()],
    )


def apart(found: list[Wait], offsets: Offsets) -> Verdict | None:
    """All gave up in the same collective, but not at the same time: the last one came later than the first could wait.

    Their lines name nobody (CANN 8.5 and later); where they do, see `chains.late`.
    """
    mine = {id(wait.source): wait for wait in reversed(found) if wait.kind == "notify"}
    rows = [(offsets.common(wait.source, wait.time), wait) for wait in mine.values()]
    times = sorted((time or 0.0, wait.source.place, wait) for time, wait in rows if time is not None)
    same = len({(wait.tag, wait.group, wait.index) for wait in mine.values()}) == 1
    if len(times) < 2 or len(times) < len(mine) or not same or any(_is_known(wait) for wait in mine.values()):
        return None
    (begin, _, first), (end, _, last) = times[0], times[-1]
    if end - begin <= _SAME_MOMENT + offsets.tolerance:
        return None
    return Verdict(
        kind="late",
        roots=[last.source],
        sentence=tr(
            "{who} came {seconds} s later than {first} to {collective}; {first} had given up",
            who=who(last.source),
            collective=_step(last.tag, last.index),
            seconds=f"{end - begin:.0f}",
            first=who(first.source),
        ),
        certainty=LIKELY,
        why=both_waited(end - begin),
        text=last.text,
        time=last.time,
        next=[did_before(last.source), raise_limit()],
    )


def _is_known(wait: Wait) -> bool:
    return wait.target != Target(None, None, None, None)


def _step(tag: str, index: int | None) -> str:
    return one_line(tag) if index is None else tr("{collective} number {index}", collective=one_line(tag), index=index)


def _listed(processes: list[Process]) -> str:
    if len(processes) < 3:
        return tr(" and ").join(who(one) for one in processes)
    return named("rank", [one.rank for one in processes if one.rank is not None])
