"""Finds ranks that are behind, or in a different collective, from messages of PyTorch and Horovod."""

from __future__ import annotations

import re
from collections import Counter

from hccl_tools.common.language import tr
from hccl_tools.common.record import Record
from hccl_tools.common.words import named, one_line
from tools.diagnosis import collectives
from tools.diagnosis.processes import Job, Process
from tools.diagnosis.verdict import GUESS, LIKELY, Verdict, look_at, who
from tools.diagnosis.waits import Target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from tools.logs.events import Event

_LAST = 200  # lines at the end of a log: a warning before them may be over
_MOST_RANKS = 1 << 20  # no job has more
_MOST = 100  # such warnings: the search may have left out those after them
_PARTS = re.compile(r"SequenceNumber=\d+|OpType=\w+|TensorShape=\[[^\]]*\]")
_GUID = re.compile(r"GUID (\S+)")
# Of these all ranks give the same size.
_EQUAL = re.compile(r"ALLREDUCE|BROADCAST|REDUCE|_?ALLGATHER(?:_BASE)?|_?REDUCE_SCATTER(?:_BASE)?")
_NOT_OF_ALL = re.compile(r"SEND|RECV|COALESCED")


class _Stop(Record):
    """The collective in which a rank's time was over."""

    rank: int
    number: int | None
    what: tuple[str, str]  # its kind, and its size where that must be the same
    event: Event


def mismatch(job: Job) -> Verdict | None:
    """PyTorch compared what ranks want to do, and it differs."""
    said: dict[int, str] = {}
    first: Event | None = None
    for _, event in _events(job, "mismatch"):
        first = first or event
        said[int(event.values["own"])] = _print(event.values.get("local", ""))
        if "rank" in event.values:
            said[int(event.values["rank"])] = _print(event.values.get("remote", ""))
    if first is None:
        return None
    odd = _odd(said)
    shown = [f"{tr('rank {rank}', rank=rank)}: {_short(said[rank])}" for rank in [*odd, *sorted(set(said) - set(odd))]]
    sentence = tr("{ranks} run different collectives than others", ranks=named("rank", odd))
    if len(odd) == len(said) > 1:
        sentence = tr("the collectives of {ranks} differ", ranks=named("rank", odd))
    return _different(job, odd, sentence, tr("PyTorch compared them"), first, shown[:4])


def watchdogs(job: Job) -> Verdict | None:
    """The time of ranks was over, but not in the same collective."""
    stops: dict[str, dict[int, _Stop]] = {}
    queued: dict[str, dict[int, int]] = {}
    groups: dict[int, str] = {}
    for process, event in _events(job, "queued"):
        group, rank = _group(event), _rank(process, event)
        groups.setdefault(rank, group)
        numbers = queued.setdefault(group, {})
        numbers[rank] = max(numbers.get(rank, 0), int(event.values["queued"]))
    for process, event in _events(job, "watchdog"):
        rank, said = _rank(process, event), event.values
        if _NOT_OF_ALL.search(said["op"]):
            continue
        size = said.get("size", "") if _EQUAL.fullmatch(said["op"]) else ""
        number = int(said["seq"]) if "seq" in said else None
        stop = _Stop(rank=rank, number=number, what=(said["op"], size), event=event)
        stops.setdefault(_group(event) or groups.get(rank, ""), {}).setdefault(rank, stop)
    if len(stops) == 2 and "" in stops:  # some lines tell no group, and there is one only
        name = next(filter(None, stops))
        stops = {name: {**stops[""], **stops[name]}}
    for group, mine in stops.items():
        found = _behind(job, mine, queued.get(group, {})) or _apart(job, mine, bool(group))
        of_all = not group or "default_pg" in group
        found = found or (_did_not_wait(job, mine) if of_all else None)
        if found:
            return found
    return None


def _behind(job: Job, mine: dict[int, _Stop], queued: dict[int, int]) -> Verdict | None:
    """Ranks that had not asked for the collective in which the others waited."""
    wanted = max((stop.number for stop in mine.values() if stop.number is not None), default=0)
    late = sorted(rank for rank, number in queued.items() if number < wanted)
    if not late or len(late) >= len(mine):
        return None
    stop = next(stop for stop in mine.values() if stop.number == wanted)
    sentence = tr(
        "{ranks} never reached collective {number} ({kind}) of PyTorch; the last one that they submitted was {last}",
        ranks=named("rank", late),
        number=wanted,
        kind=one_line(stop.what[0]),
        last=queued[late[0]],
    )
    return _different(job, late, sentence, tr("PyTorch counts the collectives of each rank"), stop.event)


def _apart(job: Job, mine: dict[int, _Stop], known: bool) -> Verdict | None:
    """Ranks in another collective than most, or in another number of it; known: they are of one communicator."""
    odd = _odd({rank: f"{stop.number} {stop.what}" for rank, stop in mine.items()})
    if not odd or len(mine) < 2:
        return None
    some = mine[odd[0]]
    others = [stop for rank, stop in mine.items() if rank not in odd] or [mine[odd[-1]]]
    sentence = tr(
        "{ranks} waited in {odd}, the others in {usual}",
        ranks=named("rank", odd),
        odd=_name(some),
        usual=_name(others[0]),
    )
    if len(odd) == len(mine):
        sentence = tr("the collectives of {ranks} differ", ranks=named("rank", odd))
    same = some.number == others[0].number and some.what[0] == others[0].what[0] and some.number is not None
    shown = [f"{tr('rank {rank}', rank=stop.rank)}: {_name(stop)}" for stop in [some, others[0]]]
    certainty = LIKELY if same or (known and len(odd) < len(mine)) else GUESS
    return _different(job, odd, sentence, collectives.same_order(), some.event, shown).replace(certainty=certainty)


def _did_not_wait(job: Job, mine: dict[int, _Stop]) -> Verdict | None:
    """Few ranks of one file for all that did not wait in the collective in which all others did."""
    everyone = range(min(job.ranks or max(mine) + 1, _MOST_RANKS))
    others = [rank for rank in everyone if rank not in mine]
    if not 0 < len(others) <= len(mine) // 3 or any(rank in job.by_rank for rank in others):
        return None  # a rank with a log of its own: see chains.silent
    stop = mine[min(mine)]
    sentence = tr(
        "{ranks} waited in {usual} until the time was over, and {others} did not",
        ranks=named("rank", sorted(mine)),
        usual=_name(stop),
        others=named("rank", others),
    )
    why = tr("the others have no such line: they stopped, or worked alone (data, evaluating, saving) for too long")
    return _missing(job, others, sentence, why, stop.event).replace(certainty=GUESS)


def absent(job: Job) -> Verdict | None:
    """Ranks that did not pass PyTorch's barrier, as rank 0 states."""
    found = [event for _, event in _events(job, "absent")]
    if not found:
        return None
    ranks = sorted({number for event in found for number in _numbers(event.values["missing"])})
    sentence = tr("{ranks} did not reach the barrier in time", ranks=named("rank", ranks))
    return _missing(job, ranks, sentence, tr("rank 0 waited there for each rank"), found[0])


def stalled(job: Job) -> Verdict | None:
    """Ranks that others still waited for in Horovod when the log ended."""
    ranks: dict[int, None] = {}
    first: Event | None = None
    for process in [*job.processes, *job.witnesses]:
        for one in process.findings:
            rows = [event for event in one.events if event.kind == "stalled"]
            if rows and (rows[-1].row > one.rows - _LAST or len(rows) > _MOST):
                first = first or rows[-1]
                ranks.update((number, None) for number in _numbers(rows[-1].values["missing"]))
                near = [event for event in rows if event.row > rows[-1].row - _LAST]
                ranks.update((number, None) for event in near for number in _numbers(event.values["missing"]))
    if first is None or not ranks:
        return None
    sentence = tr("{ranks} did not submit what the others wait for in Horovod", ranks=named("rank", ranks))
    return _missing(job, sorted(ranks), sentence, tr("Horovod lists the ranks that it waits for"), first)


# --- parts ------------------------------------------------------------------------------------------------------------


def _events(job: Job, kind: str) -> Iterator[tuple[Process, Event]]:
    for process in [*job.processes, *job.witnesses]:
        yield from ((process, event) for event in process.events if event.kind == kind)


def _odd(said: dict[int, str]) -> list[int]:
    """The ranks that state something else than most; all, where no more than half say the same; none, if all do."""
    counts = Counter(said.values())
    if not said or (len(counts) < 2 and len(said) > 1):
        return []
    usual, number = counts.most_common(1)[0]
    most = number * 2 > len(said) and len(said) > 2
    return sorted(rank for rank, text in said.items() if not most or text != usual)


def _rank(process: Process, event: Event) -> int:
    """PyTorch's number is that in the group: what is known of the process comes first."""
    return process.rank if process.rank is not None else int(event.values["own"])


def _group(event: Event) -> str:
    group = event.values.get("group", "")
    found = _GUID.search(group)
    return found[1] if found else group


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def _print(text: str) -> str:
    """What PyTorch compares, without the sentence behind it."""
    return text.partition("Collectives differ in")[0].strip(" .")


def _short(text: str) -> str:
    return one_line(", ".join(_PARTS.findall(text)) or text[:200])


def _name(stop: _Stop) -> str:
    kind, size = stop.what
    name = one_line(kind) if not size else tr("{kind} of {size} elements", kind=one_line(kind), size=one_line(size))
    return name if stop.number is None else tr("{collective} number {index}", collective=name, index=stop.number)


def _of_number(job: Job, rank: int) -> Process | Target:
    return job.by_rank.get(rank) or Target(None, rank, None, None)


def _different(
    job: Job, ranks: list[int], sentence: str, why: str, event: Event, shown: list[str] | None = None
) -> Verdict:
    return Verdict(
        kind="conflict",
        roots=[_of_number(job, rank) for rank in ranks],
        sentence=sentence,
        chain=shown or [],
        certainty=LIKELY,
        why=why,
        text=event.text,
        time=event.time,
        next=[collectives.to_compare()],
    )


def _missing(job: Job, ranks: list[int], sentence: str, why: str, event: Event) -> Verdict:
    roots = [_of_number(job, rank) for rank in ranks]
    told = look_at(roots[0])[:1]
    if not isinstance(roots[0], Process) or not roots[0].findings:
        told = [tr("whether {who} still runs, and its log", who=who(roots[0]))]
    return Verdict(
        kind="missing",
        roots=list(roots),
        sentence=sentence,
        certainty=LIKELY,
        why=why,
        text=event.text,
        time=event.time,
        next=told,
    )
