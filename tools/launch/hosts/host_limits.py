"""The limits of this host that a job on many hosts would reach: what mpirun and srun hold here for each host.

The numbers were measured in the lab, with 2 to 64 hosts: docs/scale.md.  Below them mpirun 4.1 ends by SIGSEGV, mpirun
5 ends or hangs, and srun loses nodes.  None of them reports the cause.
"""

from __future__ import annotations

import os
import resource
from collections import Counter
from collections.abc import Iterator

from hccl_tools.common.language import tr
from hccl_tools.common.refusal import REFUSED, Refusal
from hccl_tools.common.words import clauses
from hccl_tools.machine import system_files
from tools.launch.engines.placement import Placement
from tools.launch.hosts import network
from tools.launch.request import Request

_OWN_FILES = 28  # that mpirun has open without hosts and ranks, at its start
_FILES_OF_RANK = 2  # of mpirun, for each rank of this host
_SRUN_FILES = 16  # the same of srun, which has one more for each node
_OWN_PROCESSES = 16  # the launcher's and mpirun's
_MANY = 64  # hosts; with fewer, the processes of the user are not counted
_PIDS = "/sys/fs/cgroup/pids."  # of a container


def check(request: Request, placement: Placement) -> None:
    """Raises Refusal, with one line per limit that is too low for the hosts of the job."""
    ranks = Counter(placement.hosts)
    lines: list[str] = []
    if len(ranks) > 1 and request.engine == "mpirun":
        here = sum(ranks[name] for name in set(ranks) - set(network.others(ranks)))
        lines = [*_files_of_mpirun(len(ranks), here), *_processes(len(ranks))]
    elif len(ranks) > 1 and request.engine == "srun":
        lines = list(_files_of_srun(len(ranks)))
    if lines:
        raise Refusal(REFUSED, *lines)


def _files_of_mpirun(hosts: int, here: int) -> Iterator[str]:
    """One connection for each host, because mpirun is next to all of them (routed_radix)."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = hosts + _FILES_OF_RANK * here + _OWN_FILES
    if not 0 <= soft < needed:
        return
    few = tr(
        "ulimit -n is {number}; for {hosts} hosts mpirun needs {needed} open files",
        number=soft,
        hosts=hosts,
        needed=needed,
    )
    yield clauses(few, more_files(hard, needed))


def _files_of_srun(nodes: int) -> Iterator[str]:
    """One connection for each node; srun itself raises its soft limit to the hard one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = nodes + _SRUN_FILES
    if 0 <= hard < needed:
        few = tr(
            "ulimit -Hn is {number}; for {nodes} nodes srun needs {needed} open files",
            number=hard,
            nodes=nodes,
            needed=needed,
        )
        yield clauses(few, more_files(hard, needed))


def more_files(hard: int, needed: int) -> str:
    """The remedy where `needed` files must be open; hard: ulimit -Hn, below 0: unlimited."""
    if hard < 0 or hard >= needed:
        return tr("type: ulimit -n {number}", number="unlimited" if hard < 0 else hard)
    return tr(
        "raise nofile in /etc/security/limits.conf to {number} or more, or the container's "
        "(docker run --ulimit nofile={number})",
        number=max(65536, 2 * needed),
    )


def _processes(hosts: int) -> Iterator[str]:
    """One ssh for each other host, which stays until the job ends."""
    if hosts < _MANY:
        return
    needed = hosts + _OWN_PROCESSES
    limit, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    if limit >= 0 and os.geteuid() and limit - _running() < needed:  # root has no such limit
        yield tr(
            "ulimit -u is {number}, and {running} processes and threads of yours run; for {hosts} hosts mpirun starts "
            "{needed} more: raise nproc in /etc/security/limits.conf",
            number=limit,
            running=_running(),
            hosts=hosts,
            needed=needed,
        )
    most, used = (system_files.number(_PIDS + name) for name in ("max", "current"))
    if most is not None and used is not None and most - used < needed:
        yield tr(
            "this container may have {number} processes and has {running}; for {hosts} hosts mpirun starts {needed} "
            "more: start it with a larger --pids-limit",
            number=most,
            running=used,
            hosts=hosts,
            needed=needed,
        )


def _running() -> int:
    """The processes and threads of this user, which count against ulimit -u."""
    user, found = os.getuid(), 0
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.stat(f"/proc/{name}").st_uid == user:
                found += len(os.listdir(f"/proc/{name}/task"))
        except OSError:  # it has ended
            continue
    return found
