#!/usr/bin/env python3
"""The relay between the supervisor and an engine that starts ranks: mpirun or srun.

Only scripts/lib/engines/relay.sh runs it, as a file and with nothing but the standard library, because it starts
together with the engine: each import would cost time that the ranks need.  It reads the engine's stdout.  What the
agents of the ranks say there (rank_agent.sh) it puts on the supervisor's bus, many ranks in one line.  The supervisor
is a shell, and with 65,536 ranks it would take a minute to read a line of each.

  relay.py RUNNER PIPE ORDERS BUS WAY CANCELLED

  RUNNER     the process id of the shell that runs the engine, a child of this process.  It writes "engine PID" and,
             when the engine has ended, "ended STATUS" to the PIPE.  A shell waits for the engine, because the shell
             that became this process may have taken the status of a child that ended early
  PIPE       descriptor: the engine's stdout
  ORDERS     descriptor: the engine's stdin.  Only this process holds it, so it closes when this process ends
  BUS        descriptor: the supervisor's bus
  WAY        stdin: orders go to the ranks as lines on ORDERS; else as signals to the engine
  CANCELLED  the line for the bus when the engine itself ends the job; empty: none, and from then on a rank that ends
             has not failed by itself

Orders come as signals: TERM (stop), ABRT (stacks), USR1, USR2.  It ends when the engine has ended, with its status.
The environment: LAUNCH_SECRET, LAUNCH_LOGS.
"""

from __future__ import annotations

import os
import select
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Iterable
else:
    import _signal  # the module signal imports enum, which takes longer than all the rest

BLOCK = 1 << 16
LINE = 4000  # bytes; the kernel writes up to 4096 to a pipe at once, so lines of others cannot come between
LONGEST = 1 << 20  # bytes of a line that has no end yet
KILLED = 137
_ORDERS: dict[int, tuple[bytes, int]] = {
    _signal.SIGTERM: (b"stop", _signal.SIGURG),
    _signal.SIGABRT: (b"stacks", _signal.SIGABRT),
    _signal.SIGUSR1: (b"USR1", _signal.SIGUSR1),
    _signal.SIGUSR2: (b"USR2", _signal.SIGUSR2),
}


class Relay:
    """What is known of one engine."""

    def __init__(self, bus: int, secret: bytes, logs: bytes, cancelled: bytes) -> None:
        self.bus, self.secret, self.logs, self.cancelled = bus, secret + b" ", logs, cancelled
        self.ordered = False  # somebody has ordered the ranks to stop
        self.told = b"exit"  # how to tell that a rank has ended
        self.failed = 0  # the last status of a rank that was not 0
        self.engine: int | None = None  # its process id
        self.status: int | None = None  # the engine's, once it has ended
        self._trainers: dict[bytes, bytes] = {}  # rank -> pid of its trainer
        self._rest = b""
        self._forget()

    def _forget(self) -> None:
        self._began: list[bytes] = []
        self._ended: list[bytes] = []
        self._stacks: list[bytes] = []
        self._own: list[bytes] = []
        self._files: dict[bytes, list[bytes]] = {}
        self._grown = b""

    def take(self, block: bytes, at_end: bool = False) -> None:
        """Handles the next bytes of the engine's stdout."""
        *lines, self._rest = (self._rest + block).split(b"\n")
        if at_end or len(self._rest) > LONGEST:
            lines.append(self._rest)
            self._rest = b""
        for line in lines:
            if line:
                self._line(line)
        self._tell()

    def _line(self, line: bytes) -> None:
        """With the secret, maybe behind a label of mpirun or srun, it is from an agent; else from the engine itself."""
        _, found, said = line.partition(self.secret)
        word, _, rest = said.partition(b" ")
        rank, _, value = rest.partition(b" ")
        if found and word == b"cancelled" and not rank:
            self._cancelled()
        elif not found or not rank.isdigit() or not self._of_rank(word, rank, value):
            self._own.append(line + b"\n")

    def _of_rank(self, word: bytes, rank: bytes, value: bytes) -> bool:
        """Keeps what an agent says of its rank, or the runner of the engine; False if it can be from none."""
        if word == b"engine":
            self.engine = int(rank)
        elif word == b"ended":
            self.status = int(rank)
        elif word == b"exit" and value.isdigit():
            self._ended += (rank, value)
            self.failed = int(value) or self.failed
        elif word == b"start" and len(value.split()) == 2:  # its process and its host
            self._trainers[rank] = value.split()[0]
            self._began += (rank, value)
        elif word == b"line":
            self._files.setdefault(b"rank_%s.log" % rank, []).append(value + b"\n")
        elif word == b"plog":
            name = b"plog/rank_%s/debug/plog/plog-%s_away.log" % (rank, self._trainers.get(rank, b"0"))
            self._files.setdefault(name, []).append(value + b"\n")
        elif word == b"wrote":
            self._grown = rank
        elif word == b"stack":
            self._stacks.append(b".stack %s %s\n" % (rank, value))
        else:
            return False
        return True

    def _cancelled(self) -> None:
        """The engine, not the launcher, has told an agent to end."""
        if self.cancelled:
            self._tell()
            write(self.bus, b".%s\n" % self.cancelled)
        elif not self.ordered and self.told == b"exit":
            self._tell()
            self.told = b"was"

    def _tell(self) -> None:
        """Everything that was kept, first the lines of logs, because the supervisor may print those."""
        write(1, b"".join(self._own))  # the engine's log
        for name, texts in self._files.items():
            append(os.path.join(self.logs, name), b"".join(texts))
        self._say(b"began", self._began)
        for line in self._stacks:  # an agent says where its rank is before it says that the rank has ended
            write(self.bus, line)
        self._say(self.told, self._ended)
        if self._grown:
            write(self.bus, b".wrote %s\n" % self._grown)
        self._forget()

    def _say(self, event: bytes, words: Iterable[bytes]) -> None:
        """The event with all its words, in as few lines as possible.  Two words belong together."""
        line = b""
        pairs = iter(words)
        for rank, value in zip(pairs, pairs):
            if len(line) + len(rank) + len(value) > LINE:
                write(self.bus, line + b"\n")
                line = b""
            line += b" %s %s" % (rank, value) if line else b".%s %s %s" % (event, rank, value)
        if line:
            write(self.bus, line + b"\n")


def write(descriptor: int, text: bytes) -> None:
    """Writes all of it; not what a full disk, or a pipe that nobody reads, does not take."""
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


def order(number: int, engine: int | None, orders: int, way: str) -> None:
    """Passes on the order that came as this signal.  If it comes too early it is lost; the supervisor repeats it."""
    word, signal = _ORDERS[number]
    if way == "stdin":
        write(orders, b".%s\n" % word)
    elif engine is not None:
        try:
            os.kill(engine, signal)
        except ProcessLookupError:
            return  # it has ended


def lives(child: int) -> bool:
    """Whether this child of ours has not ended."""
    try:
        return os.waitpid(child, os.WNOHANG)[0] == 0
    except ChildProcessError:
        return False


def wakes() -> int:
    """From now on a signal ends no wait and no write: it is a byte in this pipe."""
    wake, signals = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(signals, False)
    _signal.set_wakeup_fd(signals, warn_on_full_buffer=False)
    for number in (*_ORDERS, _signal.SIGCHLD):
        _signal.signal(number, lambda *_: None)
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)  # as in a shell, without a traceback
    return wake


def some(descriptor: int) -> bytes:
    """What is there to read; nothing if there is nothing yet."""
    try:
        return os.read(descriptor, BLOCK)
    except BlockingIOError:
        return b""


def main(words: list[str]) -> int:
    """Relays until the engine has ended; returns the exit code."""
    runner, pipe, orders, bus = map(int, words[:4])
    relay = Relay(bus, os.environb[b"LAUNCH_SECRET"], os.environb[b"LAUNCH_LOGS"], os.fsencode(words[5]))
    wake = wakes()
    os.set_blocking(pipe, False)
    waiting = select.poll()
    waiting.register(pipe, select.POLLIN)
    waiting.register(wake, select.POLLIN)
    while relay.status is None:
        if not waiting.poll(1000):
            wake_up(runner)
        runs = lives(runner)  # first: what it wrote is in the pipe
        for number in some(wake):
            if number in _ORDERS:
                relay.ordered = relay.ordered or number == _signal.SIGTERM
                order(number, relay.engine, orders, words[4])
        block = some(pipe)
        relay.take(block)
        if not block and not runs:
            relay.status = KILLED  # it could not write "ended"
    relay.take(b"", at_end=True)
    return relay.failed if relay.status == 0 and relay.told == b"was" else relay.status


def wake_up(runner: int) -> None:
    """Wakes the shell that runs the engine, if somebody has stopped it."""
    try:
        os.kill(runner, _signal.SIGCONT)
    except ProcessLookupError:
        return  # it has ended


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))
