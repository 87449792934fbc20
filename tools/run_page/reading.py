"""Reads the data of a run's page: launch.json, and the numbers in the logs of its ranks, of limited size."""

from __future__ import annotations

import math
import os
import re

from hccl_tools.common import documents, how_far
from hccl_tools.common.language import strerror, tr
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import Refusal
from hccl_tools.common.words import count, named, one_line, size_of
from tools.diagnosis import slow_ranks
from tools.diagnosis.run import logs_of, not_a_run
from tools.history import listing
from tools.launch import record
from tools.progress.counting import axis_of
from tools.progress.series import Reader, Series

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from tools.progress.counting import Place
    from tools.progress.lines import Pattern

MOST_LOGS = 2048  # of more ranks, so many are read
_MOST_OF_LOG = 16 << 20  # bytes
_MOST_OF_ALL = 192 << 20
_LEAST_OF_LOG = 64 << 10
_MOST_ATTEMPTS = 64


class Attempt(Record):
    """One start of all ranks; what launch.json does not state is None or empty."""

    logs: str  # the folder
    ended: str | None
    exit: int | None
    first_failure: str | None
    also_failed: tuple[str, ...]
    stopped_by: str | None
    lost_host: str | None
    members: dict[str, dict[str, Any]]
    asked: dict[str, Any] | None = None  # to save and to end
    progress: dict[str, Any] = {}  # how far it came, of a run with --max_restarts


class Rank(Record):
    """A rank of the plan."""

    rank: int
    device: int | None
    host: str | None
    log: str  # the name of its log in an attempt's folder


class Curve(Record):
    """A column of one rank: steps from the run's start, in order, and a value for each."""

    steps: list[int]
    values: list[float]


class RunData(Record):
    """All known facts of one run."""

    folder: str
    name: str
    launch: dict[str, Any]
    run: listing.Run
    attempts: list[Attempt]
    ranks: list[Rank]
    logs: dict[int, list[Series]]  # by rank: of each attempt whose log was read
    curves: dict[str, dict[int, Curve]]  # by field of tools/progress/series.py or by metric, then by rank
    metrics: list[str]  # which of these are measurements on held-out data
    notes: list[str]  # what the page does not show, and why
    patterns: Sequence[Pattern] = ()  # of the lines with numbers


def read(folder: str, patterns: list[Pattern]) -> RunData:
    """The run in the folder.  Raises Refusal if there is none."""
    folder = os.path.realpath(folder)
    if not os.path.isdir(folder):
        what = tr("is not a folder") if os.path.exists(folder) else tr("no such folder")
        raise not_a_run(folder, what)
    run = listing.read(folder, patterns)
    notes: list[str] = []
    try:
        launch = record.read(folder)
    except Refusal as refusal:
        launch = {}
        if not os.path.lexists(record.path(folder)) and not _logs_in(folder):
            raise not_a_run(folder, tr("has no launch.json")) from refusal
        notes.append(tr("The plan of the run is not known: {reason}", reason=refusal.lines[0]))
    attempts = _attempts(launch, folder)
    ranks = _ranks(launch) or _logs_in(attempts[-1].logs)
    logs = _read_logs(
        attempts,
        chosen_of(ranks, attempts, told=[row["rank"] for row in slow_ranks.of_run(launch)]),
        len(ranks),
        Reader(patterns),
        notes,
    )
    curves, metrics = _curves(logs)
    return RunData(
        folder=folder,
        name=one_line(os.path.basename(folder)),
        launch=launch,
        run=run,
        attempts=attempts,
        ranks=ranks,
        logs=logs,
        curves=curves,
        metrics=metrics,
        notes=notes,
        patterns=patterns,
    )


def _attempts(launch: dict[str, Any], folder: str) -> list[Attempt]:
    """Those that launch.json has; of a run without an outcome, those whose folders are there."""
    outcome = launch.get("outcome")
    if isinstance(outcome, dict):
        found = [*documents.objects(outcome, "attempts"), outcome]
        return [_attempt(one, folder) for one in found[-_MOST_ATTEMPTS:]]
    names = ["."]
    while len(names) < _MOST_ATTEMPTS and os.path.isdir(os.path.join(folder, f"restart_{len(names)}")):
        names.append(f"restart_{len(names)}")
    return [_attempt({"logs": name}, folder) for name in names]


def _attempt(said: dict[str, Any], folder: str) -> Attempt:
    members = documents.part(said, "members")
    return Attempt(
        logs=os.path.normpath(os.path.join(folder, logs_of(said))),
        ended=documents.text(said, "ended"),
        exit=documents.number(said, "exit"),
        first_failure=documents.text(said, "first_failure"),
        also_failed=tuple(str(name) for name in documents.entries(said, "also_failed")),
        stopped_by=documents.text(said, "stopped_by"),
        lost_host=documents.text(said, "lost_host"),
        progress=documents.part(said, "progress"),
        members={str(name): entry for name, entry in members.items() if isinstance(entry, dict)},
        asked=asked if isinstance(asked := said.get("asked"), dict) else None,
    )


def _ranks(launch: dict[str, Any]) -> list[Rank]:
    found = {}
    for entry in documents.objects(launch, "ranks"):
        rank = documents.number(entry, "rank")
        if rank is None or rank < 0:
            continue
        log = documents.text(entry, "log") or f"rank_{rank}.log"
        found[rank] = Rank(
            rank=rank,
            device=documents.number(entry, "device"),
            host=documents.text(entry, "host"),
            log=log if os.path.basename(log) == log else f"rank_{rank}.log",
        )
    return [found[rank] for rank in sorted(found)]


def _logs_in(folder: str) -> list[Rank]:
    """The ranks by the names of logs, where there is no plan."""
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    found = (re.fullmatch(r"rank_([0-9]{1,9})\.log", name) for name in names)
    whole = sorted(int(one[1]) for one in found if one)
    return [Rank(rank=rank, device=None, host=None, log=f"rank_{rank}.log") for rank in whole]


def _read_logs(
    attempts: list[Attempt], chosen: list[Rank], every: int, reader: Reader, notes: list[str]
) -> dict[int, list[Series]]:
    """The logs of the chosen ones of `every` ranks."""
    if len(chosen) < every:
        text = tr("Of {all} ranks, the logs of {some} were read.", all=every, some=len(chosen))
        notes.append(text)
    most = min(_MOST_OF_LOG, max(_LEAST_OF_LOG, _MOST_OF_ALL // max(1, len(chosen) * len(attempts))))
    paths = (os.path.join(attempt.logs, rank.log) for rank in chosen for attempt in attempts)
    whole = sum(min(most, how_far.bytes_of(path)) for path in paths)
    with how_far.doing(tr("reading the logs of {ranks}", ranks=count(len(chosen), "rank")), whole, in_bytes=True):
        return _read_chosen(attempts, chosen, reader, most, notes)


def _read_chosen(
    attempts: list[Attempt], chosen: list[Rank], reader: Reader, most: int, notes: list[str]
) -> dict[int, list[Series]]:
    found: dict[int, list[Series]] = {}
    missing, troubles = [], []
    for rank in chosen:
        for attempt in attempts:
            try:
                log = reader.read(os.path.join(attempt.logs, rank.log), most)
            except FileNotFoundError:
                continue
            except (OSError, ValueError) as error:  # ValueError: the name cannot be a file name
                troubles.append((rank.rank, one_line(strerror(error))))
            else:
                found.setdefault(rank.rank, []).append(log)
        if rank.rank not in found and not any(rank.rank == number for number, _ in troubles[-1:]):
            missing.append(rank.rank)
    _say(found, missing, troubles, notes)
    return found


def _say(found: dict[int, list[Series]], missing: list[int], troubles: list[tuple[int, str]], notes: list[str]) -> None:
    """What could not be read, or not wholly."""
    if missing:
        notes.append(tr("No log here: {ranks}; it may be on another host.", ranks=_named(missing)))
    for number, reason in troubles[:4]:
        notes.append(tr("The log of rank {rank} cannot be read: {reason}", rank=number, reason=reason))
    silent = [rank for rank, logs in found.items() if not any(log.columns or log.metrics for log in logs)]
    if silent:
        notes.append(tr("No line with a known number: {ranks}.", ranks=_named(silent)))
    every = [log for logs in found.values() for log in logs]
    cut = sum(log.read < log.size for log in every)
    if cut:
        text = tr(
            "Too large to read completely: {logs}. Of {size}, {read} were read: the beginnings, the ends and "
            "parts between them. The curves have gaps there.",
            logs=count(cut, "log"),
            size=size_of(sum(log.size for log in every)),
            read=size_of(sum(log.read for log in every)),
        )
        notes.append(text)


def _named(ranks: list[int]) -> str:
    text = named("rank", ranks)
    return text if len(text) <= 100 else text[:100] + "…"


def chosen_of(
    ranks: list[Rank], attempts: list[Attempt], most: int = MOST_LOGS, told: Iterable[int] = ()
) -> list[Rank]:
    """All of them, or of many: failed ranks, those that the launcher named, and others at regular distances."""
    if len(ranks) <= most:
        return ranks
    names = dict.fromkeys(attempt.first_failure for attempt in attempts)
    names.update(dict.fromkeys(name for attempt in attempts for name in attempt.also_failed))
    known = {str(rank.rank): rank for rank in ranks}
    matter = [known[name] for name in [*names, *map(str, told)] if name in known]
    first = list(dict.fromkeys([ranks[-1], *matter]))[: most // 2]
    stride = len(ranks) / (most - len(first))
    even = [ranks[int(number * stride)] for number in range(most - len(first))]
    return sorted({*first, *even}, key=lambda rank: rank.rank)


def _curves(logs: dict[int, list[Series]]) -> tuple[dict[str, dict[int, Curve]], list[str]]:
    """{field: {rank: Curve}}, and which fields are metrics.  The last attempt that had a step counts."""
    axis = axis_of(one.counted for each in logs.values() for one in each)
    curves: dict[str, dict[int, Curve]] = {}
    metrics: dict[str, None] = {}
    for rank, each in logs.items():
        points: dict[str, list[tuple[Place, float]]] = {}
        for one in each:
            for field, column in one.columns.items():
                pairs = [(place, value) for place, value in zip(one.places, column) if value is not None]
                points.setdefault(field, []).extend(pairs)
            for name, measured in one.metrics.items():
                metrics[name] = None
                points.setdefault(name, []).extend(measured.items())
        for field, found in points.items():
            ordered = found if len(each) == 1 else sorted(dict(found).items())
            steps = [axis.at(place) for place, _ in ordered]
            curves.setdefault(field, {})[rank] = Curve(steps=steps, values=[value for _, value in ordered])
    return curves, list(metrics)


def finite(values: list[float]) -> list[float]:
    """The values that are neither nan nor infinite."""
    return [value for value in values if math.isfinite(value)]
