"""Reads a run from launch.json: its ranks, the folder of the newest attempt's logs, and how it ended."""

from __future__ import annotations

import os
import re

from hccl_tools.common import documents, utc
from hccl_tools.common.language import tr
from hccl_tools.common.numbers import whole_number
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import Refusal
from tools.diagnosis import hang
from tools.diagnosis.run import STOPPED_BY_US, logs_of, not_a_run
from tools.history.listing import LOST, RUNNING
from tools.launch import record
from tools.launch.resume import runs
from tools.trainer import request_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ENDED = "ended"
_RESTART = re.compile(r"restart_(\d{1,6})")


class Place(Record):
    """Where a rank runs."""

    rank: int
    device: int | None
    host: str  # that of the launcher, where launch.json names none
    log: str  # path


class Job(Record):
    """A run, as it is now."""

    folder: str
    name: str  # of its folder
    script: str
    target: str | None
    host: str  # of the launcher
    started: float | None  # seconds since 1970
    seconds: float | None  # how long it took; None while it runs
    state: str  # RUNNING, ENDED or LOST
    exit: int | None
    attempt: int  # 0: the first
    places: tuple[Place, ...]
    ends: dict[int, int] = {}  # exit status of the ranks, once the run has ended
    failed: frozenset[int] = frozenset()  # the ranks that failed by themselves
    hung: str = ""  # the verdict, if a hang ended it
    asked: bool = False  # a signal or a time limit has asked the ranks to save and to end, and they still run

    @property
    def hosts(self) -> int:
        return len({place.host for place in self.places})


class Reader:
    """Reads a run repeatedly; launch.json only when it has changed."""

    def __init__(self, folder: str) -> None:
        """Raises Refusal if `folder` is not that of a run."""
        self.folder = os.path.realpath(folder)  # the link `latest` may move to another run
        if not os.path.lexists(record.path(self.folder)):
            what = tr("has no launch.json") if os.path.isdir(self.folder) else tr("no such folder")
            raise not_a_run(folder, what)
        self._stamp: tuple[int, int, int] | None = None
        self._document: dict[str, Any] = record.read(self.folder)

    def read(self) -> Job:
        """The job now.  Values that cannot be read for a moment stay as they were."""
        try:
            status = os.stat(record.path(self.folder))
            stamp = status.st_ino, status.st_size, status.st_mtime_ns
            if stamp != self._stamp:
                self._document, self._stamp = record.read(self.folder), stamp
        except (OSError, Refusal):
            self._stamp = None
        return job_of(self.folder, self._document)


def job_of(folder: str, document: dict[str, Any]) -> Job:
    """The Job of a launch.json; invalid parts are left out."""
    outcome, host = documents.part(document, "outcome"), documents.text(document, "host") or ""
    logs, attempt = _newest_logs(folder, outcome)
    ends, state = _ends(outcome), _state(folder, document, outcome)
    return Job(
        folder=folder,
        name=os.path.basename(folder),
        script=str(document.get("script") or "?"),
        target=documents.text(document, "device_target"),
        host=host,
        started=utc.seconds(document.get("started")),
        seconds=_between(document.get("started"), outcome.get("ended")),
        state=state,
        exit=documents.number(outcome, "exit"),
        attempt=attempt,
        places=tuple(_places(document, host, logs)),
        ends=ends,
        failed=frozenset(_failed(ends, outcome)),
        hung=hang.of_run(document, folder),
        asked=state == RUNNING and request_file.read(request_file.path(folder)) is True,
    )


def _state(folder: str, document: dict[str, Any], outcome: dict[str, Any]) -> str:
    if outcome:
        return ENDED
    elsewhere = document.get("host") != os.uname().nodename  # nobody here sees its launcher
    return RUNNING if elsewhere or runs.process_of(folder, document) is not None else LOST


def _newest_logs(folder: str, outcome: dict[str, Any]) -> tuple[str, int]:
    """(folder of the newest attempt's logs, its number)."""
    if outcome.get("logs"):
        return os.path.join(folder, logs_of(outcome)), len(documents.entries(outcome, "attempts"))
    try:
        found = [int(match[1]) for match in map(_RESTART.fullmatch, os.listdir(folder)) if match]
    except OSError:
        found = []
    newest = max(found, default=0)
    return (os.path.join(folder, f"restart_{newest}") if newest else folder), newest


def _places(document: dict[str, Any], host: str, logs: str) -> list[Place]:
    found = []
    for row in documents.objects(document, "ranks"):
        rank, log, there = documents.number(row, "rank"), documents.text(row, "log"), documents.text(row, "host")
        if rank is None or log is None or os.path.basename(log) != log:
            continue
        there = host if there is None else there
        found.append(Place(rank=rank, device=documents.number(row, "device"), host=there, log=os.path.join(logs, log)))
    return found


def _ends(outcome: dict[str, Any]) -> dict[int, int]:
    found = (
        (whole_number(name), documents.number(entry, "status"))
        for name, entry in documents.part(outcome, "members").items()
    )
    return {rank: status for rank, status in found if rank is not None and status is not None}


def _failed(ends: dict[int, int], outcome: dict[str, Any]) -> set[int]:
    """The launcher stops the other ranks after the first failure: theirs is none."""
    failed = {rank for rank, status in ends.items() if status and status not in STOPPED_BY_US}
    if outcome.get("stopped_by") and outcome.get("first_failure") is None:
        return set()  # what it ended, its signals may have ended otherwise than we ask
    first = str(outcome.get("first_failure"))
    return failed | {rank for rank in ends if str(rank) == first}


def _between(started: object, ended: object) -> float | None:
    first, last = utc.seconds(started), utc.seconds(ended)
    return None if first is None or last is None else max(0.0, last - first)


__all__ = ["ENDED", "LOST", "RUNNING", "Job", "Place", "Reader", "job_of"]
