"""A run as launch.json has it: its ranks, the folder of the newest attempt's logs, and how it ended."""

from __future__ import annotations

import calendar
import os
import re
import time

from hccl_tools.common.language import tr
from hccl_tools.common.numbers import whole_number
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import Refusal
from tools.diagnosis import hang
from tools.diagnosis.run import STOPPED_BY_US, logs_of, not_a_run
from tools.history.listing import LOST, RUNNING
from tools.launch import record
from tools.launch.resume import runs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ENDED = "ended"
_TIME = "%Y-%m-%dT%H:%M:%SZ"
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

    @property
    def hosts(self) -> int:
        return len({place.host for place in self.places})


class Reader:
    """Reads a run again and again; launch.json only when it has changed."""

    def __init__(self, folder: str) -> None:
        """Raises Refusal if `folder` is not that of a run."""
        self.folder = os.path.realpath(folder)  # the link `latest` may move to another run
        if not os.path.lexists(record.path(self.folder)):
            what = tr("has no launch.json") if os.path.isdir(self.folder) else tr("no such folder")
            raise not_a_run(folder, what)
        self._stamp: tuple[int, int, int] | None = None
        self._document: dict[str, Any] = record.read(self.folder)

    def read(self) -> Job:
        """The job now.  What cannot be read for a moment, is as it was."""
        try:
            status = os.stat(record.path(self.folder))
            stamp = status.st_ino, status.st_size, status.st_mtime_ns
            if stamp != self._stamp:
                self._document, self._stamp = record.read(self.folder), stamp
        except (OSError, Refusal):
            self._stamp = None
        return job_of(self.folder, self._document)


def job_of(folder: str, document: dict[str, Any]) -> Job:
    """The Job of a launch.json; what is not as it should be in it, is left out."""
    outcome = document.get("outcome")
    outcome = outcome if isinstance(outcome, dict) else {}
    host = document.get("host")
    host = host if isinstance(host, str) else ""
    logs, attempt = _newest_logs(folder, outcome)
    ends = _ends(outcome)
    return Job(
        folder=folder,
        name=os.path.basename(folder),
        script=str(document.get("script") or "?"),
        target=document.get("device_target") if isinstance(document.get("device_target"), str) else None,
        host=host,
        started=_moment(document.get("started")),
        seconds=_between(document.get("started"), outcome.get("ended")),
        state=_state(folder, document, outcome),
        exit=outcome.get("exit") if isinstance(outcome.get("exit"), int) else None,
        attempt=attempt,
        places=tuple(_places(document.get("ranks"), host, logs)),
        ends=ends,
        failed=frozenset(_failed(ends, outcome)),
        hung=hang.of_run(document, folder),
    )


def _state(folder: str, document: dict[str, Any], outcome: dict[str, Any]) -> str:
    if outcome:
        return ENDED
    elsewhere = document.get("host") != os.uname().nodename  # nobody here sees its launcher
    return RUNNING if elsewhere or runs.process_of(folder, document) is not None else LOST


def _newest_logs(folder: str, outcome: dict[str, Any]) -> tuple[str, int]:
    """(folder of the newest attempt's logs, its number)."""
    if outcome.get("logs"):
        attempts = outcome.get("attempts")
        return os.path.join(folder, logs_of(outcome)), len(attempts) if isinstance(attempts, list) else 0
    try:
        found = [int(match[1]) for match in map(_RESTART.fullmatch, os.listdir(folder)) if match]
    except OSError:
        found = []
    newest = max(found, default=0)
    return (os.path.join(folder, f"restart_{newest}") if newest else folder), newest


def _places(ranks: object, host: str, logs: str) -> list[Place]:
    found = []
    for row in ranks if isinstance(ranks, list) else ():
        rank, log = (row.get("rank"), row.get("log")) if isinstance(row, dict) else (None, None)
        if type(rank) is not int or not isinstance(log, str) or os.path.basename(log) != log:
            continue
        device, there = row.get("device"), row.get("host")
        found.append(
            Place(
                rank=rank,
                device=device if isinstance(device, int) else None,
                host=there if isinstance(there, str) else host,
                log=os.path.join(logs, log),
            )
        )
    return found


def _ends(outcome: dict[str, Any]) -> dict[int, int]:
    members = outcome.get("members")
    entries = members.items() if isinstance(members, dict) else ()
    statuses = [(name, entry.get("status")) for name, entry in entries if isinstance(entry, dict)]
    numbers = ((whole_number(name), status) for name, status in statuses)
    return {rank: status for rank, status in numbers if rank is not None and isinstance(status, int)}


def _failed(ends: dict[int, int], outcome: dict[str, Any]) -> set[int]:
    """The launcher stops the other ranks after the first failure: theirs is none."""
    failed = {rank for rank, status in ends.items() if status and status not in STOPPED_BY_US}
    if outcome.get("stopped_by") and outcome.get("first_failure") is None:
        return set()  # what it ended, its signals may have ended otherwise than we ask
    first = str(outcome.get("first_failure"))
    return failed | {rank for rank in ends if str(rank) == first}


def _moment(text: object) -> float | None:
    try:
        return float(calendar.timegm(time.strptime(str(text), _TIME)))
    except ValueError:
        return None


def _between(started: object, ended: object) -> float | None:
    first, last = _moment(started), _moment(ended)
    return None if first is None or last is None else max(0.0, last - first)


__all__ = ["ENDED", "LOST", "RUNNING", "Job", "Place", "Reader", "job_of"]
