"""Finds processes that outlive a rank: a start script that ends with ``python train.py &`` ends before the training.

The script ends with 0.  The rank lasts until these processes have ended, and fails if one of them does.  Not every
process that remains when a rank ends is a training:

  - Helpers end a moment later by themselves.  So the launcher does not mention what ends within MOMENT.
  - Workers of a Python program, which are copies of it or come from its multiprocessing, are ended as usual.
  - A daemon as daemon(3) makes it has a session of its own, the folder / and no output.  It ends with the job.

The launcher has one of these for its own ranks, and an agent for its rank.
"""

from __future__ import annotations

import os

from tools.supervise import proc
from tools.supervise.events import Left, LeftFailed
from tools.supervise.own_files import Outputs
from tools.supervise.proc import signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Protocol, Union

    from tools.supervise.children import Process

    class World(Protocol):
        """The part of the world that they need."""

        def now(self) -> float: ...
        def left(self, job: bytes) -> Mapping[str, list[Process]]: ...
        def was_python(self, name: str) -> bool: ...

    Tell = Callable[[Union[Left, LeftFailed]], object]

MOMENT = 1.0  # seconds that helpers of a rank may need to end
LATEST = 3.0  # seconds; ranks that end one after the other share a message, but it is not later than that
EVERY, OFTEN = 1.0, 0.1  # seconds between two looks at the files of what is waited for, and of what has just been left
REMIND = 10.0  # seconds after the end of a training in which what is left next to it may end, too
BY_SIGNAL = (129, 130, 131, 143)  # HUP, INT, QUIT, TERM
BY_OPTION, WORKERS = "option", "workers"  # why what is left is not waited for


class _Rank:
    """One rank that has ended with 0.

    told: its wait was reported; counts: a failure before that is the rank's; good: what has trained has
    ended with 0; known: the commands of its own program and of what it has left before
    """

    __slots__ = ("counts", "good", "group", "known", "outputs", "processes", "remind_at", "since", "status", "told")

    def __init__(self, group: int | None, outputs: Outputs, since: float, *, python: bool, known: set[bytes]) -> None:
        self.group, self.outputs, self.since, self.known = group, outputs, since, known
        self.counts, self.good, self.told, self.status = not python, python, False, 0
        self.processes: dict[int, Process] = {}
        self.remind_at: float | None = None

    def take(self, processes: Sequence[Process]) -> None:
        """These are left now."""
        self.processes = {process.pid: process for process in processes}
        self.follow()

    def follow(self) -> None:
        """A process that has just begun may not have opened its files yet."""
        for process in self.processes.values():
            self.outputs.follow((process.pid, *process.inner))


class Leftovers:
    """job: the value of LAUNCH_JOB.  words: the command of every rank.  waits: whether anything is waited for.

    tell: gets Left and LeftFailed.  over: gets a rank's name and status when it has ended with all that it had left.
    """

    def __init__(
        self,
        world: World,
        job: bytes,
        words: Callable[[], Sequence[str]],
        tell: Tell,
        over: Callable[[str, int], object],
        *,
        waits: bool,
    ) -> None:
        self._world, self._job, self._words, self._tell, self._over, self._waits = world, job, words, tell, over, waits
        self._ranks: dict[str, _Rank] = {}
        self._stops = False
        self._next_copy = self._next_follow = 0.0

    def hold(self, ended: Iterable[tuple[str, str, int | None]]) -> set[str]:
        """(name, log, process group) of ranks that have just ended with 0; returns those that last, because of what
        they have left."""
        found = self._world.left(self._job)
        own, held = os.fsencode("\0".join(self._words()) + "\0"), set()
        for name, log, group in ended:
            processes = _without_daemons(found.get(name, ()))
            if processes:
                python = self._world.was_python(name)
                rank = _Rank(group, Outputs(log), self._world.now(), python=python, known={own} if python else set())
                rank.take(processes)
                self._ranks[name] = rank
                held.add(name)
        return held

    def __contains__(self, name: str) -> bool:
        return name in self._ranks

    def longest_sleep(self, otherwise: float) -> float:
        """Seconds until there is something to do."""
        if not self._ranks:
            return otherwise
        untold = self._tell_at()
        return min(otherwise, EVERY if untold is None else max(0.01, min(OFTEN, untold - self._world.now())))

    # ---- ends ----------------------------------------------------------------------------------------------------

    def have_ended(self, rows: Iterable[tuple[str, int, int]]) -> None:
        """(rank, process id, status) of processes that ranks have left."""
        empty = []
        for name, pid, status in rows:
            rank = self._ranks.get(name)
            if rank is None:
                continue  # the rank itself still runs, or has failed
            process = rank.processes.pop(pid, None)
            if process is not None:
                rank.known.add(process.words)
            if status and self._fails(rank, status, known=process is not None):
                rank.status = rank.status or status
                if not self._stops:
                    self._tell(LeftFailed(name, pid, os.fsdecode(process.words) if process else ""))
                    self._end(name, status, failed=pid)
                    continue
            elif status == 0 and process is not None and rank.told:
                rank.good, rank.remind_at = True, self._world.now() + REMIND
            if not rank.processes:
                empty.append(name)
        if empty:
            self._look_again(empty)

    def _fails(self, rank: _Rank, status: int, *, known: bool) -> bool:
        """Whether the end of a process that it has left is its failure.

        Who ends a helper by a signal after the training has ended well does no harm; the launcher itself names that.
        """
        if self._stops:
            return True
        if not (known if rank.told else rank.counts):
            return False
        return not (rank.good and status in BY_SIGNAL)

    def _look_again(self, names: Iterable[str]) -> None:
        """What was known has ended; it may have left something, too."""
        found = self._world.left(self._job)
        for name in names:
            rank = self._ranks.get(name)
            if rank is None:
                continue
            processes = _without_daemons(found.get(name, ()))
            if not processes:
                self._end(name, rank.status)
                continue
            rank.take(processes)
            if rank.told:
                rank.told, rank.counts, rank.since = False, False, self._world.now()

    def _end(self, name: str, status: int, failed: int | None = None) -> None:
        self._ranks.pop(name).outputs.close(failed)
        self._over(name, status)

    # ---- time ----------------------------------------------------------------------------------------------------

    def _tell_at(self) -> float | None:
        since = [rank.since for rank in self._ranks.values() if not rank.told]
        return min(max(since) + MOMENT, min(since) + LATEST) if since else None

    def check(self) -> None:
        """Decides about what has not ended within a moment, and copies what the others have written."""
        if not self._ranks:
            return
        now, tell_at = self._world.now(), self._tell_at()
        if now >= self._next_follow:
            self._next_follow = now + OFTEN
            for rank in self._ranks.values():
                if not rank.told:
                    rank.follow()
        if tell_at is not None and now >= tell_at and not self._stops:
            found = self._world.left(self._job)
            for name in [name for name, rank in self._ranks.items() if not rank.told]:
                self._decide(name, self._ranks[name], _without_daemons(found.get(name, ())))
        if now >= self._next_copy:
            self._next_copy = now + EVERY
            for name, rank in self._ranks.items():
                if rank.told:
                    rank.outputs.copy()
                    self._remind(name, rank, now)

    def _remind(self, name: str, rank: _Rank, now: float) -> None:
        """One process has trained and ended, and another one may be no training at all."""
        if rank.remind_at is not None and now >= rank.remind_at and not self._stops:
            rank.remind_at = None
            self._tell(Left(name, _rows(rank.processes.values())))

    def _decide(self, name: str, rank: _Rank, processes: Sequence[Process]) -> None:
        """A rank has ended a moment ago, and these have not."""
        trainings = [process for process in processes if not _is_worker(process, rank.known)]
        if trainings and self._waits:
            rank.take(trainings)
            rank.told = True
            self._tell(Left(name, _rows(trainings)))
            return
        if processes:
            self._tell(Left(name, _rows(processes), BY_OPTION if trainings else WORKERS))
            self._send(rank, processes, signals.SIGTERM)
        self._end(name, rank.status)

    # ---- signals -------------------------------------------------------------------------------------------------

    def signal(self, number: int) -> None:
        """To what is left outside of the ranks' process groups; from now on the end of the job is on its way."""
        self._stops = True
        for rank in self._ranks.values():
            self._send(rank, rank.processes.values(), number)

    def pass_on(self, number: int) -> None:
        """A signal for the trainers: to each process that is left."""
        for rank in self._ranks.values():
            for pid in rank.processes:
                proc.send(pid, number)

    def _send(self, rank: _Rank, processes: Iterable[Process], number: int) -> None:
        for process in processes:
            if process.group == process.pid:
                proc.signal_group(process.group, number)
            elif process.group != rank.group:
                for each in (number, signals.SIGCONT):
                    proc.send(process.pid, each)

    def give_up(self) -> None:
        """Gives up: even SIGKILL has not ended the remaining processes."""
        for name in list(self._ranks):
            self._end(name, 137)

    def again(self) -> None:
        """Prepares the next attempt."""
        self._stops = False


def _rows(processes: Iterable[Process]) -> list[tuple[int, int, str]]:
    return [(process.pid, process.group, os.fsdecode(process.words)) for process in processes]


def _is_worker(process: Process, known: set[bytes]) -> bool:
    """Whether it is a copy of a Python program that has ended, or a process of Python's multiprocessing."""
    if process.session != os.getsid(0):
        return False  # it has made itself independent
    return process.words in known or b"from multiprocessing." in process.words


def _without_daemons(processes: Iterable[Process]) -> list[Process]:
    return [process for process in processes if process.session == os.getsid(0) or not _is_daemon(process.pid)]


def _is_daemon(pid: int) -> bool:
    try:
        if os.readlink(f"/proc/{pid}/cwd") != "/" or os.getcwd() == "/":
            return False
    except OSError:
        return False
    return all(map(_is_silent, (f"/proc/{pid}/fd/1", f"/proc/{pid}/fd/2")))


def _is_silent(stream: str) -> bool:
    try:
        return os.readlink(stream) == os.devnull
    except FileNotFoundError:
        return True  # it is closed
    except OSError:
        return False
