"""The guardian: a forked child that ends the job's processes if its launcher was killed and could not do so itself.

It reads a pipe, the lifeline, which only the launcher holds open.  The launcher sends "start PGID" and "gone PGID"
through it.  The end of the pipe means that the launcher is dead, because after a normal end the launcher kills the
guardian.  Some processes have left their group, or started in the launcher's last moment.  The job's mark in their
environment identifies them.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable

from tools.supervise import proc
from tools.supervise.proc import signals

LOOK_EVERY = 10  # seconds
TICK = 0.05


class Guardian:
    """The launcher's side: its end of the lifeline, and the child.

    settle: what the guardian does last, when no process of the job is left.
    Raises OSError where no more processes may be started.
    """

    def __init__(self, job: str, grace: int, settle: Callable[[], object]) -> None:
        launcher = os.getpid()
        leads = os.getpgid(0) == launcher  # which the guardian cannot ask when the launcher is dead
        out, self.lifeline = os.pipe()
        self.pid, held = proc.fork_unheard()
        if self.pid == 0:
            try:
                quiet()
                proc.hear(held)
                os.close(self.lifeline)
                guard(out, launcher, leads, os.fsencode(job), grace)
                settle()
            finally:
                os._exit(0)
        # The guardian does so, too, but perhaps later.  If it is stopped and the launcher killed, the kernel wakes only
        # groups that have lost their last link to the session; the launcher's own has none.
        os.setpgid(self.pid, self.pid)
        os.close(out)
        os.set_blocking(self.lifeline, False)  # a guardian that was stopped must not stop the launcher

    def tell(self, word: bytes, group: int) -> None:
        """start or gone, and the group."""
        try:
            os.write(self.lifeline, b"%s %d\n" % (word, group))
        except OSError:
            return  # it was killed, or does not read: the mark of the job is left

    def end(self) -> None:
        """Ends the guardian: after a normal end there is nothing to guard."""
        proc.send(self.pid, signals.SIGKILL)


def quiet() -> None:
    """Lets only the lifeline end the guardian."""
    proc.ignore(signals.SIGTERM, *proc.QUIET)
    signals.set_wakeup_fd(-1)


def guard(lifeline: int, launcher: int, leads: bool, job: bytes, grace: int) -> None:
    """Runs in the child until the launcher is dead; leads: it was the first of its group."""
    os.setpgid(0, 0)
    proc.retitle(b"mindspore-launch-guardian")
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    groups: set[int] = set()
    follow(lifeline, launcher, LOOK_EVERY, lambda: wake_starting(launcher), groups)
    if leads:  # in a session of its own no other process wakes what is left of its group
        proc.signal_group(launcher, signals.SIGCONT)
    finish(job, groups, grace)


def wake_starting(launcher: int) -> None:
    """Wakes a process that the launcher is starting, if it was stopped.

    Until such a process has become another program it has the launcher's memory, and the kernel lets the launcher do
    nothing, not even heed SIGTERM: see vfork(2).
    """
    if proc.stat(launcher)[:1] != [b"D"]:
        return
    words = proc.words(launcher)
    for pid in proc.numbers():
        if proc.stat(pid)[:2] == [b"T", b"%d" % launcher] and proc.words(pid) == words:
            proc.send(int(pid), signals.SIGCONT)


def follow(lifeline: int, parent: int, every: float, look: Callable[[], object], groups: set[int]) -> None:
    """Returns when the parent is dead; `groups` has the process groups that live then.

    Calls `look` after each `every` seconds without a word.  If the launcher's whole group was stopped before it was
    killed, a stopped process of it may hold the lifeline open.
    """
    rest = b""
    waiting = select.poll()
    waiting.register(lifeline, select.POLLIN)
    while True:
        if not waiting.poll(every * 1000):
            look()
            if os.getppid() != parent:
                return
            continue
        data = os.read(lifeline, 1 << 16)
        if not data:
            return
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            word, _, number = line.partition(b" ")
            (groups.add if word == b"start" else groups.discard)(int(number))


def kill(groups: set[int]) -> None:
    """SIGKILL to these process groups, and to nothing else."""
    for group in groups:
        proc.signal_group(group, signals.SIGKILL)


def finish(job: bytes, groups: set[int], grace: float, rank: bytes = b"") -> None:
    """SIGTERM, and after the grace time SIGKILL, to all that is left of the job, or of one of its ranks."""
    for group in groups:
        proc.signal_group(group, signals.SIGTERM)
    for pid in proc.marked(job, rank):
        proc.send(pid, signals.SIGTERM)
        proc.send(pid, signals.SIGCONT)
    end = time.monotonic() + grace
    while time.monotonic() < end:
        if not proc.marked(job, rank) and not proc.living_groups(groups):
            return
        time.sleep(TICK)
    for group in groups:
        proc.signal_group(group, signals.SIGKILL)
    proc.sweep(job, time.sleep, rank)
