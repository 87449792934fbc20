"""The machine: kernel, distribution, processors and memory, with the limits that a container has."""

from __future__ import annotations

import os

from hccl_tools.common.numbers import whole_number
from tools.doctor import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.preflight.difference import Value
    from tools.preflight.question import Question

# The limits of a control group, for both versions of those.
_MOST_MEMORY = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_USED_MEMORY = ("/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory/memory.usage_in_bytes")
_QUOTA = "/sys/fs/cgroup/cpu/cpu.cfs_quota_us"
_PERIOD = "/sys/fs/cgroup/cpu/cpu.cfs_period_us"
_NO_LIMIT = 1 << 60  # bytes; the first version writes a limit near 2^63 where there is none


def collect(_: Question) -> dict[str, Value]:
    """What the kernel says."""
    memory = _memory()
    limit = _first(_MOST_MEMORY)
    limit = None if limit is None or limit >= _NO_LIMIT else limit
    machine = os.uname()
    facts: dict[str, Value] = {
        "kernel": machine.release,
        "machine": machine.machine,
        "os": files.setting("/etc/os-release", "PRETTY_NAME"),
        "cpus": len(os.sched_getaffinity(0)),
        "cpu_limit": _cpu_limit(),
        "memory_limit": limit,
    }
    if "MemTotal" in memory and "MemAvailable" in memory:
        left = memory["MemAvailable"] if limit is None else min(memory["MemAvailable"], limit - _used(limit))
        facts.update(memory=memory["MemTotal"], memory_free=left)
    return facts


def _memory() -> dict[str, int]:
    """{name: bytes} of /proc/meminfo."""
    rows = (line.partition(":") for line in (files.read("/proc/meminfo") or "").splitlines())
    sizes = ((name, whole_number((text.split() or [""])[0])) for name, _, text in rows)
    return {name: size * 1024 for name, size in sizes if size is not None}


def _used(limit: int) -> int:
    """The bytes of the limit that are used, but for the file cache, which the kernel gives back."""
    used = _first(_USED_MEMORY) or 0
    rows = (line.split() for line in (files.read("/sys/fs/cgroup/memory.stat") or "").splitlines())
    cache = sum(int(row[1]) for row in rows if len(row) == 2 and row[0] in ("inactive_file", "active_file"))
    return min(limit, max(0, used - cache))


def _cpu_limit() -> float | None:
    """The processors whose time the control group may use; None: no limit."""
    words = (files.read("/sys/fs/cgroup/cpu.max") or "").split() or [
        files.read(_QUOTA) or "",
        files.read(_PERIOD) or "",
    ]
    quota, period = (whole_number(word, 1) for word in [*words, "", ""][:2])
    return quota / period if quota and period else None


def _first(paths: tuple[str, ...]) -> int | None:
    return next((number for number in map(files.number, paths) if number is not None), None)
