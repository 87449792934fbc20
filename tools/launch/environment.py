"""The part of a rank's environment that all ranks of a job share."""

from __future__ import annotations

import os

from hccl_tools.machine.host import LOOPBACK
from tools.launch import ports
from tools.launch.placement import Placement
from tools.launch.request import Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.launch.binding import Binding


def exports(
    request: Request, placement: Placement, run_dir: str, table: str | None, alone: bool, binding: Binding | None
) -> dict[str, str]:
    """{name: value}; `table`: the path of the rank table; `alone`: one rank that joins no job.  Raises Refusal."""
    found = {"RANK_SIZE": str(placement.world), "DEVICE_NUM": str(request.device_num), "LOG_DIR": run_dir}
    if table:
        found["RANK_TABLE_FILE"] = table
    if request.data_path is not None:
        found["DATA_PATH"] = os.path.abspath(request.data_path)
    defaults = {"PYTHONFAULTHANDLER": "1"}  # a rank that crashes, or is aborted, tells where it was
    if request.no_sink:
        found.update(GRAPH_OP_RUN="1", HCCL_WHITELIST_DISABLE="1")
    if not alone and (request.device_target == "CPU" or request.engine in ("msrun", "srun")):
        port = placement.engine.get("scheduler_port") or str(ports.free(request.job_pid))
        found["MS_WORKER_NUM"] = str(placement.world)
        found["MS_SCHED_HOST"] = placement.engine.get("scheduler_host", LOOPBACK)
        found["MS_SCHED_PORT"] = port
    if request.device_target == "CPU":
        # More threads than cores make ranks on one machine slower, and MindSpore 2.10 crash at exit.
        cores, ranks = len(os.sched_getaffinity(0)), placement.most_on_a_host()
        if binding and binding.cores:
            cores, ranks = len(binding.all()), len(binding.cores)
        # ONEDNN: see tools/train.py; here it is for other trainers too.
        defaults.update(OMP_NUM_THREADS=str(max(1, cores // ranks)), GLOG_v="3", ONEDNN_MAX_CPU_ISA="AVX2")
        if not alone:
            # A rank that asked the scheduler too early asks again after so many seconds; MindSpore's 3 to 5 are for
            # thousands of ranks.
            defaults.update(MS_RETRY_INTERVAL_LOWER="1", MS_RETRY_INTERVAL_UPPER="1")
    return {**found, **{name: value for name, value in defaults.items() if name not in os.environ}}
