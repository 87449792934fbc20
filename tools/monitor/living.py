"""Determines which ranks have a process on this host: the one that became the trainer, by its environment.

The environment of a process is read once.  After that only its state is read.  Other processes are examined only when a
rank is missing.
"""

from __future__ import annotations

import os

from tools.launch import member_processes
from tools.supervise import proc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SOONEST, LATEST = 2.0, 64.0  # seconds between two searches for ranks that were not found yet


class Living:
    """The ranks of one attempt.  Times are seconds of a monotonic clock."""

    def __init__(self, job: str, host_of: Mapping[int, str], folder: str = "/proc") -> None:
        """job: the mark LAUNCH_JOB of its processes; host_of: the host of each rank."""
        self._mark, self._proc = os.fsencode(f"LAUNCH_JOB={job}"), folder
        self._host_of = host_of
        self._found: dict[int, tuple[str, int]] = {}  # rank: process id, and when it began
        self._words: dict[int, bytes] = {}  # of the command of each
        self._alive: set[int] = set()
        self._here: set[str] = set()  # hosts of which a rank was found
        self._search_at, self._pause = 0.0, SOONEST

    def look(self, now: float) -> dict[int, bool]:
        """{rank: whether it runs}, without the ranks of other hosts: what runs there cannot be seen."""
        gone = {rank for rank in self._alive if self._began(self._found[rank][0]) != self._found[rank][1]}
        if gone:
            self._alive -= gone
            self._follow(gone)
        if now >= self._search_at and len(self._found) < len(self._host_of):
            self._search()
            self._search_at = now + self._pause
            self._pause = min(LATEST, self._pause * 2)
        one_host = len(set(self._host_of.values())) < 2
        return {rank: rank in self._alive for rank, host in self._host_of.items() if one_host or host in self._here}

    def _search(self) -> None:
        """Looks for ranks that were not found yet."""
        self._take(self._oldest(lambda rank: rank not in self._found))

    def _follow(self, gone: set[int]) -> None:
        """A start script may have ended, and its training lives on: with another command than a loader of a trainer."""
        oldest = self._oldest(lambda rank: rank in gone)
        self._take({rank: row for rank, row in oldest.items() if self._words_of(row[1]) != self._words.get(rank)})

    def _oldest(self, wanted: Callable[[int], bool]) -> dict[int, tuple[int, str]]:
        """{rank: (when it began, process id)}: of several processes of one the oldest is the trainer itself."""
        known = {pid for pid, _ in self._found.values()}
        oldest: dict[int, tuple[int, str]] = {}
        for pid in os.listdir(self._proc):
            rank = self._rank_of(pid) if pid.isdecimal() and pid not in known else None
            began = None if rank is None or not wanted(rank) else self._began(pid)
            if rank is not None and began is not None:
                oldest[rank] = min(oldest.get(rank, (began, pid)), (began, pid))
        return oldest

    def _take(self, oldest: Mapping[int, tuple[int, str]]) -> None:
        for rank, (began, pid) in oldest.items():
            self._found[rank] = (pid, began)
            self._words[rank] = self._words_of(pid)
            self._alive.add(rank)
            self._here.add(self._host_of[rank])

    def _words_of(self, pid: str) -> bytes:
        try:
            with open(f"{self._proc}/{pid}/cmdline", "rb") as file:
                return file.read()
        except OSError:
            return b""

    def _rank_of(self, pid: str) -> int | None:
        """The rank of this job that the process has in its environment."""
        rank = member_processes.rank_of(pid, self._mark, self._proc)
        return rank if rank in self._host_of else None

    def _began(self, pid: str) -> int | None:
        """When the process began, in ticks of the kernel; None if it does not run."""
        words = proc.stat(pid, self._proc)
        return None if not words or words[0] in b"ZX" else int(words[19])
