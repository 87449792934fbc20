"""Observes a job repeatedly: what each rank does, and which ranks a person should look at."""

from __future__ import annotations

import math
import os
import statistics
from collections import deque

from hccl_tools.common.language import marked
from hccl_tools.common.record import Record
from tools.live import phase as phase_of
from tools.live.curve import Curve
from tools.live.job import ENDED, RUNNING, Reader
from tools.live.members import Clocks, Members, NpuMemory
from tools.progress import lines, phases, slowness
from tools.progress.ranks import Ranks
from tools.progress.tails import FIRST, Patterns, Tail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tools.live.curve import Point
    from tools.live.job import Job, Place
    from tools.live.phase import Phase
    from tools.progress.ranks import RankProgress
    from tools.progress.slowness import Pace

# The states of a rank, the worst one first; in English.
FAILED, HELD, NOT_FINITE, SLOW, SILENT, DRIFTS, NO_LOG, STARTS, TRAINS, OVER = (
    marked("failed"),
    marked("held"),
    marked("loss?"),
    marked("slow"),
    marked("silent"),
    marked("drifts"),
    marked("no log"),
    marked("starts"),
    marked("trains"),
    marked("ended"),
)
ORDER = (FAILED, HELD, NOT_FINITE, SLOW, SILENT, DRIFTS, NO_LOG, STARTS, TRAINS, OVER)
PROBLEMS = (FAILED, HELD, NOT_FINITE, SLOW, SILENT, DRIFTS)
SLOW_FROM = 1.25  # times the median, in the median of the last _PACES looks at which a rank had written
_PACES = 5
SILENT_FROM = 30.0  # seconds without a line, and three times as long as half of the ranks
_QUIET = 60.0  # seconds without a line, after which numbers are old if a quarter of the ranks goes on
_LOSSES = 10  # for a drift: so many at least
_RECENT = 10.0  # seconds without a line, after which a rank's losses are of other steps than those of the others


class Seen(Record):
    """A rank now."""

    place: Place
    progress: RankProgress
    state: str  # of ORDER
    pace: Pace | None  # how slow it is
    age: float | None  # seconds since its log grew, when it was last checked
    memory: int | None  # bytes, on this host
    npu_memory: int | None  # bytes, as npu-smi reports
    status: int | None = None  # its exit status, once the run has ended
    stale: bool = False  # its numbers are old, while those of others are not

    @property
    def rank(self) -> int:
        return self.place.rank


class View(Record):
    """A job now."""

    job: Job
    seconds: float | None  # since its start
    rows: list[Seen]  # the worst first
    date: float  # seconds since 1970
    lead: RankProgress | None  # the first rank that states where it is; if there is one, of those that still write
    lead_age: float | None  # seconds since it wrote
    plan: tuple[int, int] | None  # (steps of an epoch, epochs), where the lead's log states it before the first step
    phase: Phase | None  # None: no log states it
    points: Sequence[Point]  # the loss of `curve_of` since the beginning; empty unless it is drawn
    curve_of: int | None
    quiet: float | None  # seconds since any rank wrote
    lives: int  # ranks with a process on this host
    clocks: dict[str, float]  # {host: seconds that its clock is ahead of ours}, of those that differ

    @property
    def problems(self) -> list[Seen]:
        return [row for row in self.rows if row.state in PROBLEMS]


class Watcher:
    """Follows one job."""

    def __init__(self, reader: Reader) -> None:
        """Raises Refusal for a bad file of lines."""
        self._table = lines.load()
        self._reader, self._patterns = reader, Patterns(self._table)
        self._members, self._npus = Members(), NpuMemory()
        self._ranks = Ranks((), self._patterns)
        self._places: tuple[Place, ...] = ()
        self._paces: dict[int, deque[Pace]] = {}
        self._clocks = Clocks()
        self._looked: float | None = None  # the date of the last look at these ranks
        self._scheduler: Tail | None = None  # the log of MindSpore's scheduler
        self._scheduled: str | None = None  # the phase that it tells
        self._plans: dict[int, tuple[int, int] | None] = {}  # by rank
        self._curve: Curve | None = None
        self._draws = False

    def keep_curve(self) -> None:
        """Adds the loss since the beginning to each View from now on."""
        self._draws = True

    def look(self, now: float, date: float) -> View:
        """now: seconds of a monotonic clock; date: seconds since 1970."""
        job = self._reader.read()
        if job.places != self._places:  # another attempt, or ranks on other hosts
            self._begin(job)
        grown = self._ranks.look(now)
        self._compare_clocks(grown, date)
        self._keep_paces(grown)
        memory = self._members.look(job, now) if job.state == RUNNING else {}
        npus = self._npus.look(self._members.pids(), now) if job.target == "Ascend" else {}
        rows = list(self._rows(job, memory, npus, now))
        rows.sort(key=_order)
        ages = [row.age for row in rows if row.age is not None]
        lead = self._lead(rows)
        self._follow(lead, grown)
        return View(
            job=job,
            seconds=job.seconds if job.seconds is not None else _since(job.started, date),
            rows=rows,
            date=date,
            lead=lead,
            lead_age=None if lead is None or lead.grown is None else now - lead.grown,
            plan=self._plan(lead),
            phase=self._phase(job, memory, frozenset(row.rank for row in rows if row.stale), date),
            points=self._curve.points if self._curve else (),
            curve_of=self._curve.rank if self._curve else None,
            quiet=min(ages, default=None),
            lives=len(memory),
            clocks=dict(self._clocks.wrong),
        )

    def _begin(self, job: Job) -> None:
        self._places = job.places
        self._ranks = Ranks(((place.rank, place.log) for place in job.places), self._patterns)
        self._paces.clear()
        self._plans.clear()
        self._members.seen.clear()
        self._looked = self._curve = self._scheduled = self._scheduler = None
        if job.places:
            self._scheduler = Tail(os.path.join(os.path.dirname(job.places[0].log), "scheduler.log"))

    def _lead(self, rows: Iterable[Seen]) -> RankProgress | None:
        stale = {row.rank for row in rows if row.stale}
        known = [one for one in self._ranks.by_rank.values() if one.values]
        return next((one for one in known if one.rank not in stale), known[0] if known else None)

    def _follow(self, lead: RankProgress | None, grown: Iterable[RankProgress]) -> None:
        """The curve is of one rank, as long as that writes."""
        if not self._draws or lead is None:
            return
        if self._curve is None or self._curve.rank != lead.rank:
            self._curve = Curve(lead, self._table)
        elif any(one is lead for one in grown):
            self._curve.take(lead)

    def _plan(self, lead: RankProgress | None) -> tuple[int, int] | None:
        """Read once: it is in the beginning of a log."""
        if lead is None or lead.number("steps") or lead.number("epochs"):
            return None
        if lead.rank not in self._plans:
            self._plans[lead.rank] = phases.plan(lead.tail.beginning(FIRST))
        return self._plans[lead.rank]

    def _phase(self, job: Job, memory: Mapping[int, int], quiet: frozenset[int], date: float) -> Phase | None:
        if self._scheduler is not None and self._scheduler.look(self._patterns) is not None:
            self._scheduled = phases.after(self._scheduler.marks, self._scheduled)
        over = frozenset(self._members.seen - memory.keys()) if job.state == RUNNING else frozenset()
        ranks = list(self._ranks.by_rank.values())
        return phase_of.of(job, ranks, over, quiet, self._scheduled, date, self._clocks.wrong)

    def _compare_clocks(self, grown: Iterable[RankProgress], date: float) -> None:
        """By the logs that were written since the last look."""
        if self._looked is not None:
            hosts = {place.rank: place.host for place in self._places}
            for one in grown:
                self._clocks.take(hosts[one.rank], one.tail.written, self._looked, date)
        self._looked = date

    def _keep_paces(self, grown: Iterable[RankProgress]) -> None:
        host_of = {place.rank: place.host for place in self._places}
        found = slowness.paces(self._ranks.by_rank.values(), host_of)
        for one in grown:
            if one.rank in found:
                self._paces.setdefault(one.rank, deque(maxlen=_PACES)).append(found[one.rank])

    def _pace(self, rank: int) -> Pace | None:
        """The middle one of the last: one long step makes no rank slow."""
        kept = sorted(self._paces.get(rank, ()), key=lambda pace: pace.ratio)
        return kept[(len(kept) - 1) // 2] if kept else None

    def _rows(self, job: Job, memory: Mapping[int, int], npus: Mapping[int, int], now: float) -> Iterable[Seen]:
        ranks = self._ranks.by_rank
        ages = {rank: now - one.grown for rank, one in ranks.items() if one.grown is not None}
        ordered = sorted(ages.values())
        middle = statistics.median_low(ordered) if ages else 0.0
        others = ordered[len(ordered) // 4] if ages else 0.0  # half of the ranks may be quiet
        held = self._members.held() if memory else set()
        drifting = _drifting(one for rank, one in ranks.items() if ages.get(rank, 0.0) <= max(_RECENT, 3 * middle))
        for place in job.places:
            one, age, pace = ranks[place.rank], ages.get(place.rank), self._pace(place.rank)
            status = job.ends.get(place.rank)
            state = (FAILED if place.rank in job.failed else OVER) if job.state == ENDED else None
            if state is None and place.rank in self._members.seen and place.rank not in memory:
                state = OVER
            if state is None:
                silent = _is_old(age, middle)
                state = HELD if place.rank in held else _state(one, pace, silent, place.rank in drifting)
            yield Seen(
                place=place,
                progress=one,
                state=state,
                pace=pace,
                age=age,
                memory=memory.get(place.rank),
                npu_memory=npus.get(place.rank),
                status=status,
                stale=job.state == RUNNING and (state in (SILENT, OVER, HELD) or _is_quiet(age, middle, others)),
            )


def _is_old(age: float | None, middle: float) -> bool:
    """Whether a rank has written nothing for long, and for longer than others."""
    return age is not None and age >= max(SILENT_FROM, 3 * middle)


def _is_quiet(age: float | None, middle: float, others: float) -> bool:
    """Whether its numbers are no longer those of the job; others: the age of a quarter of the ranks."""
    return _is_old(age, middle) or (age is not None and age >= max(_QUIET, 5 * others))


def _state(one: RankProgress, pace: Pace | None, silent: bool, drifts: bool) -> str:
    loss = one.number("loss")
    if loss is not None and not math.isfinite(loss):
        return NOT_FINITE
    if silent:
        return SILENT
    if pace is not None and pace.is_slow(SLOW_FROM):
        return SLOW
    if drifts:
        return DRIFTS
    if not one.tail.there:
        return NO_LOG
    return TRAINS if one.values else STARTS


def _order(row: Seen) -> tuple[int, float, int]:
    worse = row.pace.ratio if row.state == SLOW and row.pace else row.age if row.state == SILENT and row.age else 0.0
    problem = ORDER.index(row.state) if row.state in PROBLEMS else len(PROBLEMS)
    return problem, -worse, row.rank


def _drifting(ranks: Iterable[RankProgress]) -> set[int]:
    """The ranks whose loss, on average of the last ones, is far from that of the others.

    Ranks have different samples, so their losses differ: far is six times the usual distance from the median, a fifth
    of the median, and more than its own losses usually differ from one another.
    """
    means, scatter = {}, {}
    for one in ranks:
        last = list(one.losses)[-2 * _LOSSES :]
        if len(last) >= _LOSSES and all(map(math.isfinite, last)):
            mean = sum(last) / len(last)  # may be infinite, where statistics.fmean would raise an error
            squares = sum((loss - mean) * (loss - mean) for loss in last)
            means[one.rank], scatter[one.rank] = mean, math.sqrt(squares / len(last))
    if len(means) < 3:
        return set()
    middle = statistics.median(means.values())
    usual = statistics.median(abs(mean - middle) for mean in means.values())
    limit = max(6 * usual, abs(middle) / 5)
    return {rank for rank, mean in means.items() if abs(mean - middle) > max(limit, scatter[rank])}


def _since(started: float | None, date: float) -> float | None:
    return None if started is None else max(0.0, date - started)  # the date may have been set back
