"""Chooses HCCL's ports in a job: its default ones where possible, otherwise others; see hccl_ports.py."""

from __future__ import annotations

import os

from hccl_tools.common.language import tr
from hccl_tools.common.numbers import whole_number
from hccl_tools.common.refusal import REFUSED, Refusal
from hccl_tools.common.words import clauses
from hccl_tools.machine import host, sockets
from tools.launch.devices import device_locks, seen
from tools.launch.engines import hccl_ports
from tools.launch.engines.hccl_ports import (
    BASE,
    CHOSEN,
    COUNT,
    DEFAULT,
    DERIVED,
    HOST_RANGE,
    NPU_RANGE,
    VARIABLE,
    HcclPorts,
    Others,
    range_from,
    words,
)
from tools.launch.engines.placement import Placement
from tools.launch.request import Request

# Above the kernel's own ports for outgoing connections, as most hosts have them.
_OTHERS = range(BASE + 32 * COUNT, sockets.MOST + 2 - COUNT, COUNT)
_NPU_FIRST = 17000  # of the devices' ports of other jobs; HCCL's own is 16666
_WITH_RANGES, _KNOWS_RANGES = ("A3", "950"), (8, 1)  # generations, and the CANN from which on


def of_job(request: Request, placed: Placement) -> HcclPorts:
    """The ports of a job on NPUs.  Raises Refusal."""
    try:
        holders = [] if seen.is_away(request, placed.hosts) else device_locks.asked()
    except OSError:
        holders = []  # a remark states that the launch takes no locks
    mine = next((holder.ports for holder in holders if holder.path == request.lock_file), [])
    others = Others(holders, {device for _, device in placed.ranks}, request.lock_file)
    named = hccl_ports.of_user(request)
    if named:
        return hccl_ports.named(*named, placed, others)
    if request.attempt and mine:  # a restart keeps what the job has
        other = DERIVED if request.engine == "srun" else CHOSEN
        return _with(mine[0][0], request, DEFAULT if mine[0][0] == BASE else other)
    if placed.meeting:
        from zlib import crc32  # few launches need it

        number = crc32(placed.meeting.job.encode("utf-8", "surrogateescape"))
        return _of_launchers(request, placed, others, number)
    if request.engine == "srun":
        return _of_launchers(request, placed, others, whole_number(os.environ.get("SLURM_JOB_ID", "")) or 0)
    return _free(request, placed, others)


def _free(request: Request, placed: Placement, others: Others) -> HcclPorts:
    """HCCL's own ports, otherwise a free range.  Raises Refusal."""
    fault = others.fault(BASE)
    if not fault:
        return _with(BASE, request, DEFAULT)
    given = sockets.handed_out(range(_OTHERS[0], sockets.MOST + 1))
    quiet = sorted(_OTHERS, key=lambda first: bool(given & set(range(first, first + COUNT))))
    first = next((each for each in quiet if not others.fault(each)), None)
    if first is None:
        text = tr("HCCL has no free ports on this host: {fault}", fault=fault)
        raise Refusal(REFUSED, clauses(text, tr("wait until a job has ended, or set {name}", name=VARIABLE)))
    ports = words([range_from(first)])
    text = tr("note: HCCL gets the ports {ports} in this job: {fault}", ports=ports, fault=fault)
    if placed.hosts:
        text = clauses(text, tr("firewalls between the hosts must let them through"))
    return _with(first, request, CHOSEN).replace(remarks=[text])


def _of_launchers(request: Request, placed: Placement, others: Others, number: int) -> HcclPorts:
    """The ports that follow from the job's `number` on every host, or HCCL's own where it has whole hosts.

    Raises Refusal.
    """
    if _has_whole_hosts(placed):
        return _with(BASE, request, DEFAULT)
    first = _OTHERS[number % len(_OTHERS)]
    own = words([range_from(first)])
    fault = others.fault(first)
    if fault:
        text = tr("HCCL would get the ports {ports} on all hosts of this job, but {fault}", ports=own, fault=fault)
        other = next((each for each in _OTHERS if not others.fault(each)), BASE)
        remedy = tr("set others on every host: export {name}={port}", name=VARIABLE, port=other)
        raise Refusal(REFUSED, clauses(text, remedy))
    text = tr("note: HCCL gets the ports {ports} on all hosts of this job", ports=own)
    why = tr("it shares some of their devices, and another job may have {first}", first=words([range_from(BASE)]))
    remedy = tr("firewalls between the hosts must let them through; {name} chooses others", name=VARIABLE)
    return _with(first, request, DERIVED).replace(remarks=[clauses(f"{text}: {why}", remedy)])


def _has_whole_hosts(placed: Placement) -> bool:
    """Whether the ranks have all devices of every host, as far as this host can tell: there no other job can be."""
    present = host.devices()
    return not present or set(placed.sizes()) == {len(present)}


def _with(first: int, request: Request, origin: str) -> HcclPorts:
    """The ports from `first` on, with the variables that state this."""
    ranges = [range_from(first)]
    if origin == DEFAULT:
        return HcclPorts(ranges=ranges, origin=origin)
    exports = {VARIABLE: str(first)}
    if request.chip in _WITH_RANGES and _knows_ranges():
        device = _NPU_FIRST + first - BASE
        exports[HOST_RANGE] = words(ranges)
        if not os.environ.get(NPU_RANGE):
            exports[NPU_RANGE] = words([(device, device + COUNT - 1)])
    return HcclPorts(ranges=ranges, origin=origin, exports=exports)


def _knows_ranges() -> bool:
    """Whether the CANN of this environment reads the two variables with ranges."""
    from hccl_tools.machine import driver  # few launches get there

    release = driver.cann_release(driver.cann_version(driver.active_cann())) if driver.active_cann() else None
    return release is not None and release >= _KNOWS_RANGES
