"""Finds the processes of the ranks on this host, and the memory that they use.

Every process of a job has LAUNCH_JOB in its environment, and RANK_ID if it belongs to a rank.  Reading the environments
of all processes of a host costs some milliseconds.  So this is done rarely, and in between only known processes are
read.
"""

from __future__ import annotations

import os
import threading

from hccl_tools.machine import driver, npu_use, programs
from tools.launch import member_processes
from tools.supervise import proc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tools.live.job import Job

_AHEAD = 10.0  # seconds: less does no harm
_LATE = 70.0  # a change may be seen so late: NFS keeps what it knows of a file for up to 60 s
_EVERY = 30.0  # seconds
_MIB = 1 << 20
_PAGE = os.sysconf("SC_PAGE_SIZE")
_AGAIN = 10.0  # seconds until processes are searched again


class Members:
    """The processes of one job."""

    def __init__(self, folder: str = "/proc") -> None:
        self._proc = folder
        self._of_rank: dict[int, list[int]] = {}
        self._searched: float | None = None
        self.seen: set[int] = set()  # ranks that had a process on this host at some time

    def look(self, job: Job, now: float) -> dict[int, int]:
        """{rank: bytes of memory of its largest process}, of the ranks that live on this host."""
        if job.host != os.uname().nodename:
            return {}
        memory = self._memory()
        if self._searched is None or now - self._searched >= _AGAIN or memory.keys() != self._of_rank.keys():
            self._searched = now
            self._of_rank = self._search(f"LAUNCH_JOB={job.name}@{job.host}")
            memory = self._memory()
        self.seen |= memory.keys()
        return memory

    def held(self) -> set[int]:
        """The ranks all of whose processes are stopped, by SIGSTOP or a debugger."""
        states = ((rank, {proc.state(pid, self._proc) for pid in pids} - {""}) for rank, pids in self._of_rank.items())
        return {rank for rank, found in states if found and found <= set(proc.HELD)}

    def pids(self) -> dict[int, int]:
        """{pid: rank} of all processes that are known."""
        return {pid: rank for rank, pids in self._of_rank.items() for pid in pids}

    def _memory(self) -> dict[int, int]:
        sizes = ((rank, self._largest(pids)) for rank, pids in self._of_rank.items())
        return {rank: size for rank, size in sizes if size}

    def _largest(self, pids: Iterable[int]) -> int:
        """A process that has gone takes nothing; nor does one that has ended, and whose end was not taken."""
        return max(map(self._resident, pids), default=0)

    def _resident(self, pid: int) -> int:
        try:
            with open(f"{self._proc}/{pid}/statm", "rb") as file:
                return int(file.read().split()[1]) * _PAGE
        except (OSError, ValueError, IndexError):
            return 0

    def _search(self, mark: str) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for name in os.listdir(self._proc):
            rank = member_processes.rank_of(name, os.fsencode(mark), self._proc) if name.isdecimal() else None
            if rank is not None:
                found.setdefault(rank, []).append(int(name))
        return found


# ---- The memory that the ranks' processes take on NPUs, by npu-smi; a thread asks it, because it takes seconds.


class NpuMemory:
    """Asks npu-smi now and then, if this host has it."""

    def __init__(self) -> None:
        self._program = driver.find(driver.NPU_SMI)
        self._asked: float | None = None
        self._thread: threading.Thread | None = None
        self._by_process: dict[int, int] = {}

    def look(self, ranks: Mapping[int, int], now: float) -> dict[int, int]:
        """{rank: bytes} as of the last answer; ranks: {pid: rank}."""
        busy = self._thread is not None and self._thread.is_alive()
        if self._program and ranks and not busy and (self._asked is None or now - self._asked >= _EVERY):
            self._asked = now
            self._thread = threading.Thread(target=self._ask, daemon=True)
            self._thread.start()
        found: dict[int, int] = {}
        for pid, size in self._by_process.items():
            if pid in ranks:
                found[ranks[pid]] = found.get(ranks[pid], 0) + size
        return found

    def _ask(self) -> None:
        ended = programs.ask([self._program or driver.NPU_SMI, "info"], npu_use.SECONDS)
        self._by_process = process_memory(ended.stdout) if ended.status == 0 else {}


def process_memory(text: str) -> dict[int, int]:
    """{pid: bytes} of the processes in the second table that ``npu-smi info`` prints."""
    found: dict[int, int] = {}
    for one in npu_use.parse(text, {}).holders:
        if one.memory is not None:
            found[one.pid] = found.get(one.pid, 0) + one.memory * _MIB
    return found


# ---- The clocks of the hosts: a log has the time of the host that writes it, or of its file system.


class Clocks:
    """The lead of the hosts' clocks over ours, if it was observed."""

    def __init__(self) -> None:
        self.wrong: dict[str, float] = {}  # {host: seconds that its clock is ahead}, negative if it is behind

    def take(self, host: str, written: float, before: float, now: float) -> None:
        """Notes that a log of the host changed between two moments of ours; written: when, by the other clock."""
        if before - _LATE <= written <= now + _AHEAD:
            self.wrong.pop(host, None)
        else:
            self.wrong[host] = written - now
