"""Reports faults that CANN logs while a job runs (--watch_plogs): one line for each known fault and rank.

  python tools/diagnosis/watch_plogs.py LAUNCHER SINCE RUN LOGS NAME BEFORE

tools/features/plog_watch.py starts it.  LAUNCHER is the launcher's process; this one ends with it.  SINCE: seconds
since 1970, when the attempt began.  RUN and LOGS: the folders of the run and of the attempt.  NAME and BEFORE: the text
before a message.  On SIGTERM the process looks once more, then ends.  It writes its lines to stderr itself, not through
the launcher: a blocked terminal must not stop the launcher.
"""

from __future__ import annotations

import os
import sys

if not __package__:  # run as a file: see docs/architecture.md
    os.closerange(3, 256)  # pipes and locks of the launcher
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

import signal
import time
from collections import deque
from contextlib import suppress

from hccl_tools.common import documents
from hccl_tools.common.language import speaks_chinese, tr
from hccl_tools.common.words import one_line
from hccl_tools.machine import programs
from tools.launch import plogs, record
from tools.logs import follow, known_failures, line_heads, owners, plog, scan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from tools.logs.known_failures import KnownFailure

MOST_LINES, MINUTE = 20, 60.0  # of all ranks
SHARE = 0.01  # of a processor, for asking how large the plogs are
BUSY, BUSY_SHARE = 0.2, 0.1  # seconds of a processor that a look may take, and its share, where plogs are flooded
_BATCH = 200  # lines; the matcher finds no more of one text
_QUIET = tuple(f"[{level}]".encode() for level in plog.QUIET)
_LONGEST = 4000  # characters of a line


class Places:
    """Device and host of each rank, as launch.json has them."""

    def __init__(self, launch: dict[str, Any]) -> None:
        self._rows = {row.get("rank"): row for row in documents.objects(launch, "ranks")}

    def who(self, rank: int) -> str:
        """``rank 3 (device 7 of node1)``."""
        return record.who(self._rows.get(rank, {"rank": rank}))


class Said:
    """The lines, and how many of them in the last minute."""

    def __init__(self, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._say, self._clock = say, clock
        self._times: deque[float] = deque()
        self._dropped, self._since = 0, 0.0

    def line(self, text: str) -> None:
        """Reports it, unless there were too many; then there is still room for the number of those left out."""
        now = self._clock()
        self._forget(now)
        if len(self._times) < MOST_LINES - 1:
            self._times.append(now)
            self._say(text)
            return
        self._since = self._since if self._dropped else now
        self._dropped += 1

    def left_out(self, at_end: bool = False) -> None:
        """Reports once a minute how many lines were left out."""
        now = self._clock()
        if not self._dropped or (now - self._since < MINUTE and not at_end):
            return
        self._forget(now)
        self._times.append(now)
        text = tr(
            "{count} more lines about faults in plogs are left out: {most} a minute are shown",
            count=self._dropped,
            most=MOST_LINES,
        )
        self._say(text)
        self._dropped = 0

    def _forget(self, now: float) -> None:
        while self._times and now - self._times[0] >= MINUTE:
            self._times.popleft()


class Faults:
    """The known faults of each rank so far."""

    def __init__(self, entries: list[KnownFailure], places: Places, said: Said) -> None:
        self._entries = [entry for entry in entries if "Ascend" in entry.targets]
        self._machine = scan.Machine(self._entries, owners.PLOG, fast=False)
        self._places, self._said = places, said
        self._counts: dict[tuple[int, str], int] = {}

    def take(self, rank: int, lines: bytes) -> None:
        """The next whole lines of a plog."""
        loud = [line for line in lines.split(b"\n") if line and not line.startswith(_QUIET)]
        for begin in range(0, len(loud), _BATCH):
            self._batch(rank, b"\n".join(loud[begin : begin + _BATCH]) + b"\n")

    def _batch(self, rank: int, block: bytes) -> None:
        self._machine.begin()
        for begin, end, meanings in self._machine.lines(block):
            line = line_heads.clean(block[begin : min(end, begin + _LONGEST)])
            head = plog.parse(line)
            if head and head.level in plog.QUIET:
                continue
            entries = (self._entries[number] for number in sorted(meanings) if number >= 0)
            entry = next((entry for entry in entries if entry.takes(line)), None)
            if entry and not entry.vague:
                self._count(rank, entry, head.time if head else None)

    def _count(self, rank: int, entry: KnownFailure, moment: float | None) -> None:
        count = self._counts[rank, entry.code] = self._counts.get((rank, entry.code), 0) + 1
        if str(count).strip("0") != "1":  # 1, 10, 100 and so on
            return
        text = tr(
            "{who}: {time} {code}: {cause}",
            who=self._places.who(rank),
            time=time.strftime("%H:%M:%S") if moment is None else plog.clock(moment),
            code=entry.code,
            cause=entry.zh[0] if entry.zh and speaks_chinese() else entry.cause,
        )
        self._said.line(text if count == 1 else tr("{line}; {count} times so far", line=text, count=count))


def watch(follower: follow.Follower, faults: Faults, said: Said, waits: Iterator[bool]) -> None:
    """Looks after each wait; the last one, which is False, is after the job."""
    for goes_on in waits:
        begun = time.process_time()
        for rank, lines in follower.look():
            faults.take(rank, lines)
            if time.process_time() - begun > BUSY:
                break
        said.left_out(at_end=not goes_on)


def waits(launcher: int, follower: follow.Follower) -> Iterator[bool]:
    """A second each, longer if the looks take long; False after SIGTERM.  Ends with the launcher."""
    while os.getppid() == launcher:
        begun = time.process_time()
        yield True
        took = time.process_time() - begun
        if signal.sigtimedwait((signal.SIGTERM,), max(1.0, follower.cost / SHARE, took / BUSY_SHARE)):
            yield False
            return


def speaker(name: str, before: str) -> Callable[[str], None]:
    """Prints a line on stderr, in one write; ends this process if it is not read."""
    encoding = sys.stderr.encoding if sys.stderr else "utf-8"

    def say(text: str) -> None:
        try:
            os.write(2, f"{before}{one_line(f'{name}: {text}')}\n".encode(encoding, "backslashreplace"))
        except OSError:
            os._exit(0)

    return say


def main(arguments: list[str]) -> None:
    """Returns when the job has ended."""
    launcher, since, run_dir, logs, name, before = arguments
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM,))
    programs.end_with_parent()
    with suppress(OSError):
        os.nice(5)  # the ranks come first
    say = speaker(name, before)
    try:
        launch = record.read(run_dir)
        folders = plogs.of_ranks(launch, logs)
        above = next((os.path.dirname(path) for path in folders.values()), logs)
        # The folder plog is ours, and no link; one of the user's may be a link.
        base = logs if os.path.dirname(above) == logs else above
        follower = follow.Follower(folders, base, float(since))
        said = Said(say)
        watch(follower, Faults(known_failures.load()[0], Places(launch), said), said, waits(int(launcher), follower))
    except Exception as error:  # the job goes on
        say(tr("--watch_plogs has ended: {reason}", reason=f"{type(error).__name__}: {one_line(error)}"))


if __name__ == "__main__":
    main(sys.argv[1:])
    os._exit(0)
