"""The part of a rank's environment that all ranks of a job share, and jobs that are only simulated."""

from __future__ import annotations

import os

from hccl_tools.common.language import tr
from hccl_tools.common.numbers import whole_number
from hccl_tools.common.refusal import REFUSED, USAGE, Refusal, misused, refused
from hccl_tools.common.words import clauses, one_line
from tools.launch.engines import ports
from tools.launch.engines.facts import LocalFacts
from tools.launch.engines.placement import Placement
from tools.launch.request import MAX_RANKS, Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.launch.devices.binding import Binding
    from tools.launch.engines.hccl_ports import HcclPorts

SIMULATION, LEVELS = "MS_SIMULATION_LEVEL", (0, 3)
WAY = "simulation"  # Request.placement
_MOST = 128  # processes that msrun starts at the most
_USUAL = 8  # ranks of a job, as msrun has it


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


# ---- --sim_level: compiles for ranks of a job that does not run, maybe for thousands of them, as msrun does.
# MindSpore then uses neither a device nor a scheduler.  It trusts RANK_SIZE and RANK_ID, and MS_SIMULATION_LEVEL
# determines how far it goes.  With --sim_rank_id one process runs.  Our launcher starts it, because msrun starts no
# scheduler either, and has nothing else to do.


def simulated(request: Request) -> Request:
    """The request; of a simulation with all that follows from that.  Raises Refusal."""
    by_variable = request.engine == "msrun" and os.environ.get(SIMULATION)
    if request.sim_level is None and request.sim_rank_id is None and not by_variable:
        return request
    level = request.sim_level
    if level is None:
        text = os.environ.get(SIMULATION, "")
        level = whole_number(text, *LEVELS)
        if not text:
            raise misused("--sim_rank_id: add the level of the simulation, 0 to 3, such as --sim_level 1")
        if level is None:
            what = tr("{name}={value} is not 0, 1, 2 or 3", name=SIMULATION, value=one_line(text))
            raise Refusal(REFUSED, clauses(what, tr("unset it, or give --sim_level")))
    target = "Ascend" if request.target_found else request.device_target
    world = request.worker_num or request.n or _USUAL
    if target == "CPU" and world > 1:
        raise refused(
            "--sim_level {level}: MindSpore simulates several ranks for Ascend only, not for CPU; with --device_target"
            " Ascend it needs CANN, and no NPU",
            level=level,
        )
    return request.replace(
        engine="local",
        placement=WAY,
        device_target=target,
        sim_level=level,
        sim_rank_id=_rank(request, world),
        worker_num=world,
    )


def _rank(request: Request, world: int) -> int | None:
    """The one rank that is simulated; None: all of this host.  Raises Refusal."""
    rank = request.sim_rank_id
    if rank is None and request.engine == "msrun":  # which takes the variable, too
        rank = whole_number(os.environ.get("RANK_ID", ""), 0, MAX_RANKS)
    if rank is not None and rank >= world:
        text = tr("--sim_rank_id {rank}: the job has the ranks 0 to {last}", rank=rank, last=world - 1)
        raise Refusal(USAGE, clauses(text, tr("write how many ranks it has, such as --worker_num {n}", n=rank + 1)))
    return rank


def place_simulated(request: Request) -> Placement:
    """The ranks that are simulated, each on an unused device.  Raises Refusal."""
    world = request.worker_num or _USUAL
    each = request.local_worker_num or world
    if each > world or world % each:
        text = tr("--local_worker_num {each} does not divide the {world} ranks of the job", each=each, world=world)
        raise Refusal(USAGE, clauses(text, tr("all hosts need the same number")))
    first = (request.node_rank or 0) * each
    if first >= world:
        text = tr("--node_rank {node}: the job has {hosts} hosts", node=request.node_rank, hosts=world // each)
        raise Refusal(USAGE, clauses(text, tr("count from 0")))
    ranks = [(first + index, index) for index in range(each)]
    remarks = []
    if request.sim_rank_id is not None:
        ranks = [(request.sim_rank_id, 0)]
    elif each > _MOST:
        ranks = ranks[:1]
        text = tr("note: of {each} ranks only rank {rank} is simulated", each=each, rank=first)
        remarks = [clauses(text, tr("--sim_rank_id chooses another one"))]
    return Placement(ranks=ranks, world=world, engine=LocalFacts(), job=[each] * (world // each), remarks=remarks)
