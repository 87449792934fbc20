"""Separates the output of an engine whose ranks are agents: lines of the agents, and lines of the engine."""

from __future__ import annotations

import os

from hccl_tools.common.record import Row
from tools.supervise import events

KILLED = 137
LONGEST = 1 << 20  # bytes of a line that has no end yet


class AgentLines:
    """The output of an engine, in blocks of bytes: `take` returns the events in it.

    secret: begins what agents report.  logs: the folder of the attempt's logs.  own: where the engine's own lines go.
    cancelled: the event when the engine itself ends the job; None: from then on a rank that ends has not failed by
    itself.
    """

    def __init__(self, secret: bytes, logs: str, own: int, cancelled: events.Cancelled | None) -> None:
        self.secret, self.logs, self.own, self.cancelled = secret + b" ", os.fsencode(logs), own, cancelled
        self.ordered = False  # we have ordered the ranks to stop
        self.judged = True  # a rank's end may be a failure of its own
        self.failed = 0  # the last status of a rank that was not 0
        self._told_cancel = self._told_warning = False
        self._trainers: dict[bytes, bytes] = {}  # rank -> process id of its trainer
        self._running: set[bytes] = set()  # ranks whose trainer runs
        self._earlier: dict[bytes, set[bytes]] = {}  # of ranks that were started again: the processes before
        self._left: dict[str, list[tuple[int, int, str]]] = {}  # rank -> what it has left, as far as it is told
        self._rest = b""
        self._found: list[Row] = []
        self._forget()

    def _forget(self) -> None:
        self._began: list[tuple[str, int, str]] = []
        self._ended: list[tuple[str, int]] = []
        self._more: list[Row] = []
        self._own: list[bytes] = []
        self._files: dict[bytes, list[bytes]] = {}
        self._grown = b""

    def take(self, block: bytes) -> list[Row]:
        """The events in the next bytes; b"" is the end of them."""
        *lines, self._rest = (self._rest + block).split(b"\n")
        if not block or len(self._rest) > LONGEST:
            lines.append(self._rest)
            self._rest = b""
        for line in lines:
            if line:
                self._line(line)
        self._tell()
        found, self._found = self._found, []
        return found

    def _line(self, line: bytes) -> None:
        """With the secret, maybe behind a label of mpirun or srun, it is from an agent; else from the engine itself."""
        _, found, said = line.partition(self.secret)
        word, _, rest = said.partition(b" ")
        rank, _, value = rest.partition(b" ")
        if found and word == b"cancelled" and not rank:
            self._cancelled()
        elif found and word == b"handed" and not rank:
            self._tell()
            self._found.append(events.Handed())
        elif found and word == b"warned" and not rank:
            self._warned()
        elif not found or not (rank.isdigit() or rank == b"scheduler") or not self._of_rank(word, rank, value):
            self._own.append(line + b"\n")

    def _of_rank(self, word: bytes, rank: bytes, value: bytes) -> bool:
        """Keeps what an agent reports about its rank; False if it can be from none."""
        if word == b"exit" and _are_numbers(value.split(b" ", 1)):  # its status, and on our host its process
            self._has_ended(rank, *value.split(b" ", 1))
        elif word == b"start" and len(value.split()) == 2 and value.split()[0].isdigit():  # its process and its host
            self._has_begun(rank, *value.split())
        elif word == b"left" and (row := _left_row(value)):
            self._left.setdefault(rank.decode(), []).append(row)
        elif word == b"waits" and rank.decode() in self._left:  # all of what it has left is told
            self._more.append(
                events.Left(rank.decode(), self._left.pop(rank.decode()), value.decode("ascii", "replace"))
            )
        elif word == b"failed" and value.split(b" ", 1)[0].isdigit():
            pid, _, words = value.partition(b" ")
            self._more.append(events.LeftFailed(rank.decode(), int(pid), _words(words)))
        elif word == b"line":
            self._files.setdefault(b"rank_%s.log" % rank, []).append(value + b"\n")
        elif word == b"plog":
            name = b"plog/rank_%s/debug/plog/plog-%s_away.log" % (rank, self._trainers.get(rank, b"0"))
            self._files.setdefault(name, []).append(value + b"\n")
        elif word == b"wrote":
            self._grown = rank
        else:
            return self._of_others(word, rank.decode(), value.decode("utf-8", "replace"))
        return True

    def _has_begun(self, rank: bytes, pid: bytes, host: bytes) -> None:
        """A rank that has begun before was started again; the end of the process before may come later, or never."""
        before = self._trainers.get(rank)
        if before is not None:
            self._tell()  # events are told in their order
            self._earlier.setdefault(rank, set()).add(before)
            if rank in self._running:
                self._found.append(events.Ended([(rank.decode(), KILLED)]))
        self._trainers[rank] = pid
        self._running.add(rank)
        self._began.append((rank.decode(), int(pid), host.decode("utf-8", "replace")))

    def _has_ended(self, rank: bytes, status: bytes, pid: bytes = b"") -> None:
        """The process of a rank has ended, unless it is one before the last start."""
        if pid and pid != self._trainers.get(rank):
            if pid in self._earlier.get(rank, ()):
                return
            self._has_begun(rank, pid, b"")  # it was killed before it could tell its start
        self._running.discard(rank)
        self._ended.append((rank.decode(), int(status)))
        self.failed = int(status) or self.failed

    def _of_others(self, word: bytes, rank: str, value: str) -> bool:
        """The same for what the agent reports to a feature, or of an order."""
        if word == b"has":
            self._more.append(events.Heard("together", f"has {rank} {value}"))
        elif word == b"without":
            self._more.append(events.Heard("import_once", f"{rank} {value}"))
        elif word == b"asked":
            self._more.append(events.Warned(rank))
        elif word == b"busy":
            self._more.append(events.Heard("restarts", f"busy {rank} {value}"))
        elif word == b"stack":
            self._more.append(events.StackTold(rank, value))
        else:
            return False
        return True

    def _cancelled(self) -> None:
        """The engine, not the launcher, has told an agent to end."""
        if self.cancelled:
            if not self._told_cancel:  # every agent reports it
                self._told_cancel = True
                self._tell()
                self._found.append(self.cancelled)
        elif not self.ordered and self.judged:
            self._tell()
            self.judged = False

    def _warned(self) -> None:
        """Slurm has sent SIGUSR1 to a rank, and so to all."""
        if not self._told_warning:  # every agent reports it
            self._told_warning = True
            self._more.append(events.Warned())

    def _tell(self) -> None:
        """Everything that was kept, first the lines of logs, because the supervisor may print those."""
        write(self.own, b"".join(self._own))
        for name, texts in self._files.items():
            append(os.path.join(self.logs, name), b"".join(texts))
        if self._began:
            self._found.append(events.Began(self._began))
        self._found += self._more  # an agent reports where its rank is before it states that the rank has ended
        if self._ended:
            self._found.append(events.Ended(self._ended, self.judged))
        if self._grown:
            self._found.append(events.LogGrew(self._grown.decode()))
        self._forget()


def _left_row(value: bytes) -> tuple[int, int, str] | None:
    """(process id, group, command) of a process that a rank has left; None if it is of another form."""
    pid, _, rest = value.partition(b" ")
    group, _, words = rest.partition(b" ")
    return (int(pid), int(group), _words(words)) if pid.isdigit() and group.isdigit() else None


def _are_numbers(words: list[bytes]) -> bool:
    return all(word.isdigit() for word in words)


def _words(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def write(descriptor: int, text: bytes) -> None:
    """Writes all of it, except what a full disk, or a pipe that is not read, does not take."""
    try:
        while text:
            text = text[os.write(descriptor, text) :]
    except OSError:
        return


def append(path: bytes, text: bytes) -> None:
    """Adds the text to the file, in a folder that may be missing; not if the disk or the rights forbid it."""
    try:
        if b"/plog/" in path:
            os.makedirs(os.path.dirname(path), exist_ok=True)
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    except OSError:
        return
    write(file, text)
    os.close(file)
