"""The world of the supervisor: its clock, its children, the signals for it, and files that become readable.

The loop asks for events and gets rows of events.py.  Tests use another world, without processes and without time.
"""

from __future__ import annotations

import errno
import os
import select
import sys
import time

from tools.supervise import proc
from tools.supervise.children import Children
from tools.supervise.events import Ended, LeftEnded, Signalled
from tools.supervise.proc import signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from hccl_tools.common.record import Row
    from tools.supervise.children import Process

    Take = Callable[[bytes], Iterable[Row]]
    Get = Callable[[int, int], bytes]

HANDLED = (signals.SIGINT, signals.SIGTERM, signals.SIGHUP, signals.SIGQUIT, signals.SIGUSR1, signals.SIGUSR2)
_RESET = (signals.SIGPIPE, signals.SIGXFSZ, signals.SIGCHLD)  # Python ignores the first two
_BLOCK = 1 << 16


class CannotStart(Exception):
    """There may be no more processes; args[0]: why."""


class World:
    """The real one."""

    def __init__(self, handled: tuple[int, ...] = HANDLED, ignored: int = 0) -> None:
        """handled: the signals that are events; ignored: the mask of those that the caller ignores."""
        self._handled = handled
        self._reset = [number for number in _RESET if not ignored >> (number - 1) & 1]
        self.children = Children()
        self._sources: dict[int, tuple[Take, Get]] = {}
        self._poll = select.poll()
        self._wake: int | None = None
        self._signals: list[Signalled] = []  # that nobody has asked for yet
        self.owned: set[int] = set()  # descriptors that no child of ours may keep

    # ---- time ------------------------------------------------------------------------------------------------------

    def now(self) -> float:
        """Seconds on a clock that cannot be set while a job runs."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    # ---- signals ---------------------------------------------------------------------------------------------------

    def heed_signals(self) -> None:
        """Turns signals into events from now on.  Signals that the caller ignores stay ignored, as under nohup."""
        wake, wakes = os.pipe()
        for end in (wake, wakes):
            os.set_blocking(end, False)
        self._wake = wake
        self.own(wake, wakes)
        for number in self._handled:
            if signals.getsignal(number) != signals.SIG_IGN:
                signals.signal(number, _nothing)
        signals.signal(signals.SIGCHLD, _nothing)  # also where the caller ignores it: we want our children's ends
        signals.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        self._poll.register(wake, select.POLLIN)

    # ---- children --------------------------------------------------------------------------------------------------

    def own(self, *descriptors: int) -> None:
        """Descriptors that a forked child closes first; one that is started never has them."""
        self.owned.update(descriptors)

    def start(
        self,
        name: str,
        words: list[str],
        environment: Mapping[bytes, bytes],
        out: int,
        stdin: int | None = None,
        error: int | None = None,
    ) -> int:
        """Starts a member in a process group of its own; returns its process id.

        out, stdin, error: descriptors of its log, and of other files than /dev/null and the log.
        Raises OSError if the program cannot be run, and CannotStart.
        """
        actions: list[tuple[int, ...] | tuple[int, int, str, int, int]] = []
        if stdin is None:
            actions.append((os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0))
        else:
            actions.append((os.POSIX_SPAWN_DUP2, stdin, 0))
        actions += [(os.POSIX_SPAWN_DUP2, out, 1), (os.POSIX_SPAWN_DUP2, out if error is None else error, 2)]
        pid = self._spawn(words, environment, actions)
        self.children.began(pid, name)
        return pid

    def _spawn(self, words: list[str], environment: Mapping[bytes, bytes], actions: list[tuple]) -> int:  # type: ignore[type-arg]
        options = {"file_actions": actions, "setpgroup": 0, "setsigdef": self._reset}
        try:
            return os.posix_spawnp(words[0], words, environment, **options)  # type: ignore[arg-type]
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.ENOMEM):
                raise CannotStart(error.strerror) from error
            if error.errno != errno.ENOEXEC:
                raise
        # a script without a first line "#!": any shell and env run it by sh
        return os.posix_spawn("/bin/sh", ["sh", *words], environment, **options)  # type: ignore[arg-type]

    def fork(self, task: Callable[[], object], *, group: bool = True) -> int:
        """Runs `task` in a forked child, whose end is not judged; returns its process id.

        group: in a process group of its own, so that Ctrl-C does not reach it.  Raises OSError.
        """
        pid, held = proc.fork_unheard()
        if pid:
            self.children.others.add(pid)
            return pid
        code = 1
        try:
            signals.set_wakeup_fd(-1)
            for number in (*self._handled, signals.SIGCHLD):
                if signals.getsignal(number) is _nothing:
                    signals.signal(number, signals.SIG_DFL)
            proc.hear(held)
            for descriptor in self.owned:
                _close(descriptor)
            if group:
                os.setpgid(0, 0)
            task()
            code = 0
        except Exception as error:
            sys.excepthook(type(error), error, error.__traceback__)
        finally:
            os._exit(code)

    def adopt(self, pid: int) -> None:
        """A child that was forked elsewhere."""
        self.children.others.add(pid)

    def lives(self, pid: int | None) -> bool:
        """Whether this forked child has not ended; None: any of them."""
        self.children.reap()
        return bool(self.children.others) if pid is None else pid in self.children.others

    def status(self, pid: int) -> int | None:
        """The exit status of this forked child, once it has ended."""
        self.children.reap()
        return self.children.statuses.get(pid)

    def await_end(self, pid: int | None, seconds: float) -> bool:
        """Waits for this forked child, or for all; False if one lives after that time.  Signals wait for `events`."""
        end = self.now() + seconds
        while self.lives(pid):
            left = end - self.now()
            if left <= 0:
                return False
            self._signals += self._wait(min(left, 0.5))
        return True

    def await_shown(self, pid: int) -> bool:
        """Waits for this forked child; False if a signal that would stop the job comes before."""
        while not self.await_end(pid, 0.5):
            if any(signalled.number not in (signals.SIGUSR1, signals.SIGUSR2) for signalled in self._signals):
                return False
        return True

    def has_ended(self, name: str, status: int) -> None:
        """A member could not be started: its end is an event, too."""
        self.children.ends.append((name, status))

    def signal_group(self, group: int, number: int) -> None:
        """Signals a member's process group."""
        proc.signal_group(group, number)

    def signal_leftovers(self, group: int) -> None:
        """SIGTERM to what a member has left in its group."""
        try:
            os.killpg(group, signals.SIGTERM)
        except OSError:
            return  # nothing is left, or it is another user's

    def send(self, pid: int, number: int) -> bool:
        """Signals a member's first process alone."""
        return proc.send(pid, number)

    def pass_on(self, pid: int, number: int) -> bool:
        """The same with SIGUSR1 or SIGUSR2, see `proc.pass_on`."""
        return proc.pass_on(pid, number)

    def living_groups(self, groups: set[int]) -> set[int]:
        """The groups among these in which a process runs."""
        return proc.living_groups(groups)

    def kill(self, pid: int, number: int = signals.SIGKILL) -> None:
        """Signals this forked child, unless it has ended."""
        if self.lives(pid):
            proc.send(pid, number)

    def left(self, job: bytes) -> dict[str, list[Process]]:
        """{member: the processes that it has left behind and that run}; see Children.left."""
        return self.children.left(job)

    def was_python(self, name: str) -> bool:
        """Whether this member was Python when it ended."""
        return name in self.children.pythons

    # ---- what can be read ------------------------------------------------------------------------------------------

    def watch(self, descriptor: int, take: Take, get: Get = os.read) -> None:
        """Passes what can be read there to `take` from now on, which returns events; b"" is the end.

        get: reads; raises BlockingIOError where nothing is there.
        """
        os.set_blocking(descriptor, False)
        self._sources[descriptor] = take, get
        self._poll.register(descriptor, select.POLLIN)
        self.own(descriptor)

    def unwatch(self, descriptor: int) -> None:
        """Reads no more there, and closes it."""
        if self._sources.pop(descriptor, None) is not None:
            self._poll.unregister(descriptor)
            self.disown(descriptor)

    def disown(self, descriptor: int) -> None:
        """Closes it."""
        self.owned.discard(descriptor)
        _close(descriptor)

    # ---- events ----------------------------------------------------------------------------------------------------

    def events(self, seconds: float) -> list[Row]:
        """The events, after this time at the latest; empty: nothing has happened."""
        heard, self._signals = self._signals, []
        children = self.children
        heard += self._wait(0 if children.ends or children.left_ends or heard else seconds)
        children.reap()  # before the engines' lines are read: all that an engine wrote before its end is there then
        heard += self._heard()  # a signal to us and to a rank: we have it before we see that rank's end
        found: list[Row] = [*heard]
        ended, left_ended = children.take_ends()
        for descriptor in list(self._sources):
            found += self._read(descriptor)
        if ended:
            found.append(Ended(ended))
        if left_ended:
            found.append(LeftEnded(left_ended))
        return found

    def _wait(self, seconds: float) -> list[Signalled]:
        """Sleeps; returns the signals that have come."""
        self._poll.poll(max(0, int(seconds * 1000 + 0.999)))
        return self._heard()

    def _heard(self) -> list[Signalled]:
        try:
            numbers = os.read(self._wake, 4096) if self._wake is not None else b""
        except BlockingIOError:
            return []
        return [Signalled(number) for number in numbers if number in self._handled]

    def _read(self, descriptor: int) -> list[Row]:
        found: list[Row] = []
        take, get = self._sources[descriptor]
        for _ in range(64):  # others have a turn, too
            try:
                block = get(descriptor, _BLOCK)
            except BlockingIOError:
                break
            except OSError:
                block = b""
            found += take(block)
            if not block:
                self.unwatch(descriptor)
                break
        return found


def _nothing(*_: object) -> None:
    """A handler: the number of the signal is in the wakeup pipe."""


def _close(descriptor: int) -> None:
    try:
        os.close(descriptor)
    except OSError:
        return
