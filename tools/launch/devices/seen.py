"""The devices of a launch as its ranks see them (see hccl_tools/machine/visible.py), and takes them from other jobs.

In the plan devices have physical ids; only DEVICE_ID is the index.
"""

from __future__ import annotations

import os
import time

from hccl_tools.common.language import strerror, tr
from hccl_tools.common.refusal import REFUSED, Refusal, refused
from hccl_tools.common.words import clauses, count, one_line
from hccl_tools.machine import host, visible
from hccl_tools.table import device_range
from tools.launch.planned import Plan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.machine.visible import Visible
    from tools.launch.engines.placement import Placement
    from tools.launch.request import Request


def fitting(request: Request, devices: tuple[int, ...]) -> tuple[int, ...]:
    """`devices`, which the ranks of this host must see; instead of the script's own, as many of those that they see.

    Where no variable limits them, a script's devices from 4 on stay: a later check states what this host has.
    Raises Refusal.
    """
    shown = visible.of(request.device_target)
    if shown.ids is None or set(devices) <= set(shown.ids):
        return devices
    if request.devices is not None:
        if hidden := [device for device in devices if shown.hides(device)]:
            raise shown.refusal(hidden)
        return devices
    if len(devices) <= len(shown.ids):
        return shown.ids[: len(devices)] if shown.limit or devices[0] == 0 else devices
    if shown.limit:
        raise _too_few(request, len(devices), shown)
    return devices


def _too_few(request: Request, ranks: int, shown: Visible) -> Refusal:
    ids = shown.ids or ()
    remedy = tr("start that many ranks")
    if request.script_devices and len(ids) in (1, 2, 4, 8):
        remedy = tr("use scripts/ascend{number}p.sh", number=len(ids))
    return refused(
        "{ranks} need as many devices, but {limit} shows only {devices}; {remedy}, or: unset {name}",
        ranks=count(ranks, "rank"),
        limit=shown.limit,
        devices=visible.listed(ids),
        remedy=remedy,
        name=shown.limit.partition("=")[0],
    )


def all_here(request: Request) -> tuple[int, ...]:
    """All devices that the ranks of this host see; empty if they are unknown.  Raises Refusal."""
    shown = visible.of(request.device_target)
    if shown.ids is not None:
        return shown.ids
    if request.device_target == "GPU":
        return tuple(range(visible.number_of_gpus()))
    return tuple(host.devices()) if request.device_target == "Ascend" else ()


def usual(request: Request, number: int) -> int:
    """The number of ranks if the user gives none: `number`, or as many as there are devices for them."""
    if request.devices is not None:
        try:
            return len(device_range.parse(request.devices))
        except device_range.RangeError:
            return number  # the message comes where the devices are taken
    shown = visible.of(request.device_target)
    if shown.ids is None:
        return number
    return len(shown.ids) if shown.limit else min(number, len(shown.ids))


def device_ids(request: Request, ranks: Sequence[tuple[int, int]]) -> list[int]:
    """DEVICE_ID of the ranks of this host; empty where it is the number of the device.  Raises Refusal."""
    if request.sim_level is not None:  # nobody uses them
        return []
    shown = visible.of(request.device_target)
    devices = [device for _, device in ranks]
    if hidden := [device for device in devices if shown.hides(device)]:
        raise shown.refusal(hidden)
    found = [index for index in map(shown.index, devices) if index is not None]
    return [] if found == devices or len(found) < len(devices) else found


def lockable(request: Request, devices: list[int], hosts: Sequence[str]) -> list[int]:
    """The devices that can be locked against other jobs of this host. hosts: the host of each rank, if they differ.

    Slurm has given a job its nodes.  From a host that is none of them, two jobs on other nodes must not meet here.
    """
    if request.sim_level is not None:
        return []
    return [] if is_away(request, hosts) or not visible.of(request.device_target).certain else devices


def is_away(request: Request, hosts: Sequence[str]) -> bool:
    """Whether Slurm has given the job other nodes than this one, from which it is only started."""
    return request.engine == "srun" and os.environ.get("SLURMD_NODENAME") not in hosts


def remarks(request: Request, placed: Placement, ranks: Sequence[tuple[int, int]]) -> list[str]:
    """Notes about the devices of this host's ranks, whose numbers may differ from what one expects."""
    if request.device_target == "CPU" or placed.hosts or not ranks or request.sim_level is not None:
        return []
    shown = visible.of(request.device_target)
    lines = visible.without_effect(shown) if request.device_target == "Ascend" and request.placement != "pod" else []
    devices = [device for _, device in ranks]
    if not shown.limit and not device_ids(request, ranks):
        return lines
    if not shown.certain:
        text = tr("the numbers of these devices are unknown, so no lock keeps other jobs off them")
        return [*lines, f"{shown.limit}: {text}"]
    text = shown.numbering(devices)
    own = device_range.parse(request.script_devices) if request.script_devices and request.devices is None else ()
    if set(own) - set(devices):
        text = tr("{text}, in place of the script's {others}", text=text, others=visible.listed(own))
    return [*lines, text]


class CoresTaken(Exception):
    """Another job was faster with cores or ports of this plan.  A new plan takes others, or refuses the launch."""


def take(plan: Plan) -> list[str]:
    """Takes the devices and cores for this job; CPU ranks use no devices.  Returns remarks.

    Raises Refusal and CoresTaken.
    """
    request = plan.request
    devices = [device for _, device in plan.ranks] if request.device_target != "CPU" else []
    devices = lockable(request, devices, plan.hosts)
    cores = plan.binding.own() if plan.binding else set()
    ports = plan.hccl.ranges if plan.hccl and not is_away(request, plan.hosts) else []
    if not devices and not cores and not ports:
        return []
    from tools.launch.devices import device_locks

    mine = request.lock_fd, request.lock_file
    try:
        while holders := device_locks.take(*mine, plan.run_dir, request.job_pid, devices, cores, ports):
            holders = [holder for holder in holders if set(devices) & set(holder.devices)]
            if not holders:
                raise CoresTaken
            lines = [device_locks.words(holder, devices) for holder in holders]
            if not request.wait_for_devices:
                remedy = tr("wait for it with --wait_for_devices, or choose others with --devices")
                raise Refusal(REFUSED, *(clauses(line, remedy) for line in lines))
            from hccl_tools.commands import boundary

            boundary.say(request.script, tr("waiting: {reason}", reason=lines[0]))
            while not device_locks.has_ended(holders[0]):
                time.sleep(0.5)
    except OSError as error:
        where = one_line(error.filename or request.lock_file)
        what = tr("other jobs cannot see which devices this one uses")
        if cores and not devices:
            what = tr("other jobs cannot see which cores this one uses")
        return [clauses(f"{what}: {where}: {strerror(error)}", tr("LAUNCH_LOCKS can name another folder"))]
    if devices and request.device_target == "GPU" and not request.no_check:
        from tools.launch.devices import device_check

        return device_check.gpus_in_use(devices)
    return []
