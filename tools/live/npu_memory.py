"""The memory that the ranks' processes take on NPUs, by npu-smi; a thread asks it, because it takes seconds."""

from __future__ import annotations

import threading

from hccl_tools.machine import driver, npu_use, programs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_EVERY = 30.0  # seconds
_MIB = 1 << 20


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
