"""Reads the plogs of a job that hangs: the root among the ranks, and the last event of each rank.

tools/features/plog_watch.py starts it in a forked child.  It reads the beginnings and the ends of plogs.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import stat
import time
from contextlib import suppress
from itertools import islice

from hccl_tools.common.grouping import grouped
from hccl_tools.common.language import tr
from hccl_tools.common.record import Row
from hccl_tools.common.words import named
from hccl_tools.machine import programs
from tools.diagnosis import job_logs, processes, root, verdict, words
from tools.launch import plogs, record
from tools.logs import known_failures, line_heads, owners, plog, scan, sources

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tools.logs.scan import Findings

SECONDS = 8  # the launcher waits for 10
MOST = 64 << 20  # bytes: less than a second, without hyperscan, whose automata take longer to make
LEAST_OF_FILE = 16 << 10  # with less of its plog, a rank would seem to be silent
MOST_FILES = 100_000
MOST_LINES = 6
_TELLING = ("ERROR", "WARNING", "EVENT")


class Plog(Row):
    """A plog that may be read."""

    rank: int
    path: str
    size: int
    written: float


class Event(Row):
    """The last line of a rank with information."""

    time: float
    rank: int
    level: str
    text: str


class TooLate(Exception):
    """There is no time to read enough for a verdict."""


def main(arguments: list[str]) -> None:
    """Prints as much as it can in its time.

    arguments: the folders of the run and of the attempt, and how many seconds ago an event may have been.
    """
    run_dir, logs, seconds = arguments
    programs.end_with_parent()
    signal.signal(signal.SIGALRM, _too_late)
    signal.alarm(SECONDS)
    launch = record.read(run_dir)
    found: list[Findings] = []
    events: dict[int, Event] = {}
    lines: list[str] = []
    try:
        for one in _read(_plogs(launch, logs), found, time.time() - float(seconds)):
            before = events.get(one.rank)
            events[one.rank] = one if before is None or one.time >= before.time else before
        answer = root.verdict_of(processes.job_of(found, job_logs.tables(launch), launch)) if found else None
        lines = words.root_lines(answer, brief=True) if answer else []
    except TooLate:
        command = job_logs.command(run_dir)
        lines = [tr("there is no time now to read all plogs; this command does: {command}", command=command)]
    signal.alarm(0)
    for line in [*lines, *event_lines(list(events.values()))]:
        print(line)


def event_lines(events: list[Event]) -> list[str]:
    """Ranks with the same text share a line."""
    alike = grouped(((event.level, event.text), event) for event in sorted(events, key=lambda event: event.rank))
    groups = list(alike.items())
    shown = groups if len(groups) <= MOST_LINES else groups[: MOST_LINES - 1]
    lines = [
        tr(
            "{ranks}, last in the plog: {time} [{level}] {text}",
            ranks=named("rank", [event.rank for event in group]),
            time=plog.clock(max(event.time for event in group)),
            level=level,
            text=text,
        )
        for (level, text), group in shown
    ]
    rest = sum(len(group) for _, group in groups[len(shown) :])
    if rest:
        lines.append(tr("and 1 more rank") if rest == 1 else tr("and {count} more ranks", count=rest))
    return lines


def _read(files: list[Plog], found: list[Findings], since: float) -> Iterator[Event]:
    """Adds to `found` what the logs state, and yields the last event of each that was written since then."""
    scan.use(known_failures.load()[0])
    share = MOST // max(1, len(files))
    for file in files:
        with suppress(OSError):
            data = ends(file.path, share)
            event = last_event(data, file.rank) if file.written >= since else None
            if event:
                yield event
            name = os.path.join(f"rank_{file.rank}", os.path.basename(file.path))
            findings = scan.read(io.BytesIO(data), name, False, file.path)
            if findings:
                found.append(findings)
    if share < LEAST_OF_FILE and any(file.size > share for file in files):
        raise TooLate


def _plogs(launch: dict[str, Any], logs: str) -> list[Plog]:
    """Those that were written since the launch, by rank.  Links are left out."""
    begun = plog.seconds(str(launch.get("started") or "")) or 0.0
    found = []
    for rank, folder in plogs.of_ranks(launch, logs).items():
        if os.path.islink(folder):
            continue
        for entry in islice(sources.below(folder), MOST_FILES):
            with suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                is_plog = stat.S_ISREG(status.st_mode) and owners.kind_of(entry.name, b"") == owners.PLOG
                if is_plog and status.st_mtime >= begun and not entry.name.endswith(".gz"):
                    found.append(Plog(rank, entry.path, status.st_size, status.st_mtime))
    return sorted(found)


def ends(path: str, most: int) -> bytes:
    """The file, or this number of bytes of lines at its beginning and at its end.  Raises OSError."""
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size <= most:
            return file.read(most)
        head = file.read(most // 4)
        file.seek(size - (most - len(head)))
        tail = file.read(most - len(head))
    return head[: head.rfind(b"\n") + 1] + tail[tail.find(b"\n") + 1 :]


def last_event(data: bytes, rank: int) -> Event | None:
    """The last line of a level with information."""
    place = max(data.rfind(f"[{level}] ".encode()) for level in _TELLING)
    while place >= 0:
        begin = data.rfind(b"\n", 0, place) + 1
        end = data.find(b"\n", place)
        line = line_heads.clean(data[begin : end if end >= 0 else len(data)][:4000])
        head = plog.parse(line)
        if begin == place and head and head.level in _TELLING and head.time is not None:
            return Event(head.time, rank, head.level, verdict.said(line))
        place = max(data.rfind(f"[{level}] ".encode(), 0, place) for level in _TELLING)
    return None


def _too_late(*_: object) -> None:
    raise TooLate


def tell(descriptor: int, words: list[str]) -> None:
    """Writes the lines to this descriptor; a report must not contain a failure of ours."""
    stream = os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape")
    with contextlib.redirect_stdout(stream):
        try:
            main(words)
        except Exception as error:
            print(tr("the plogs cannot be read: {reason}", reason=f"{type(error).__name__}: {error}"))
    stream.flush()
