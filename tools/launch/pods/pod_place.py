"""Places the ranks of a pod: by an operator's rank table, or by numbers if MindSpore's scheduler connects the ranks.

A job of several pods has a launcher in each.  They meet at the pod of rank 0, so that the first failure ends all.
"""

from __future__ import annotations

import hashlib
import os
import socket

from hccl_tools.common.language import tr
from hccl_tools.common.refusal import REFUSED, USAGE, Refusal, misused, refused
from hccl_tools.common.words import clauses, named, one_line
from hccl_tools.machine import host
from hccl_tools.machine.programs import path_word
from tools.launch.devices import seen
from tools.launch.engines.facts import LocalFacts
from tools.launch.engines.placement import Placement
from tools.launch.hosts import network
from tools.launch.hosts.launchers import Meeting
from tools.launch.pods import pod_job, pod_scheduler, pod_table
from tools.launch.pods.pod_job import PodJob
from tools.launch.pods.pod_scheduler import Shape
from tools.launch.pods.pod_table import TOO_LATE, Patience, PodTable, WatchedTable
from tools.launch.request import MAX_RANKS, Request
from tools.launch.tables import table_fit
from tools.launch.tables.launch_table import LaunchTable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tools.launch.pods.pod_parts import Parts

COPY = "hccl.json"  # of the table, in the run folder: the operator may rewrite its own while ranks read


def place(request: Request, run_dir: str, say: Callable[[str], None]) -> tuple[Placement, LaunchTable | None]:
    """The ranks of this pod, and the table that they come from; waits for what is not there yet.  Raises Refusal."""
    job = pod_job.read(request)
    for remark in pod_scheduler.check_pod(request, job):
        say(remark)
    patience = Patience(request, say)
    path = table_path(request)
    if not job.has_ranks:
        return scheduler_alone(job, patience), None
    source = shared_parts(request, job, path) or path
    if source is not None:
        placed, table = by_table(request, job, source, run_dir, patience)
    else:
        placed, table = by_numbers(request, job, patience), None
    if len(placed.job) > 1 and not request.quiet:
        say(_about(placed))
    return placed, table


def table_path(request: Request) -> str | None:
    """The rank table that the user or the operator names; of ModelArts' two tables we read one."""
    named_ = (request.rank_table, *map(os.environ.get, ("RANK_TABLE_FILE_V_1_0", "RANK_TABLE_FILE")))
    return next(filter(None, named_), None)


def _about(placed: Placement) -> str:
    """Which part of the job this pod has, for its log."""
    first = placed.ranks[0][0]
    text = tr(
        "this pod has {ranks} of {world}, in a job of {pods} pods",
        ranks=named("rank", (rank for rank, _ in placed.ranks)),
        world=placed.world,
        pods=len(placed.job),
    )
    return text if first == 0 else clauses(text, tr("the log of the pod with rank 0 has the output"))


# ---- with a rank table ---------------------------------------------------------------------------


def shared_parts(request: Request, job: PodJob, path: str | None) -> Parts | None:
    """The folder in which the pods make their table themselves.  Raises Refusal."""
    if request.table_dir is None:
        return None
    if path is not None:
        raise misused("--table_dir makes a rank table, but {path} is one; give one of them", path=one_line(path))
    if request.dry_run:
        raise misused("--dry_run writes nothing, so it cannot make the rank table of --table_dir")
    from tools.launch.pods.pod_parts import Parts

    shape = shape_of(request, job)
    return Parts(
        request,
        shape.node,
        shape.pods,
        _devices(request, job, shape.local),
        pod_scheduler.own_address(job) or host.address(),
    )


def by_table(
    request: Request, job: PodJob, source: str | Parts, run_dir: str, patience: Patience
) -> tuple[Placement, LaunchTable]:
    """The ranks that the table gives this pod; `source`: its path, or who makes it.  Raises Refusal."""
    path = source if isinstance(source, str) else source.path
    remedy = tr("--pod_wait SECONDS waits longer")
    if isinstance(source, str):
        who = tr("the log of ascend-operator, and the ConfigMap rings-config-JOB")
        remedy = clauses(who, remedy)

    def look() -> PodTable:
        if not isinstance(source, str):
            source.look()
        return pod_table.take(path, job, request.device_target == "Ascend", request.chip)

    table = patience.until_ready(look, clauses(all_run(), remedy))
    own = table.servers[table.own]
    cluster = pod_scheduler.by_table(job, table, patience)
    job_sizes = [len(server.ranks) for server in table.servers]
    meeting = None
    if not pods_can_meet(table):
        patience.say(
            tr(
                "note: {path} has no container_ip, so the launchers of the pods cannot connect; after a failure, "
                "the other pods end only when their ranks notice it",
                path=one_line(path),
            )
        )
    elif len(table.servers) > 1:
        meeting = Meeting(
            hosts=[server.address for server in table.servers],
            number=table.own,
            address=network.address_of(table.servers[0].address, tr("the pod of rank 0")),
            scheduler_port=cluster.scheduler_port,
            job=f"{table.digest} {job.uid}",
            always=True,
            late=TOO_LATE,
            wait=patience.seconds,
        )
    placed = Placement(
        ranks=own.ranks,
        world=sum(job_sizes),
        engine=LocalFacts(),
        cluster=cluster,
        job=job_sizes,
        meeting=meeting,
        watched_table=WatchedTable(path=os.path.abspath(path), digest=table.digest),
    )
    return placed, _copied(path, table, run_dir)


def all_run() -> str:
    """What to check if a rank table does not come."""
    return tr("look at: kubectl get pods -o wide (do all pods of the job run?)")


def pods_can_meet(table: PodTable) -> bool:
    """Whether the pods reach each other by the table: it has the nodes' addresses only, where pods may have others."""
    has_pods = all(server.addresses[0] for server in table.servers)
    return has_pods or len(table.servers) == 1 or host.owns(table.servers[table.own].address)


def _copied(path: str, table: PodTable, run_dir: str) -> LaunchTable:
    """The table, to be copied into the run folder."""
    copy = os.path.join(run_dir, COPY)
    setup = table_fit.command_to_rewrite(path, copy) if table.is_rewritten else ("cp", path_word(path), copy)
    digest = hashlib.sha256(table.data).hexdigest()
    return LaunchTable(
        path=copy,
        ranks=table.servers[table.own].ranks,
        remarks=(
            *table.warnings,
            tr("rank table: {path}, sha256 {digest}, copied for the ranks", path=one_line(path), digest=digest[:16]),
        ),
        text=table.data.decode("utf-8"),
        setup=setup,
        digest=digest,
    )


# ---- by numbers ----------------------------------------------------------------------------------


def by_numbers(request: Request, job: PodJob, patience: Patience) -> Placement:
    """The ranks of this pod, which has as many as the others.  Raises Refusal."""
    shape = shape_of(request, job)
    devices = _devices(request, job, shape.local)
    cluster = pod_scheduler.by_numbers(request, job, shape, patience)
    ranks = [(shape.node * shape.local + index, device) for index, device in enumerate(devices)]
    meeting = None
    if shape.pods > 1 and not job.role:  # an operator's service lets the scheduler's port through, and no other
        names = job.names or [f"pod-{number}" for number in range(shape.pods)]
        meeting = Meeting(
            hosts=names,
            number=shape.node,
            address=cluster.scheduler_host,
            scheduler_port=cluster.scheduler_port,
            job=f"{shape.pods} {shape.local} {cluster.scheduler_port} {job.uid}",
            always=True,
            late=TOO_LATE,
            wait=patience.seconds,
        )
    return Placement(
        ranks=ranks,
        world=shape.pods * shape.local,
        engine=LocalFacts(),
        cluster=cluster,
        job=[shape.local] * shape.pods,
        meeting=meeting,
    )


def shape_of(request: Request, job: PodJob) -> Shape:
    """How many pods and ranks the job has, and which pod this is.  Raises Refusal."""
    local = job.local.value if job.local else None
    if local is None and request.device_target == "Ascend":
        local = len(seen.all_here(request)) or None
    if local is None:
        text = tr("nothing says how many ranks this pod has")
        remedy = tr("set MS_LOCAL_WORKER, or give --local_worker_num")
        raise Refusal(USAGE, clauses(text, remedy))
    pods = job.pods.value if job.pods else (job.world.value // local if job.world else 1)
    if pods * local > MAX_RANKS or pods * local != (job.world.value if job.world else pods * local):
        raise refused(
            "{pods} pods with {local} ranks each are not the {world} ranks of {source}",
            pods=pods,
            local=local,
            world=job.world.value if job.world else MAX_RANKS,
            source=job.world.source if job.world else tr("the largest job"),
        )
    return Shape(pods=pods, node=_node(job, pods), local=local)


def _node(job: PodJob, pods: int) -> int:
    """The number of this pod.  Raises Refusal."""
    if job.node:
        if job.node.value >= pods:
            text = tr(
                "{source} is {number}, so there are several pods, but nothing says how many",
                source=job.node.source,
                number=job.node.value,
            )
            raise Refusal(REFUSED, clauses(text, tr("set MS_WORKER_NUM, or give --worker_num, the ranks of all pods")))
        return job.node.value
    own = socket.gethostname().partition(".")[0]
    found = [number for number, name in enumerate(job.names) if name.partition(".")[0] == own]
    if len(found) == 1 or pods == 1:
        return found[0] if found else 0
    text = tr("nothing says which of the {pods} pods this is", pods=pods)
    remedy = tr("set MS_NODE_RANK, let an Indexed Job set JOB_COMPLETION_INDEX, or give --node_rank")
    raise Refusal(USAGE, clauses(text, remedy))


def _devices(request: Request, job: PodJob, local: int) -> tuple[int, ...]:
    """The physical devices of this pod's ranks; on CPU only numbers."""
    if request.device_target == "Ascend":
        return (job.devices or seen.all_here(request))[:local] or tuple(range(local))
    return tuple(range(local))


def scheduler_alone(job: PodJob, patience: Patience) -> Placement:
    """A pod that an operator made for the scheduler: it has no ranks.  Raises Refusal."""
    if not job.world:
        remedy = tr("set MS_WORKER_NUM, or give --worker_num, the ranks of all pods")
        text = tr("MS_ROLE={role}: nothing says for how many ranks the scheduler is", role=job.role)
        raise Refusal(REFUSED, clauses(text, remedy))
    cluster = pod_scheduler.of_operator(job, patience)
    return Placement(ranks=[], world=job.world.value, engine=LocalFacts(), cluster=cluster)
