"""The place of a process in its job, from its environment: its device, the number of ranks, and whether they connect.

Our launcher sets RANK_SIZE and DEVICE_ID, and so does msrun. mpirun and srun have variables of their own.
"""

from __future__ import annotations

import os

from hccl_tools.common.language import tr
from hccl_tools.common.numbers import whole_number
from hccl_tools.common.words import short
from tools.config.unusable import Unusable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Each of these tells MindSpore where the other ranks are: its scheduler, MPI, or a rank table.  On CPU it takes MPI
# for no cluster, and knows no rank table.  MS_SIMULATION_LEVEL: it only pretends that there are others.
_MEETING = {
    "CPU": ("MS_ROLE",),
    "GPU": ("MS_ROLE", "OMPI_COMM_WORLD_SIZE", "MS_SIMULATION_LEVEL"),
    "Ascend": ("MS_ROLE", "OMPI_COMM_WORLD_SIZE", "MS_SIMULATION_LEVEL", "RANK_ID"),
}


def ranks_of(config: dict[str, Any]) -> int:
    """The number of ranks in the job of this process; 1 if it is not distributed.  Raises Unusable."""
    if not config["system"]["distribute"]:
        return 1
    # SLURM_NTASKS would not do: a batch script has it, too, and is one process
    return _number(("RANK_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"), default=1, least=1)


def device() -> int:
    """The number of this process's device: by default its place on this host.  Raises Unusable."""
    return _number(("DEVICE_ID", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"), default=0, least=0)


def _number(names: tuple[str, ...], default: int, least: int) -> int:
    """The number in the first of these variables that is set.  Under mpirun in an allocation srun's come last."""
    for name in names:
        if name in os.environ:
            number = whole_number(os.environ[name], least)
            if number is None:
                found = short(os.environ[name])
                text = tr(
                    "{name}={found} is not a number from {least} on; the launcher sets it, so unset your own",
                    name=name,
                    found=found,
                    least=least,
                )
                raise Unusable(text)
            return number
    return default


def check(config: dict[str, Any]) -> None:
    """Raises Unusable where a distributed job's ranks cannot meet: MindSpore would end with a traceback."""
    system = config["system"]
    if not system["distribute"] or any(name in os.environ for name in _MEETING[system["device_target"]]):
        return
    target = system["device_target"]
    if "OMPI_COMM_WORLD_SIZE" in os.environ:
        text = tr(
            "ranks that mpirun alone starts cannot form a cluster on {target}; use scripts/run_mpirun.sh instead",
            target=target,
        )
        raise Unusable(text)
    if "SLURM_STEP_NUM_TASKS" in os.environ:
        text = tr(
            "ranks that srun alone starts cannot form a cluster on {target}; use scripts/run_slurm.sh instead",
            target=target,
        )
        raise Unusable(text)
    message = tr(
        "system.distribute is True, but no launcher has started this process; use a launch "
        "script, such as scripts/ascend2p.sh, or train alone with -o system.distribute=False"
    )
    raise Unusable(message)
