"""Starts a trial's jobs with the project's own scripts, one after the other, and reads how each has ended."""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import subprocess
import sys
from collections import Counter

from hccl_tools.common import documents
from hccl_tools.common.language import tr
from hccl_tools.common.record import Row
from hccl_tools.common.refusal import REFUSED, Refusal
from hccl_tools.common.words import named, one_line, short, short_path
from hccl_tools.machine import programs
from tools.preflight.trial.judge import PAIR, Figure
from tools.preflight.trial.search import Outcome
from tools.preflight.trial.setting import HERE, command, seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from tools.preflight.trial.setting import Setting

MEASURES = frozenset(
    ["join", "allreduce_1k", "allreduce_1m", "allreduce_16m", "pair_0", "pair_1", "pair_2", "matmul", "read", "end"]
)
_MOST_BYTES = 64 << 20  # of a file
_LONGEST = 1000  # characters of a line
_MOST_DEVICES = 1 << 16
_AFTER = 60  # seconds more until a launcher that does not end is stopped
_LATE = 124  # the exit code of a launch at the end of its time
_OF_OTHERS = ("MSLAUNCH_OPTIONS", "RANK_TABLE_FILE")  # what a user's own launches take; a trial is on other hosts
_REFUSED = (2, REFUSED)  # a launch has started nothing


class Jobs:
    """Runs the jobs; `run` is what search.find takes."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self.started = 0

    def run(self, hosts: Sequence[str]) -> Outcome:
        """Runs one job on these hosts.  Raises Refusal if nothing could be started."""
        self.started += 1
        folder = os.path.join(self._setting.folder, f"job_{self.started}")
        os.makedirs(folder, exist_ok=True)
        ranks = sum(self._setting.slots[host] for host in hosts)
        status = wait(command(self._setting, hosts, folder), folder, seconds(ranks) + _AFTER)
        return self._outcome(hosts, folder, ranks, status)

    def _outcome(self, hosts: Sequence[str], folder: str, ranks: int, status: int) -> Outcome:
        record = _record(os.path.join(folder, "latest", "launch.json"))
        places = _places(record, hosts, self._setting)
        if len(places) != ranks and status in _REFUSED:
            said = _told(folder)
            if self.started == 1:
                raise Refusal(REFUSED, *said)
            return self._failed(folder, said[-1], (), ())  # a host has changed since the first job
        told = lines_of(_texts(folder), self._setting.number, ranks)
        figures = _figures(told, places)
        if status == 0:
            missing = sorted(set(range(ranks)) - {line.rank for line in told if line.measure == "end"})
            if not missing:
                return Outcome(passed=True, figures=figures)
            why = tr("{ranks} ended without all measures", ranks=named("rank", missing))
            return self._failed(folder, why, [places.get(rank, "") for rank in missing], figures)
        why, guilty = _why(record, told, ranks, status)
        return self._failed(folder, why, [places.get(rank, "") for rank in guilty], figures)

    def _failed(self, folder: str, why: str, suspects: Sequence[str], figures: Sequence[Figure]) -> Outcome:
        hosts = list(filter(None, dict.fromkeys(suspects)))
        return Outcome(passed=False, why=why, suspects=hosts, log=short_path(folder), figures=figures)


def environment() -> dict[str, str]:
    """The environment of a launch in /: ours, without the user's settings for launches of another size."""
    kept = {name: value for name, value in os.environ.items() if name not in _OF_OTHERS}
    if "PYTHONPATH" in kept:
        kept["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, kept["PYTHONPATH"].split(os.pathsep)))
    return {**kept, "PYTHON": sys.executable, "LAUNCH_LOG_ENDS": "yes"}  # the measures of hosts without our folder


def wait(words: Sequence[str], folder: str, limit: float) -> int:
    """The exit code of a launch, which is ended when we end; 124: it had not ended in time."""
    import ctypes  # noqa: F401 - before the child starts, which needs it at once

    with contextlib.ExitStack() as files:
        stdout, stderr = (
            files.enter_context(open(os.path.join(folder, name), "wb")) for name in ("stdout.txt", "stderr.txt")
        )
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            env=environment(),
            cwd="/",  # ranks run where the launch does, and the user's folder need not be on each host
            preexec_fn=programs.end_with_parent,  # whatever ends us; its guardian then ends the ranks
        )
        try:
            return process.wait(limit)
        except subprocess.TimeoutExpired:
            return _LATE
        finally:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Lets a launcher stop its ranks; if it is killed, its guardian does that."""
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(_AFTER)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _record(path: str) -> Mapping[str, Any]:
    """launch.json; empty if there is none yet."""
    try:
        found = documents.read_json(path)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _places(record: Mapping[str, Any], hosts: Sequence[str], setting: Setting) -> dict[int, str]:
    """{rank: its host, as the check calls it}."""
    names = {login.rpartition("@")[2]: host for host, login in setting.logins.items() if host in hosts}
    found = {}
    for each in documents.objects(record, "ranks"):
        if isinstance(each.get("rank"), int):
            name = str(each.get("host", hosts[0])).rpartition("@")[2]
            found[each["rank"]] = hosts[0] if setting.starter == HERE else names.get(name, name)
    return found


def _texts(folder: str) -> list[str]:
    """The files in which measures may be: what the launch showed, and the logs of ranks that are on this host."""
    run = os.path.join(folder, "latest")
    logs = (
        sorted(name for name in os.listdir(run) if name.startswith("rank_") and name.endswith(".log"))
        if (os.path.isdir(run))
        else []
    )
    return [os.path.join(folder, "stdout.txt"), *(os.path.join(run, name) for name in logs)]


def _figures(told: Sequence[Line], places: Mapping[int, str]) -> list[Figure]:
    """The measures with the names of hosts: the hosts of a job have numbers in the order of their ranks."""
    order = list(dict.fromkeys(places[rank] for rank in sorted(places)))
    found = []
    for line in told:
        host = places.get(line.rank)
        if host is not None and line.measure != "end":
            in_order = line.measure.startswith(PAIR) and line.peer is not None and line.peer < len(order)
            peer = order[line.peer] if in_order and line.peer is not None else ""
            found.append(Figure(line.rank, host, line.device, line.measure, line.seconds, peer))
    return found


def _why(record: Mapping[str, Any], told: Sequence[Line], ranks: int, status: int) -> tuple[str, list[int]]:
    """(what was seen, the ranks at which the job's own end points)."""
    if status == _LATE:
        done = Counter(line.rank for line in told)
        least = min(done.get(rank, 0) for rank in range(ranks))
        behind = [rank for rank in range(ranks) if done.get(rank, 0) == least]
        text = tr("it did not end in {seconds} s", seconds=seconds(ranks))
        if len(behind) == ranks:
            return text, []
        last = [line.measure for line in told if line.rank == behind[0]][-1:]
        where = tr("after {measure}", measure=last[0]) if last else tr("before the ranks had joined")
        return tr("{text}; {ranks} stopped {where}", text=text, ranks=named("rank", behind), where=where), behind
    outcome = documents.part(record, "outcome")
    first = str(outcome.get("first_failure"))
    if not first.isdigit() or int(first) >= ranks:
        return tr("the launch ended with exit code {status}", status=status), []
    code = documents.part(documents.part(outcome, "members"), first).get("status", status)
    raised = documents.part(documents.part(outcome, "diagnosis"), "exception")
    text = tr("rank {rank} ended with exit code {status}", rank=first, status=short(code))
    if raised.get("type"):
        text += f": {short(raised['type'])}: {short(raised.get('message', ''), 120)}"
    return text, [int(first)]


def _told(folder: str) -> list[str]:
    """What a launch that has started nothing said."""
    with open(os.path.join(folder, "stderr.txt"), "rb") as file:
        text = file.read(1 << 16).decode("utf-8", "replace")
    lines = [one_line(line) for line in text.splitlines() if line.strip()]
    return (
        [tr("the trial cannot start:"), *lines]
        if lines
        else [tr("the trial cannot start, and its launch printed nothing")]
    )


# ---- The lines of a trial's ranks: only those with the trial's number, of the right form, are taken.


class Line(Row):
    """One measure of a rank."""

    rank: int
    device: int
    measure: str
    seconds: float
    peer: int | None = None


def lines_of(paths: Iterable[str], number: str, ranks: int) -> list[Line]:
    """The measures in the files, each measure of a rank once."""
    found: dict[tuple[int, str], Line] = {}
    for path in paths:
        for text in _texts_of(path):
            line = take(text, number, ranks)
            if line:
                found.setdefault((line.rank, line.measure), line)
    return list(found.values())


def _texts_of(path: str) -> Iterator[str]:
    try:
        with open(path, "rb") as file:
            data = file.read(_MOST_BYTES)
    except OSError:  # a rank that has started nothing has no log
        return
    yield from data.decode("utf-8", "replace").splitlines()


def take(text: str, number: str, ranks: int) -> Line | None:
    """The measure in a line, which may have the rank's number in front; None if it is another line."""
    if number not in text or len(text) > _LONGEST:
        return None
    try:
        told = json.loads(text[text.index("{") :])
    except ValueError:
        return None
    if not isinstance(told, dict) or told.get("trial") != number:
        return None
    measure = told.get("measure")
    if not isinstance(measure, str) or measure not in MEASURES:
        return None
    rank, device, peer = (_whole(told.get(name)) for name in ("rank", "device", "peer"))
    seconds = _time(told.get("seconds"))
    if rank is None or rank >= ranks or device is None or seconds is None:
        return None
    return Line(rank, device, measure, seconds, peer)


def _whole(value: Any) -> int | None:
    right = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST_DEVICES
    return value if right else None


def _time(value: Any) -> float | None:
    right = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < math.inf
    return float(value) if right else None
