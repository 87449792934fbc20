"""Follows the output of the ranks on stdout while they run: rank 0's log, or all logs.

The ranks write their logs themselves; nothing passes through the launcher.  A reader follows the files until the
launcher closes the pipe to it, then prints the rest and ends.  It is a separate process, so that a blocked terminal
never blocks the launcher.  On a terminal, if nothing comes for a while, stderr shows since when.

A terminal gets one log byte by byte, because progress bars and colours are meant for it.  A pipe or a file gets the
same, except for progress bars: only the last state of a line is printed.  The state comes at the line's end, and from
time to time while the line has none.  Of several logs, the reader shows whole lines and the same states, and cuts what
is too long: console_ways.py.
"""

from __future__ import annotations

import contextlib
import os
import select
import stat
import time
from collections.abc import Sequence

from hccl_tools.common import colours
from hccl_tools.common.language import tr
from hccl_tools.common.quoting import harmless
from hccl_tools.common.record import Record
from hccl_tools.common.words import clauses, count
from tools.output.console_ways import BLOCK, Bytes, Lines, States, Stdout, Way
from tools.output.modules_line import Without
from tools.supervise.proc import signals

_COLOURS = (36, 33, 32, 35, 34, 96, 93, 92, 95, 94, 31, 91)  # of the ranks' numbers, in turn
_ROUNDS = 16  # blocks of a log that grows fast, before the others are looked at again
_BESIDE = 64  # files that the launcher has open besides the logs


class Patience(Record):
    """The waiting times of the reader, in seconds.

    status_after: without output, until the terminal shows since when
    state_every, state_every_terminal: between two states of a line that has no end; the second of several logs on a
        terminal
    waits: between two looks at the logs; they grow while nothing comes, because a job may run for weeks
    """

    status_after: float = 30
    state_every: float = 10
    state_every_terminal: float = 2
    waits: tuple[float, ...] = (0.05, 0.1, 0.2, 0.5, 1, 1, 1, 1, 1, 1, 2)


def shown(ranks: Sequence[int]) -> tuple[Sequence[int], str | None]:
    """(those of the ranks whose logs --console all can show; why not all of them)."""
    why = can_open(len(ranks) + _BESIDE, tr("--console all shows rank {rank} only", rank=ranks[0]))
    return (ranks[:1], why) if why else (ranks, None)


def can_open(number: int, what: str) -> str | None:
    """None if this process may have so many files open; otherwise a sentence: `what`, why, and the remedy."""
    import resource

    most, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most == resource.RLIM_INFINITY or number <= most:
        return None
    from tools.launch.hosts.host_limits import more_files

    few = tr("{what}: it needs {number} open files, but ulimit -n is {most}", what=what, number=number, most=most)
    return clauses(few, more_files(hard, number))


def follow(
    logs: Sequence[str],
    numbers: Sequence[int],
    control: int,
    world: int,
    name: str,
    stdout: int = 1,
    stderr: int = 2,
    patience: Patience = Patience(),  # noqa: B008 # read-only
) -> None:
    """Shows the logs until `control`, the end of a pipe, is at its end, then the rest of them.

    numbers: of the logs' ranks; world: of all ranks that run; name: of the script.
    Returns as soon as stdout is not read any more.
    """
    signals.signal(signals.SIGTTOU, signals.SIG_IGN)  # after `stty tostop`, the terminal would stop us
    signals.signal(signals.SIGXFSZ, signals.SIG_IGN)  # past `ulimit -f`, a write must fail
    signals.signal(signals.SIGPIPE, signals.SIG_IGN)
    dumb = os.environ.get("TERM", "dumb") == "dumb"
    terminal = stderr if os.isatty(stderr) and not dumb else None
    status = Status(terminal, count(world, "rank"), name, os.isatty(stdout), patience.status_after)
    out = Stdout(stdout, status.clear)
    coloured = colours.wanted(stdout)
    files = [File(log, _way(out, place, numbers, coloured, patience)) for place, log in enumerate(logs)]
    try:
        _Reader(files, control, patience, status, out).run()
    except OSError:  # nobody reads our stdout any more
        return


def _way(out: Stdout, place: int, numbers: Sequence[int], coloured: bool, patience: Patience) -> Way:
    """How to show the log at this place: bytes as they come, bytes without old states, or whole lines."""
    if len(numbers) > 1:
        every = patience.state_every_terminal if os.isatty(out.number) else patience.state_every
        return Lines(out, every, _prefix(place, numbers[place], coloured))
    return Bytes(out) if os.isatty(out.number) else States(out, patience.state_every)


def _prefix(place: int, number: int, coloured: bool) -> bytes:
    """What goes before a line: the rank, in colour on a terminal."""
    colour = _COLOURS[place % len(_COLOURS)]
    return b"\x1b[%dm[%d]\x1b[0m " % (colour, number) if coloured else b"[%d] " % number


class File:
    """A log that is read.  One that is not there is empty: the others are shown."""

    def __init__(self, path: str, way: Way) -> None:
        self.way, self._filter = way, Without()
        self._left: int | None = None  # bytes up to where the log ended when the job did
        try:  # a FIFO must not keep us waiting
            self._number = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        except OSError:
            self._number = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def show(self, data: bytes, now: float) -> None:
        """Shows what was read."""
        self.way.show(self._filter.take(data), now)

    def end(self) -> None:
        """Everything was read."""
        if rest := self._filter.rest():
            self.way.show(rest, time.monotonic())
        self.way.end()

    def read(self) -> bytes:
        """Reads new bytes, at most a BLOCK of them."""
        try:
            data = os.read(self._number, BLOCK if self._left is None else min(BLOCK, self._left))
        except OSError:  # nothing is in the FIFO, or the disk is broken
            return b""
        if self._left is not None:
            self._left -= len(data)
        return data

    def stop(self) -> None:
        """Stops the output: a process that was left behind could write for ever."""
        found, self._left = os.fstat(self._number), BLOCK
        if stat.S_ISREG(found.st_mode):
            self._left = max(0, found.st_size - os.lseek(self._number, 0, os.SEEK_CUR))


class Status:
    """The line on a terminal that states for how long nothing came.

    A progress bar stays as it is: the status is on the line below it, and the cursor goes back.
    """

    def __init__(self, terminal: int | None, ranks: str, name: str, shared: bool, after: float) -> None:
        self._terminal, self._ranks, self._name, self._shared, self._after = terminal, ranks, name, shared, after
        self._clear = b""
        self.quiet_since = time.monotonic()

    def show(self, half: bool, now: float) -> None:
        """half: the end of stdout is an unfinished line; shared: stdout is a terminal, too."""
        silent = int(now - self.quiet_since)
        if self._terminal is None or now - self.quiet_since < self._after:
            return
        before, behind, self._clear = b"\r\x1b[K", b"", b"\r\x1b[K"
        if half and self._shared:  # makes the line below, in case this is the last one
            before, behind, self._clear = b"\x1bD\x1b[A\x1b7\x1bD\r\x1b[K", b"\x1b8", b"\x1b7\x1bD\r\x1b[K\x1b8"
        since = f"{silent // 60}:{silent % 60:02}"
        text = tr("{name}: {ranks} running, no output for {time}", name=self._name, ranks=self._ranks, time=since)
        self._write(before + os.fsencode(harmless(text)) + behind)

    def clear(self) -> None:
        if self._clear:
            self._write(self._clear)
        self._clear = b""

    def _write(self, text: bytes) -> None:
        with contextlib.suppress(OSError):  # the terminal is gone
            os.write(self._terminal or 0, text)


class _Reader:
    """Looks at the files again and again, and shows what is new."""

    def __init__(self, files: list[File], control: int, patience: Patience, status: Status, out: Stdout) -> None:
        self._files, self._patience, self._status, self._out = files, patience, status, out
        self._end = select.poll()
        self._end.register(control, select.POLLIN)
        self._control = control

    def run(self) -> None:
        waits, idle, busy = self._patience.waits, 0, True
        while not self._has_ended(0 if busy else waits[idle]):
            idle = min(idle + 1, len(waits) - 1)
            found, busy = self._look()
            now = time.monotonic()
            if found:
                idle, self._status.quiet_since = 0, now
            for file in self._files:
                file.way.show_state_at(now)
            self._status.show(self._out.half, now)
        for file in self._files:
            file.stop()
        while self._look()[0]:
            pass
        for file in self._files:
            file.end()
        self._out.end()

    def _has_ended(self, seconds: float) -> bool:
        """Whether the launcher has closed its end of the pipe; waits so long for it."""
        return bool(self._end.poll(seconds * 1000)) and not os.read(self._control, BLOCK)

    def _look(self) -> tuple[bool, bool]:
        """Shows what is new: (whether there was something, whether there may be more).  A log that grows fast gets some
        blocks more, and then it is the turn of the others again."""
        found, files = False, self._files
        for _ in range(_ROUNDS):
            sizes = [self._show(file) for file in files]
            found = found or any(sizes)
            files = [file for file, size in zip(files, sizes) if size == BLOCK]
            if not files:
                break
        return found, bool(files)

    def _show(self, file: File) -> int:
        """Shows a block of the file; its size."""
        data = file.read()
        if data:
            file.show(data, time.monotonic())
        return len(data)
