"""Lists the outcomes of the runs in a folder of logs: one record per run, from launch.json and rank 0's last lines."""

from __future__ import annotations

import os
import shutil
import time

from hccl_tools.common import documents, how_far, utc
from hccl_tools.common.language import strerror, tr
from hccl_tools.common.record import Record, Row
from hccl_tools.common.refusal import USAGE, Refusal
from hccl_tools.common.words import count, one_line
from tools.diagnosis import hang, run
from tools.diagnosis.run import logs_of
from tools.launch import record
from tools.launch.resume import runs
from tools.logs import known_failures, log_tail
from tools.progress import lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tools.progress.lines import Pattern, Values

RUNNING, LOST = "running", "lost"  # the states of a run without an outcome


class Tried(Row):
    """One attempt of a run; None: launch.json does not state it."""

    steps: int | None  # that it made
    reached: int | None  # the furthest step, from the start of the run
    counted: bool | None  # whether its restart brought the job no further
    cause: str | None  # why it ended


class Run(Record):
    """One run.  What launch.json does not state, or states in a form of its own, is None."""

    folder: str
    script: str | None
    target: str | None  # device target
    program: str | None  # the config, otherwise the program's file
    ranks: int | None
    hosts: int | None
    started: str | None  # UTC, as launch.json has it
    seconds: int | None  # from its start to its end, or until now
    state: str  # "ended", RUNNING, or LOST: its launcher wrote no outcome, and is gone from this host
    exit: int | None
    restarts: int | None
    cause: str | None  # why it failed, or what stopped it
    progress: Values  # the last numbers in rank 0's log, see lines.GROUPS
    attempts: Sequence[Tried] = ()  # of a run that --max_restarts could start again

    @property
    def failed(self) -> bool:
        """Whether it did not end well."""
        return self.state == LOST or bool(self.exit)


def read_all(logs: str) -> list[Run]:
    """The runs in the folder `logs`, the newest first; folders without a launch.json are not runs.  Raises Refusal."""
    if not os.path.isdir(logs):
        what = tr("is not a folder") if os.path.exists(logs) else tr("no such folder")
        text = tr("{path}: {what}; name the folder of the runs, such as logs", path=one_line(logs), what=what)
        raise Refusal(USAGE, text)
    patterns = lines.load()
    folders = [os.path.join(logs, os.path.basename(run)) for run in runs.newest_first(logs)]
    folders = [folder for folder in folders if os.path.lexists(record.path(folder))]
    found = []
    with how_far.doing(tr("reading {runs}", runs=count(len(folders), "run")), len(folders)):
        for folder in folders:
            found.append(read(folder, patterns))
            how_far.more()
    return found


def read(folder: str, patterns: list[Pattern]) -> Run:
    """The run in `folder`; where its launch.json cannot be read, the cause states why."""
    try:
        document, trouble = record.read(folder), None
    except Refusal as refusal:
        document, trouble = {}, refusal.lines[0]
    outcome = documents.part(document, "outcome")
    state = "ended" if outcome else RUNNING if runs.process_of(folder, document) or _elsewhere(document) else LOST
    ranks = documents.entries(document, "ranks")
    return Run(
        folder=folder,
        script=documents.text(document, "script"),
        target=documents.text(document, "device_target"),
        program=_program(document),
        ranks=len(ranks) if ranks else None,
        hosts=len({str(rank.get("host")) for rank in ranks if isinstance(rank, dict)}) if ranks else None,
        started=documents.text(document, "started"),
        seconds=_seconds(document.get("started"), outcome.get("ended") if outcome else None, state),
        state=state,
        exit=documents.number(outcome, "exit"),
        restarts=len(documents.entries(outcome, "attempts")) if outcome else None,
        cause=trouble or hang.of_run(document, folder) or _cause(outcome),
        attempts=_attempts(outcome),
        progress=_progress(os.path.join(folder, logs_of(outcome)), ranks, patterns),
    )


def _attempts(outcome: dict[str, Any]) -> tuple[Tried, ...]:
    """Those that state how far they came, which they do with --max_restarts."""
    every = [*documents.objects(outcome, "attempts"), outcome]
    said = [(one, one["progress"]) for one in every if isinstance(one.get("progress"), dict)]
    return tuple(
        Tried(
            steps=documents.number(found, "steps"),
            reached=documents.number(found, "reached"),
            counted=found.get("counted") if isinstance(found.get("counted"), bool) else None,
            cause=documents.text(found, "error") or _cause(one),
        )
        for one, found in said
    )


def _elsewhere(document: dict[str, Any]) -> bool:
    """Whether the launcher runs, or ran, on another host, where it is not visible from here."""
    host = document.get("host")
    return isinstance(host, str) and host != os.uname().nodename


def _program(document: dict[str, Any]) -> str | None:
    """The config that the ranks' command names, otherwise the first word in it that is not an option."""
    words = documents.texts(document, "trainer")
    for word, following in zip(words, words[1:]):
        if word == "--config":
            return following
    files = [word for word in words[1:] if not word.startswith("-")]
    return files[0] if files else (words[0] if words else None)


def _seconds(started: object, ended: object, state: str) -> int | None:
    """How long it took; of a run that goes on, until now."""
    first, last = utc.seconds(started), time.time() if state == RUNNING else utc.seconds(ended)
    return None if first is None or last is None else max(0, int(last - first))  # the date may have been set back


def _cause(outcome: dict[str, Any]) -> str | None:
    """Why a run failed, in the words of its diagnosis; otherwise which rank failed first, or what stopped it."""
    diagnosis = documents.part(outcome, "diagnosis")
    root, exception = documents.part(diagnosis, "root"), documents.part(diagnosis, "exception")
    if root.get("sentence"):
        return str(root["sentence"])
    for match in [*documents.objects(diagnosis, "matches"), *documents.objects(diagnosis, "faults")]:
        if match.get("cause"):
            chinese = known_failures.in_chinese(str(match.get("code")))
            return chinese[0] if chinese else str(match["cause"])
    if exception.get("type"):
        return f"{exception['type']}: {exception.get('message')}"
    if outcome.get("lost_host"):
        return tr("the host {host} was lost", host=outcome["lost_host"])
    if by_request := run.of_request(outcome):
        return by_request
    if outcome.get("stopped_by"):
        return tr("stopped by {what}", what=outcome["stopped_by"])
    first = outcome.get("first_failure")
    if first is None:
        return None
    return (
        tr("rank {rank} failed first", rank=first) if str(first).isdecimal() else tr("{name} failed first", name=first)
    )


def _progress(folder: str, ranks: list[Any], patterns: list[Pattern]) -> Values:
    """The last numbers in the log of the first rank."""
    name = documents.text(ranks[0], "log") if ranks else None
    if name is None or os.path.basename(name) != name:
        return {}
    try:
        log = log_tail.read(os.path.join(folder, name))
    except (OSError, ValueError):
        return {}
    return lines.last_of("\n".join(log.lines), patterns)


# ---- Removes old runs, with their logs and checkpoints, when the user has said yes.


def removable(runs: Sequence[Run], keep: int, logs: str) -> list[Run]:
    """The runs that can go: all but the newest `keep`, the one that `latest` links to, and those that still run."""
    latest = os.path.realpath(os.path.join(logs, "latest"))
    old = runs[keep:]
    return [run for run in old if run.state != RUNNING and os.path.realpath(run.folder) != latest]


def size_of(folder: str) -> int:
    """The bytes of all files in it; unreadable files are not counted."""
    total = 0
    for above, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(above, name)).st_size
            except OSError:
                continue
    return total


def has_checkpoints(run: Run) -> bool:
    """Whether its folder has checkpoints of tools/train.py."""
    return os.path.isdir(os.path.join(run.folder, "ckpt"))


def of_removal(run: Run, size_: int) -> dict[str, Any]:
    """The output of --json about a run that can be removed. size_: its bytes before."""
    return {"folder": run.folder, "bytes": size_, "removed": not os.path.lexists(run.folder)}


def remove(run: Run) -> str | None:
    """Removes the run's folder; returns what is wrong if it is still there."""
    try:
        shutil.rmtree(run.folder)
    except OSError as error:
        where = one_line(error.filename or run.folder)
        return tr("{path} cannot be removed: {reason}", path=where, reason=strerror(error))
    return None
