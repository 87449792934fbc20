"""--bind_core and --bind_numa: the cores to which the ranks of this host are bound, and those that other jobs have.

Only a launch with one of these options imports this module.  Ranks of other hosts find their cores there, by
core_shares.here().
"""

from __future__ import annotations

import os

from hccl_tools.common.language import tr
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import REFUSED, USAGE, Refusal, misused, refused
from hccl_tools.common.words import clauses, count, named
from tools.launch.devices import binding_maps, core_shares, device_locks
from tools.launch.devices.core_shares import CORE, NUMA
from tools.launch.devices.device_locks import Holder
from tools.launch.engines.placement import Placement
from tools.launch.request import Request


class Binding(Record):
    mode: str  # CORE or NUMA
    target: str  # "Ascend", "GPU" or "CPU"
    cores: dict[int, list[int]]  # {rank: its cores}, for the ranks of this host; none: it is not bound to cores
    memory: dict[int, list[int]] = {}  # {rank: the NUMA nodes of its memory}
    scheduler: list[int] = []  # the cores of MindSpore's scheduler; none: it is not bound
    exports: dict[str, str] = {}  # variables of all ranks

    def word(self) -> str:
        """The binding as tools/rank/beginning.py reads it: ``core CPU 0=0,1 1=2,3@0``, with the nodes of the memory."""
        pairs = [f"{rank}={','.join(map(str, cores))}{self._at(rank)}" for rank, cores in self.cores.items()]
        if self.scheduler:
            pairs.append(f"scheduler={','.join(map(str, self.scheduler))}")
        return " ".join([self.mode, self.target, *pairs])

    def _at(self, rank: int) -> str:
        nodes = self.memory.get(rank, [])
        return f"@{','.join(map(str, nodes))}" if nodes else ""

    def own(self) -> set[int]:
        """The cores that no other job may have."""
        return self.all().union(self.scheduler) if self.mode == CORE else set()

    def all(self) -> set[int]:
        return set().union(*self.cores.values())


def plan(request: Request, placed: Placement) -> Binding:
    """The Binding of the ranks on this host, with cores that no other job has.  Raises Refusal."""
    if binding_maps.is_map(request.bind_core) or binding_maps.is_map(request.bind_numa):
        return _by_maps(request, placed)
    if request.bind_core and request.bind_numa:
        raise misused(
            "--bind_core and --bind_numa: give only one: separate cores for each rank, or all cores of the NUMA "
            "node of its device"
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


def _by_maps(request: Request, placed: Placement) -> Binding:
    """The Binding that the user has written, for the devices of this host.  Raises Refusal."""
    for name, value in (("bind_core", request.bind_core), ("bind_numa", request.bind_numa)):
        if value == binding_maps.FLAG:
            raise misused("--{option}: the other option has a map, so this one needs one, too", option=name)
    ranks = _here(placed)
    if len(ranks) < len(placed.ranks):
        text = tr("a map of --bind_core or --bind_numa is for the devices of one host, and the ranks are on several")
        raise Refusal(USAGE, clauses(text, tr("without a map each host binds its own ranks")))
    maps = binding_maps.read(request.bind_core, request.bind_numa)
    what = "--bind_core" if maps.cores else "--bind_numa"
    allowed = os.sched_getaffinity(0)
    binding_maps.check_cores(what, maps, allowed, [device for _, device in ranks])
    cores = {
        rank: [c for c in maps.cores_of(device, core_shares.cores_of_node) if c in allowed] for rank, device in ranks
    }
    mode = CORE if maps.cores else NUMA
    found = Binding(
        mode=mode,
        target=request.device_target,
        cores=cores,
        memory={rank: maps.memory[device] for rank, device in ranks if device in maps.memory},
        scheduler=maps.cores_of(-1, core_shares.cores_of_node),
        exports=maps.exports,
    )
    others = [holder for holder in _others(request, {d for _, d in ranks}) if found.own() & set(holder.cores)]
    if others:
        words = ", ".join(device_locks.core_words(holder) for holder in others)
        remedy = tr("wait until a job has ended, or write other cores")
        raise Refusal(REFUSED, f"{what}: {clauses(words, remedy)}")
    return found


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
        return []  # a remark states that the launch takes no locks
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
        return refused(
            "{what}: {words}; wait until a job has ended, or start without --bind_{mode}",
            what=what,
            words=words,
            mode=mode,
        )
    words = tr("this launch may use only {cores}", cores=named("core", allowed))
    return refused(
        "{what}: {words}; start fewer ranks, or start without --bind_{mode}", what=what, words=words, mode=mode
    )
