"""The machine: processors, memory, limits of the container and of the user, clock; and the versions of software."""

from __future__ import annotations

import ctypes
import os
import resource
import sys
import time

from hccl_tools.common.numbers import whole_number
from hccl_tools.machine import distributions, driver, interpreter
from hccl_tools.machine.distributions import Distributions
from hccl_tools.machine.driver import root
from tools.doctor import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from tools.preflight.difference import Value
    from tools.preflight.question import Question

_PIDS = ("/sys/fs/cgroup/pids", "/sys/fs/cgroup/pids/pids")  # of both versions of control groups
_UNSYNCHRONISED = 0x40  # STA_UNSYNC of <sys/timex.h>
_STATUS_AT = 5  # of struct timex, whose members have the size of a long up to there
# The limits of a control group, for both versions of those.
_MOST_MEMORY = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_USED_MEMORY = ("/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory/memory.usage_in_bytes")
_QUOTA = "/sys/fs/cgroup/cpu/cpu.cfs_quota_us"
_PERIOD = "/sys/fs/cgroup/cpu/cpu.cfs_period_us"
_NO_LIMIT = 1 << 60  # bytes; the first version writes a limit near 2^63 where there is none
_MOST_MODULES = 20  # of the program's modules
WITHOUT_VERSION = "?"  # a module that can be imported, and that no distribution has
_MINDSPORE = ("mindspore", "mindspore-ascend", "mindspore-gpu", "mindspore-dev")


def collect(_: Question) -> dict[str, Value]:
    """The facts that the kernel reports."""
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


def collect_clock(_: Question) -> dict[str, Value]:
    """The zone by its distance from UTC: its names differ; and whether something keeps the clock right."""
    facts: dict[str, Value] = {"time_zone": time.strftime("%z")}
    status = _status()
    if status is not None:
        facts["clock_kept"] = not status & _UNSYNCHRONISED
    return facts


def _status() -> int | None:
    """What the kernel reports about its clock; None where it does not tell."""
    buffer = (ctypes.c_long * 64)()  # larger than the structure; modes 0: only read
    if ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(buffer)) < 0:
        return None
    return int(buffer[_STATUS_AT]) & 0xFFFFFFFF


def collect_limits(_: Question) -> dict[str, Value]:
    """The limits of processes that begin here, as the ranks of a launch over ssh do; None: unlimited."""
    return {
        "open_files": _soft(resource.RLIMIT_NOFILE),
        "locked_memory": _soft(resource.RLIMIT_MEMLOCK),
        "processes": _processes(),
    }


def _soft(name: int) -> int | None:
    soft, _ = resource.getrlimit(name)
    return None if soft == resource.RLIM_INFINITY else soft


def _processes() -> int | None:
    """Those that may begin: ulimit -u does not count for root, and a control group counts those that run."""
    left = [] if os.geteuid() == 0 else [_soft(resource.RLIMIT_NPROC)]
    for name in _PIDS:
        most, used = files.number(f"{name}.max"), files.number(f"{name}.current")
        if most is not None:
            left.append(max(0, most - (used or 0)))
    return min((number for number in left if number is not None), default=None)


def collect_software(question: Question) -> dict[str, Value]:
    """The versions; one of MindSpore that is installed and cannot be imported counts, too."""
    installed = Distributions()
    return {
        "python": sys.version.split()[0],
        "mindspore": next(filter(None, (_version(installed.find(name)) for name in _MINDSPORE)), None),
        "glibc": _glibc(),
        "cann": (
            driver.cann_version(question.cann, files.ROOT) if question.cann else driver.installed_cann(files.ROOT)[0]
        ),
        **{part: files.setting(f"{root()}/{part}/version.info", "Version") for part in ("driver", "firmware")},
        **{f"package:{name}": version for name, version in _packages(question.modules, installed).items()},
    }


def _glibc() -> str | None:
    try:
        return (os.confstr("CS_GNU_LIBC_VERSION") or "").rpartition(" ")[2] or None
    except (OSError, ValueError):  # another C library
        return None


def _version(found: tuple[str, str] | None) -> str | None:
    return found and (found[1] or WITHOUT_VERSION)


def _packages(modules: Iterable[str], installed: Distributions) -> dict[str, str | None]:
    """{module: the version of its distribution, after its name where that is another one; None: not installed}."""
    found: dict[str, str | None] = {}
    for module in modules:
        name = interpreter.PACKAGES.get(module, module)
        version = _version(installed.find(name))
        found[module] = version and (version if name == module else f"{name} {version}")
    unknown = [module for module, version in found.items() if version is None]
    owners = installed.owners(unknown) if unknown else {}
    for module in unknown:
        if module in owners:
            found[module] = f"{owners[module][0]} {_version(owners[module])}"
        elif distributions.is_module(module):
            found[module] = WITHOUT_VERSION
    return found


def collect_bytecode(question: Question) -> dict[str, Value]:
    """Packages that each start of Python compiles again, because nothing keeps their compiled files (.pyc).

    A package whose files the next start writes is none of them.
    """
    modules = dict.fromkeys([*distributions.OF_RANKS, *list(question.modules)[:_MOST_MODULES]])
    found = [each for each in distributions.look(modules, os.environ) if each.stays]
    return {"uncompiled": [f"{each.name} ({each.folder})" for each in found]}
