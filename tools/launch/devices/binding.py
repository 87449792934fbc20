"""--bind_core and --bind_numa: which cores the ranks of this host are bound to, and which other jobs have.

Only a launch with one of these options imports this module.  Ranks of other hosts find their cores there, by
cores_here.py.
"""

from __future__ import annotations

import os

from hccl_tools.common.language import tr
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import REFUSED, USAGE, Refusal
from hccl_tools.common.words import count, named
from tools.launch.devices import core_shares, device_locks
from tools.launch.devices.core_shares import CORE, NUMA

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.launch.devices.device_locks import Holder
    from tools.launch.engines.placement import Placement
    from tools.launch.request import Request


class Binding(Record):
    mode: str  # CORE or NUMA
    target: str  # "Ascend", "GPU" or "CPU"
    cores: dict[int, list[int]]  # {rank: its cores}, for the ranks of this host

    def word(self) -> str:
        """The binding as tools/rank/places.py reads it: ``core CPU 0=0,1 1=2,3``."""
        pairs = [f"{rank}={','.join(map(str, cores))}" for rank, cores in self.cores.items()]
        return " ".join([self.mode, self.target, *pairs])

    def own(self) -> set[int]:
        """The cores that no other job may have."""
        return self.all() if self.mode == CORE else set()

    def all(self) -> set[int]:
        return set().union(*self.cores.values())


def plan(request: Request, placed: Placement) -> Binding:
    """The Binding of the ranks on this host, with cores that no other job has.  Raises Refusal."""
    if request.bind_core and request.bind_numa:
        raise Refusal(
            USAGE,
            tr(
                "--bind_core and --bind_numa: give one: cores of its own for each rank, or all cores of the NUMA node "
                "of its device"
            ),
        )
    mode = CORE if request.bind_core else NUMA
    ranks = _here(placed)
    devices = [device for _, device in ranks]
    others = _others(request, set(devices))
    taken = {core for holder in others for core in holder.cores}
    allowed = os.sched_getaffinity(0)
    shares = core_shares.of_this_host(mode, request.device_target, devices, allowed, taken) if ranks else []
    if not all(shares):
        raise _too_few(mode, request.device_target, len(ranks), allowed, others)
    cores = {rank: share for (rank, _), share in zip(ranks, shares)}
    return Binding(mode=mode, target=request.device_target, cores=cores)


def _here(placed: Placement) -> list[tuple[int, int]]:
    """(rank, device) of the ranks on this host."""
    if not placed.hosts:
        return placed.ranks
    from tools.launch.hosts import network

    others = set(network.others(placed.hosts))
    return [rank for rank, name in zip(placed.ranks, placed.hosts) if name not in others]


def _others(request: Request, devices: set[int]) -> list[Holder]:
    """The jobs that have cores of this host.  Not those with our devices: this launch does not start while they run."""
    uses = set() if request.device_target == "CPU" else devices
    try:
        holders = device_locks.asked(request.lock_file)
    except OSError:
        return []  # a remark says that the launch takes no locks
    found = [holder for holder in holders if holder.cores and not uses & set(holder.devices)]
    return sorted(found, key=lambda holder: holder.cores)


def _too_few(mode: str, target: str, ranks: int, allowed: set[int], others: list[Holder]) -> Refusal:
    whose = count(ranks, "rank")
    if target == "CPU":
        what = tr("--bind_{mode}: too few cores for the {ranks} of this host", mode=mode, ranks=whose)
    else:
        what = tr(
            "--bind_{mode}: too few cores near their devices for the {ranks} of this host", mode=mode, ranks=whose
        )
    holders = [holder for holder in others if allowed & set(holder.cores)]
    if holders:
        words = ", ".join(device_locks.core_words(holder) for holder in holders)
        return Refusal(
            REFUSED,
            tr(
                "{what}: {words}; wait until a job has ended, or start without --bind_{mode}",
                what=what,
                words=words,
                mode=mode,
            ),
        )
    words = tr("this launch may use only {cores}", cores=named("core", allowed))
    return Refusal(
        REFUSED,
        tr("{what}: {words}; start fewer ranks, or start without --bind_{mode}", what=what, words=words, mode=mode),
    )
