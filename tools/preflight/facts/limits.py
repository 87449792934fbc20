"""What this user may use: open files, processes, locked memory."""

from __future__ import annotations

import os
import resource

from tools.doctor import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.preflight.difference import Value
    from tools.preflight.question import Question

_PIDS = ("/sys/fs/cgroup/pids", "/sys/fs/cgroup/pids/pids")  # of both versions of control groups


def collect(_: Question) -> dict[str, Value]:
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
