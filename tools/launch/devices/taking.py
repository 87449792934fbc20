"""Takes the devices, cores and ports of a plan, so that other jobs of this host cannot have them."""

from __future__ import annotations

import time

from hccl_tools.common.language import tr
from hccl_tools.common.refusal import REFUSED, Refusal
from hccl_tools.common.words import clauses, one_line
from tools.launch.devices import seen
from tools.launch.planned import Plan


class CoresTaken(Exception):
    """Another job was faster with cores or ports of this plan.  A new plan takes others, or refuses the launch."""


def take(plan: Plan) -> list[str]:
    """Takes the devices and cores for this job; CPU ranks use no devices.  Returns remarks.

    Raises Refusal and CoresTaken.
    """
    request = plan.request
    devices = [device for _, device in plan.ranks] if request.device_target != "CPU" else []
    devices = seen.lockable(request, devices, plan.hosts)
    cores = plan.binding.own() if plan.binding else set()
    ports = plan.hccl.ranges if plan.hccl and not seen.is_away(request, plan.hosts) else []
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
        return [clauses(f"{what}: {where}: {error.strerror}", tr("LAUNCH_LOCKS can name another folder"))]
    if devices and request.device_target == "GPU" and not request.no_check:
        from tools.launch.devices import device_check

        return device_check.gpus_in_use(devices)
    return []
