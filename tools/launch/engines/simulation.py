"""--sim_level: compiles for ranks of a job that does not run, maybe for thousands of them, as msrun does.

MindSpore then uses neither a device nor a scheduler.  It trusts RANK_SIZE and RANK_ID, and MS_SIMULATION_LEVEL
determines how far it goes.  With --sim_rank_id one process runs.  Our launcher starts it, because msrun starts no
scheduler either, and has nothing else to do.
"""

from __future__ import annotations

import os

from hccl_tools.common.language import tr
from hccl_tools.common.numbers import whole_number
from hccl_tools.common.refusal import REFUSED, USAGE, Refusal, misused, refused
from hccl_tools.common.words import clauses, one_line
from tools.launch.engines.facts import LocalFacts
from tools.launch.engines.placement import Placement
from tools.launch.request import MAX_RANKS, Request

VARIABLE, LEVELS = "MS_SIMULATION_LEVEL", (0, 3)
WAY = "simulation"  # Request.placement
_MOST = 128  # processes that msrun starts at the most
_USUAL = 8  # ranks of a job, as msrun has it


def is_wanted(request: Request) -> bool:
    """Whether the launch is a simulation: by an option, or under msrun by the variable."""
    by_variable = request.engine == "msrun" and os.environ.get(VARIABLE)
    return request.sim_level is not None or request.sim_rank_id is not None or bool(by_variable)


def of(request: Request) -> Request:
    """The request with all that follows from its being a simulation.  Raises Refusal."""
    level = request.sim_level
    if level is None:
        text = os.environ.get(VARIABLE, "")
        level = whole_number(text, *LEVELS)
        if not text:
            raise misused("--sim_rank_id: add the level of the simulation, 0 to 3, such as --sim_level 1")
        if level is None:
            what = tr("{name}={value} is not 0, 1, 2 or 3", name=VARIABLE, value=one_line(text))
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


def place(request: Request) -> Placement:
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
