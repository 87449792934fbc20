"""Runs one command per host for many hosts, as many at a time as this machine and the hosts' sshd allow.

Three things are limited:

- Connections that have not logged in yet.  From its MaxStartups on, an sshd drops them at random, and a gateway has
  one sshd for all hosts.  A command whose connection was dropped runs again, and then half as many start at a time.
- Commands that run, by the number of files that this process may open.  If the kernel refuses a process, the next
  one waits until another has ended.
- The output of a command that is kept.

A host that hangs does not delay the others: after PATIENCE it no longer counts among those that log in.
"""

from __future__ import annotations

import collections
import contextlib
import errno
import heapq
import itertools
import re
import selectors
import subprocess
import time
from collections.abc import Callable, Iterable

from hccl_tools.common import how_far
from hccl_tools.common.language import tr
from hccl_tools.hosts.ssh import Call, Running, signals_held
from hccl_tools.machine.programs import Ended, environment

ARRIVING = 32  # connections that log in at the same time, at first
LEAST_ARRIVING = 2
MOST = 512  # commands at the same time
TRIES = 6  # of a command whose connection sshd drops
PATIENCE = 3.0  # seconds after which a connection counts as logged in
FIRST_NEWS, NEWS = 10.0, 30.0  # seconds until the first word about hosts that have not ended, and between two
GRACE = 15.0  # seconds that commands have to end after an interrupt
_SPARE_FILES = 64  # of this process, for everything else
_SHORTAGES = (errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM)
_DROPPED = re.compile(
    rb"(?:kex|ssh)_exchange_identification|Exceeded MaxStartups|Not allowed at this time"
    rb"|Connection reset by|Connection closed by|banner exchange: "
)


def run(
    hosts: Iterable[str],
    call: Callable[[str], Call],
    seconds: float,
    news: Callable[[list[str]], None] | None = None,
    dropped: Callable[[str], None] | None = None,
) -> dict[str, Ended]:
    """{host: how its command ended}, in the order of the hosts.

    call: makes the command of a host; called when the command begins.
    seconds: the limit of each command from its begin; status 124 is a command that was stopped for it.
    news: gets the hosts whose commands have not ended, from time to time.
    dropped: gets each host whose connection an sshd drops before its login.
    After KeyboardInterrupt the stdin of all commands ends; those left after GRACE are killed.
    """
    work = _Work(list(hosts), call, seconds, news, dropped)
    try:
        work.do()
    except KeyboardInterrupt:
        work.interrupt()
        raise
    finally:
        work.close()
    return {host: work.ended[host] for host in work.hosts}


class _Work:
    """The commands of one `run`."""

    def __init__(
        self,
        hosts: list[str],
        call: Callable[[str], Call],
        seconds: float,
        news: Callable[[list[str]], None] | None = None,
        dropped: Callable[[str], None] | None = None,
    ) -> None:
        self.hosts, self.call, self.seconds, self.news, self.dropped = hosts, call, seconds, news, dropped
        self.queue = collections.deque(hosts)
        self.tries: collections.Counter[str] = collections.Counter()
        self.running: set[Running] = set()
        self.arriving: set[Running] = set()
        self.ended: dict[str, Ended] = {}
        self.width, self.narrowed = ARRIVING, time.monotonic()
        self.most = _most()
        self.short = False  # the kernel has refused a process, and none has ended since
        self.selector = selectors.DefaultSelector()
        self.alarms: list[tuple[float, int, Callable[[], None]]] = []  # a heap of (time, number, what to do)
        self.numbers = itertools.count()

    def do(self) -> None:
        if self.news:
            self._after(FIRST_NEWS, self._tell)
        self._begin_some()
        while len(self.ended) < len(self.hosts):
            self._wait()
            self._begin_some()

    def _after(self, seconds: float, action: Callable[[], None]) -> None:
        heapq.heappush(self.alarms, (time.monotonic() + seconds, next(self.numbers), action))

    def _tell(self) -> None:
        if not self.news:  # interrupted
            return
        self.news([host for host in self.hosts if host not in self.ended])
        self._after(NEWS, self._tell)

    # ---- begin -----------------------------------------------------------------------------------

    def _begin_some(self) -> None:
        while self.queue and not self.short and len(self.running) < self.most and len(self.arriving) < self.width:
            host = self.queue.popleft()
            try:
                self._begin(host)
            except OSError as error:
                if error.errno in _SHORTAGES and self.running:
                    self.queue.appendleft(host)
                    self.short = True
                else:
                    self._note(host, Ended(127, "", error.strerror or str(error)))

    def _begin(self, host: str) -> None:
        call = self.call(host)
        self.tries[host] += 1
        with signals_held():
            process = subprocess.Popen(
                call.words,
                stdin=subprocess.DEVNULL if call.sent is None else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment(),
                start_new_session=True,  # away from the terminal, where ssh would ask; `kill` also ends its children
            )
            self._watch(Running(host, call, process))

    def _watch(self, running: Running) -> None:
        """Takes note of a command that has begun."""
        self.running.add(running)
        self.arriving.add(running)
        process = running.process
        for pipe in (process.stdout, process.stderr):
            self.selector.register(pipe, selectors.EVENT_READ, running)  # type: ignore[arg-type]
        if running.to_send:
            self.selector.register(process.stdin, selectors.EVENT_WRITE, running)  # type: ignore[arg-type]
        self._after(PATIENCE, lambda: self.arriving.discard(running))
        self._after(self.seconds, lambda: self._stop(running))

    # ---- while they run --------------------------------------------------------------------------

    def _wait(self) -> None:
        """Waits for the next thing that happens, and handles it."""
        left = self.alarms[0][0] - time.monotonic() if self.alarms else None
        for found, events in self.selector.select(None if left is None else max(0, left)):
            self._handle(found.data, found.fd, events)
        while self.alarms and self.alarms[0][0] <= time.monotonic():
            heapq.heappop(self.alarms)[2]()

    def _handle(self, running: Running, pipe: int, events: int) -> None:
        if running not in self.running:
            return
        if events & selectors.EVENT_WRITE:
            if not running.send():
                self.selector.unregister(pipe)
            return
        assert running.process.stdout
        is_stdout = pipe == running.process.stdout.fileno()
        if running.take(pipe):
            if is_stdout:  # sshd has let us in
                self.arriving.discard(running)
            return
        self.selector.unregister(pipe)
        if is_stdout:  # its stderr may be kept open, by an ssh that stays for later connections
            self._see_end(running, 0.001)

    def _see_end(self, running: Running, pause: float) -> None:
        """Notes the end of a command that has closed its stdout; no event states when it has ended."""
        if running not in self.running:
            return
        if running.process.poll() is None:
            self._after(pause, lambda: self._see_end(running, min(0.5, 2 * pause)))
            return
        assert running.process.stdout and running.process.stderr
        with contextlib.suppress(OSError):
            running.take(running.process.stderr.fileno())
        out = running.output(running.process.stdout.fileno())
        err = running.output(running.process.stderr.fileno())
        self._leave(running)
        if self._is_to_be_tried_again(running, out, err):
            self._after(0.5 * self.tries[running.host], lambda: self.queue.append(running.host))
        else:
            texts = (text.decode("utf-8", "replace") for text in (out, err))
            self._note(running.host, Ended(running.process.returncode, *texts))

    def _note(self, host: str, ended: Ended) -> None:
        """The command of the host has ended for good."""
        self.ended[host] = ended
        how_far.more()

    def _is_to_be_tried_again(self, running: Running, out: bytes, err: bytes) -> bool:
        """Whether sshd has dropped the connection because others were there; then fewer begin at a time."""
        if running.process.returncode != 255 or out or not _DROPPED.search(err):
            return False
        if self.dropped:
            self.dropped(running.host)
        if running.began > self.narrowed:  # once for all that began together
            self.width, self.narrowed = max(LEAST_ARRIVING, self.width // 2), time.monotonic()
        return self.tries[running.host] < TRIES

    def _stop(self, running: Running) -> None:
        if running in self.running:
            self._kill(running)
            self._note(running.host, Ended(124, "", tr("no answer within {seconds} s", seconds=self.seconds)))

    def _kill(self, running: Running) -> None:
        running.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):  # a process that hangs in the kernel does not die
            running.process.wait(timeout=0.1)
        self._leave(running)

    def _leave(self, running: Running) -> None:
        """Lets go of a command that has ended."""
        self.short = False
        self.running.discard(running)
        self.arriving.discard(running)
        for pipe in (running.process.stdin, running.process.stdout, running.process.stderr):
            if pipe:
                with contextlib.suppress(KeyError, ValueError):  # it is not registered, or closed
                    self.selector.unregister(pipe)
                with contextlib.suppress(OSError):
                    pipe.close()

    # ---- the end ---------------------------------------------------------------------------------

    def interrupt(self) -> None:
        """Ends all commands: those that have a stdin by its end, and what is left after GRACE by SIGKILL."""
        self.queue.clear()
        self.news = None
        for running in list(self.running):
            if not running.process.stdin:
                self._kill(running)
                continue
            with contextlib.suppress(KeyError, ValueError):  # it is not registered, or closed
                self.selector.unregister(running.process.stdin)
            running.process.stdin.close()
            self._see_end(running, 0.01)  # the interrupt may have come between an event and our note of it
        deadline = time.monotonic() + GRACE
        self._after(GRACE, lambda: None)  # ends the last wait
        while self.running and time.monotonic() < deadline:
            self._wait()

    def close(self) -> None:
        for running in list(self.running):
            self._kill(running)
        self.selector.close()


def _most() -> int:
    """The number of commands that this process has pipes for."""
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if soft < 0 else max(1, min(MOST, (soft - _SPARE_FILES) // 3))
