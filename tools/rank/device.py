"""Determines the device of a rank on the host where an engine has started it: its physical id, and DEVICE_ID.

The launcher cannot do so for other hosts: Slurm gives each node devices of its own, and so do containers.
"""

from __future__ import annotations

from tools.rank import environment
from tools.rank.told import refuse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hccl_tools.machine.visible import Visible
    from tools.rank.told import Told


def physical(told: Told) -> list[int]:
    """The devices of this host's ranks by their physical ids, in the order of the local ranks.

    Named ones are these everywhere; otherwise they are the first ones that this host shows.
    """
    devices, named = _devices(told)
    target = _target(told)
    if named or not target:
        return devices
    seen = _seen(target)
    if seen.ids is None or set(devices) <= set(seen.ids) or len(devices) > len(seen.ids):
        return devices
    return list(seen.ids[: len(devices)])


def number(told: Told) -> str:
    """DEVICE_ID of the rank."""
    devices, named = _devices(told)
    target, device = _target(told), devices[told.local_rank]
    if not target or (seen := _seen(target)).ids is None:
        return str(device)
    if not named and len(seen.ids) == 1:  # each task has its own, as with Slurm's --gpus-per-task
        return "0"
    if not named and told.local_rank < len(seen.ids):
        device = physical(told)[told.local_rank]
    if seen.hides(device):
        refuse(str(seen.refusal([device])))
    index = seen.index(device)
    return str(device if index is None else index)


def _devices(told: Told) -> tuple[list[int], bool]:
    """(the devices of this host's ranks, whether they are named: else the host takes the first ones that it shows)."""
    usual, *others = told["DEVICES"].split(";")
    own = str(environment.host_of(int(told.name), told["SIZES"])[0]) if others else ""
    for other in others:
        number, _, devices = other.partition(":")
        if number == own:
            return list(map(int, devices.split())), True
    return list(map(int, usual.split())), told["TARGET"].endswith(" named")


def _target(told: Told) -> str:
    """The target whose devices the ranks use; empty: devices are only numbers."""
    return told["TARGET"].partition(" ")[0]


def _seen(target: str) -> Visible:
    from hccl_tools.common.refusal import Refusal  # not at the top: ranks on CPU are spared both
    from hccl_tools.machine import visible

    try:
        return visible.of(target)
    except Refusal as error:
        refuse(str(error))
