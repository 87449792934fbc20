"""The part of a rank's environment that all ranks of a job share."""

from __future__ import annotations

import os

from hccl_tools.common.language import tr
from hccl_tools.common.words import one_line
from tools.launch.engines import ports
from tools.launch.engines.placement import Placement
from tools.launch.request import Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.launch.devices.binding import Binding
    from tools.launch.engines.hccl_ports import HcclPorts


def needs_cluster(request: Request, placement: Placement) -> bool:
    """Whether the ranks find each other through MindSpore's scheduler, and not by a rank table or by mpirun."""
    own_gpus = request.engine == "local" and request.device_target == "GPU"
    always = request.device_target == "CPU" or own_gpus or request.engine in ("msrun", "srun")
    return always or placement.cluster.is_needed


def exports(
    request: Request,
    placement: Placement,
    run_dir: str,
    table: str | None,
    alone: bool,
    binding: Binding | None,
    scheduled: bool = True,
) -> dict[str, str]:
    """{name: value}.  Raises Refusal.

    table: the path of the rank table; alone: one rank that joins no job; scheduled: MindSpore's scheduler may start.
    """
    world = str(placement.world)
    found = {"RANK_SIZE": world, "LOG_DIR": run_dir}
    if table:
        found["RANK_TABLE_FILE"] = table
    found.update(of_options(request))
    # PYTHONFAULTHANDLER: a rank that crashes, or is aborted, tells where it was.
    defaults = {"PYTHONFAULTHANDLER": "1", "WORLD_SIZE": world}
    if request.device_num is not None:
        defaults["DEVICE_NUM"] = str(request.device_num)
    if scheduled and not alone and needs_cluster(request, placement):
        port = placement.cluster.scheduler_port or ports.free(request.job_pid)
        found["MS_WORKER_NUM"] = world
        found["MS_SCHED_HOST"] = placement.cluster.scheduler_host
        found["MS_SCHED_PORT"] = str(port)
    if not alone:
        defaults.update(meeting_point(request, placement, found))
    if request.device_target == "CPU":
        # More threads than cores make ranks on one machine slower, and MindSpore 2.10 crash at exit.
        cores, ranks = len(os.sched_getaffinity(0)), placement.most_on_a_host()
        if binding and binding.all():
            cores, ranks = len(binding.all()), len(binding.cores)
        # ONEDNN: see tools/train.py; here it is for other trainers too.
        defaults.update(OMP_NUM_THREADS=str(max(1, cores // max(1, ranks))), GLOG_v="3", ONEDNN_MAX_CPU_ISA="AVX2")
        if not alone:
            # A rank hears from the scheduler that all have come when it sends its next heartbeat, each so many seconds.
            # MindSpore takes whole ones, and never pauses with less than 1; its own 3 to 5 are for thousands of ranks.
            defaults.update(MS_RETRY_INTERVAL_LOWER="1", MS_RETRY_INTERVAL_UPPER="1")
    return {**found, **{name: value for name, value in defaults.items() if name not in os.environ}}


def simulated(request: Request) -> Request:
    """The request; of a simulation with all that follows from that.  Raises Refusal."""
    if request.engine != "msrun" and request.sim_level is None and request.sim_rank_id is None:
        return request
    from tools.launch.engines import simulation

    return simulation.of(request) if simulation.is_wanted(request) else request


def hccl(request: Request, placement: Placement, alone: bool) -> HcclPorts | None:
    """The ports on which HCCL listens, on NPUs. alone: one rank that joins no job.  Raises Refusal."""
    if request.device_target != "Ascend" or alone or not placement.ranks:
        return None
    from tools.launch.engines import hccl_choice

    return hccl_choice.of_job(request, placement)


def of_options(request: Request) -> dict[str, str]:
    """The variables that follow directly from the user's arguments and options."""
    found = {}
    if request.data_path is not None:
        found["DATA_PATH"] = os.path.abspath(request.data_path)
    if request.no_sink:
        found.update(GRAPH_OP_RUN="1", HCCL_WHITELIST_DISABLE="1")  # see also job.py
    if request.sim_level is not None:
        found.update(MS_SIMULATION_LEVEL=str(request.sim_level), MS_WORKER_NUM=str(request.worker_num))
    if request.straggler is not None:
        found["LAUNCH_STRAGGLER"] = request.straggler  # tools/train.py then also times a step without its waits
    return found


def meeting_point(request: Request, placement: Placement, found: dict[str, str]) -> dict[str, str]:
    """MASTER_ADDR and MASTER_PORT: the scheduler's, otherwise a port of rank 0's host on which nothing listens yet.

    Users of MindSpore give msrun's scheduler these names; trainers copy them into MS_SCHED_HOST and MS_SCHED_PORT.  A
    trainer that finds no MS_ROLE starts a scheduler, or a store, there by itself, in rank 0.  Raises Refusal.
    """
    if "MS_SCHED_HOST" in found:
        return {"MASTER_ADDR": found["MS_SCHED_HOST"], "MASTER_PORT": found["MS_SCHED_PORT"]}
    address = placement.cluster.scheduler_host
    if placement.hosts:
        from tools.launch.hosts import network  # not at the top: it imports socket

        for name in network.others(placement.hosts[:1]):
            address = network.address_of(name.rpartition("@")[2], tr("{name}, which has rank 0,", name=one_line(name)))
    return {
        "MASTER_ADDR": address,
        "MASTER_PORT": str(placement.cluster.scheduler_port or ports.near(request.job_pid)),
    }
