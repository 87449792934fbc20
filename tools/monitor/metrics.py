"""The known state of a job at one moment, as metrics with names, types and labels."""

from __future__ import annotations

import math
import statistics

from hccl_tools.common.record import Record, Row
from tools.progress.ranks import RankProgress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tools.progress.slowness import Pace

    Labels = dict[str, str]
    Samples = list[tuple[Labels, float]]

PREFIX = "mindspore_launch_"
MOST_RANKS = 1024  # with more, no rank has metrics of its own but the slowest
SLOWEST = 16


class Family(Row):
    """A metric, as Prometheus calls it, with all its values."""

    name: str  # without PREFIX
    kind: str  # gauge or counter
    help: str
    samples: Samples


class Failure(Row):
    """The last failure of a member of the job."""

    member: str  # a rank's number, or scheduler, mpirun and the like
    host: str
    status: int
    attempt: int  # 0 is the first


class Facts(Record):
    """All known facts at one moment.  Times of day are seconds since 1970."""

    run: str
    script: str
    host: str
    device_target: str
    started: float | None
    now: float  # time of the day
    clock: float  # the same moment, as RankProgress.grown has it
    restarts: int
    failure: Failure | None
    ended: tuple[float, int] | None  # when, and with which exit code
    places: Mapping[int, tuple[str, str]]  # rank: its device and host
    ranks: Mapping[int, RankProgress]
    runs: Mapping[int, bool]  # whether a rank has a process; not of ranks whose host cannot be seen
    paces: Mapping[int, Pace]
    stragglers: int


def families(facts: Facts) -> list[Family]:
    """The metrics of the job, of all its ranks together, and of each rank."""
    return [*_of_job(facts), *_of_all(facts), *_of_ranks(facts)]


def _of_job(facts: Facts) -> list[Family]:
    job = {"run": facts.run}
    failure, ended = facts.failure, facts.ended
    numbers = sum(bool(one.values) for one in facts.ranks.values())
    found: list[tuple[str, str, str, Labels, float | None]] = [
        (
            *("info", "gauge", "The job, always 1."),
            {**job, "script": facts.script, "host": facts.host, "device_target": facts.device_target},
            1,
        ),
        ("written_seconds", "gauge", "When these metrics were written, since 1970.", job, facts.now),
        ("start_time_seconds", "gauge", "When the job began, since 1970.", job, facts.started),
        ("end_time_seconds", "gauge", "When the job ended, since 1970.", job, ended[0] if ended else None),
        ("running", "gauge", "1 until the job has ended.", job, 0 if ended else 1),
        ("exit_code", "gauge", "Exit code of the launcher, once the job has ended.", job, ended[1] if ended else None),
        ("restarts_total", "counter", "How often all ranks were started again.", job, facts.restarts),
        ("ranks_expected", "gauge", "Ranks of the job that this launcher starts.", job, len(facts.places)),
        ("ranks_up", "gauge", "Ranks whose process runs on this host.", job, sum(facts.runs.values())),
        (
            *("ranks_unseen", "gauge", "Ranks on other hosts: whether they run cannot be seen here."),
            *(job, len(facts.places) - len(facts.runs)),
        ),
        ("ranks_with_numbers", "gauge", "Ranks whose log on this host has numbers.", job, numbers),
        ("stragglers", "gauge", "Ranks that --straggler has named so far.", job, facts.stragglers),
        (
            *("last_failure_info", "gauge", "The last failure of a rank, always 1."),
            {
                **job,
                **{"rank": failure.member, "host": failure.host, "exit_code": str(failure.status)},
                "attempt": str(failure.attempt),
            }
            if failure
            else {},
            1 if failure else None,
        ),
    ]
    present = ((name, kind, text, labels, value) for name, kind, text, labels, value in found if value is not None)
    return [Family(name, kind, text, [(labels, value)]) for name, kind, text, labels, value in present]


def _seconds(value: float | None) -> float | None:
    return None if value is None else value / 1e3


def _silence(facts: Facts, one: RankProgress) -> float | None:
    elsewhere = one.rank not in facts.runs and not one.values  # its log here is a line that states where the log is
    return None if one.grown is None or elsewhere else max(0.0, facts.clock - one.grown)


def _runs(facts: Facts, one: RankProgress) -> float | None:
    runs = facts.runs.get(one.rank)
    return None if runs is None else int(runs)


def _slowness(facts: Facts, one: RankProgress) -> float | None:
    pace = facts.paces.get(one.rank)
    return pace.ratio if pace else None


_PER_RANK: tuple[tuple[str, str, Callable[[Facts, RankProgress], float | None]], ...] = (
    ("up", "1: its process runs on this host.", _runs),
    ("epoch", "Epoch, from 1.", lambda _, one: one.epoch),
    ("step", "Step of the epoch, from 1.", lambda _, one: one.step),
    ("loss", "Loss.", lambda _, one: one.number("loss")),
    ("step_seconds", "Time of a step.", lambda _, one: _seconds(one.step_ms)),
    (
        *("before_collective_seconds", "Time of a step before the rank waits for the others."),
        lambda _, one: _seconds(one.before_ms),
    ),
    ("data_seconds", "Time of a step that it waits for data.", lambda _, one: _seconds(one.data_ms)),
    ("samples_per_second", "Samples a second.", lambda _, one: one.number("samples_per_s")),
    ("silence_seconds", "Time since its log has grown.", _silence),
    ("slowness_ratio", "How many times as long as the median rank it takes.", _slowness),
)
_TOGETHER = ("step", "loss", "step_seconds", "data_seconds", "samples_per_second", "silence_seconds")
_STATISTICS = (("min", min), ("median", statistics.median), ("max", max))


def _of_all(facts: Facts) -> list[Family]:
    """Least, median and greatest of what all ranks have, of those numbers that are finite."""
    found = []
    for name, text, value_of in _PER_RANK:
        if name not in _TOGETHER:
            continue
        values = [value for one in facts.ranks.values() if (value := value_of(facts, one)) is not None]
        finite = [value for value in values if math.isfinite(value)]
        samples = [({"run": facts.run, "stat": stat}, measure(finite)) for stat, measure in _STATISTICS if finite]
        if samples:
            found.append(Family(f"ranks_{name}", "gauge", f"{text}  Least, median, greatest of all ranks.", samples))
        if name == "loss" and values:
            count = len(values) - len(finite)
            text = "Ranks whose loss is NaN or infinite."
            found.append(Family("ranks_loss_not_finite", "gauge", text, [({"run": facts.run}, count)]))
    return found


def _of_ranks(facts: Facts) -> list[Family]:
    chosen = list(facts.ranks.values())
    note = ""
    if len(chosen) > MOST_RANKS:
        slowest = sorted(facts.paces, key=lambda rank: (-facts.paces[rank].ratio, rank))[:SLOWEST]
        chosen = [facts.ranks[rank] for rank in sorted(slowest)]
        note = f"  Only of the {SLOWEST} slowest ranks: the job has more than {MOST_RANKS}."
    labels = {one.rank: _labels(facts, one.rank) for one in chosen}
    found = []
    for name, text, value_of in _PER_RANK:
        samples = [(labels[one.rank], value) for one in chosen if (value := value_of(facts, one)) is not None]
        if samples:
            found.append(Family(f"rank_{name}", "gauge", text + note, samples))
    return found


def _labels(facts: Facts, rank: int) -> Labels:
    device, host = facts.places[rank]
    return {"run": facts.run, "rank": str(rank), "host": host, "device": device}
