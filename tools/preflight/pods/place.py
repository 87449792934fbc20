"""Determines the pods of a job, which of them this one is, and where they meet: as in its launches, see launch/pods.

The pod of rank 0 listens, on the scheduler's port plus 1.  If an operator has a pod for the scheduler, that one
listens, on the scheduler's port: its service lets no other through.
"""

from __future__ import annotations

import os

from hccl_tools.common.language import tr
from hccl_tools.common.numbers import whole_number
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import REFUSED, USAGE, Refusal
from hccl_tools.common.words import clauses
from hccl_tools.machine import host
from tools.launch.engines import ports
from tools.launch.engines.msrun import DEFAULT_PORT
from tools.launch.hosts import launchers
from tools.launch.pods import pod_job, pod_place, pod_table
from tools.launch.pods.pod_table import TOO_LATE, NotReady, Patience
from tools.launch.request import Request
from tools.preflight.facts import files
from tools.preflight.question import Place as TablePlace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tools.launch.planned import Plan
    from tools.launch.pods.pod_job import PodJob
    from tools.launch.pods.pod_table import PodTable

VERSION = 1  # of what the pods report to each other
WAIT = 600  # seconds in which all pods must come, where neither --pod_wait nor MS_TOPO_TIMEOUT states it
CHECK, LAUNCH = "check", "--preflight"


class Place(Record):
    """What a pod knows before the pods meet.

    kind:      CHECK or LAUNCH: pods of another kind are told so.
    pods:      how many have ranks; None: the others know it.  number: of this one; None: it has no ranks.
    is_hub:    the others connect to this pod.  host, port: where it listens; host is a name or an address.
    names:     what the pods are called until they have said it, by number; empty: unknown.
    address:   at which the others reach this pod; empty: that of the route to the hub.
    scheduler: the port that only the scheduler will have, to which the links are tried; None: the pods meet there.
    job:       a digest of what only the pods of this job have alike, as far as they can know.
    slots, devices: the ranks of this pod, and its physical devices; None: not specified.
    table, server: (path, digest) of the operator's rank table, and what it has of this pod.
    wait:      seconds in which all pods must come.  late: the exit code where the hub does not.
    """

    kind: str
    pods: int | None
    number: int | None
    is_hub: bool
    host: str
    port: int
    job: str
    wait: int
    late: int = REFUSED
    names: Sequence[str] = ()
    address: str = ""
    scheduler: int | None = None
    slots: int | None = None
    devices: Sequence[int] | None = None
    table: Sequence[str] | None = None
    server: TablePlace | None = None


def of_environment(rank_table: str | None, pod_wait: int | None, say: Callable[[str], None]) -> Place:
    """The place of this pod from its environment. rank_table: a path that the user names.  Raises Refusal."""
    wait = _wait(pod_wait, WAIT)
    request = Request(
        script="preflight.sh",
        engine="local",
        placement="pod",
        device_target="Ascend",
        job_pid=os.getpid(),
        rank_table=rank_table,
        pod_wait=wait,
    )
    job = pod_job.read(request)
    path = pod_place.table_path(request)
    if job.role:
        return _of_operator(request, job, path, wait)
    try:
        return _by_table(job, path, Patience(request, say)) if path else _by_numbers(request, job, wait)
    except Refusal as refusal:
        raise Refusal(REFUSED if refusal.status == TOO_LATE else refusal.status, *refusal.lines) from refusal


def of_plan(plan: Plan) -> Place | None:
    """The place for a launch, whose launchers would meet at the same port after it; None: they do not meet."""
    agreement = plan.agreement
    if agreement is None:
        return None
    on_npus = plan.request.device_target == "Ascend"
    return Place(
        kind=LAUNCH,
        pods=len(agreement.hosts),
        number=agreement.number,
        is_hub=agreement.number == 0,
        host=agreement.address,
        port=agreement.port,
        job=_digest(LAUNCH, agreement.job),
        wait=agreement.wait,
        late=agreement.late,
        names=agreement.hosts,
        address=agreement.address if agreement.number == 0 else "",
        scheduler=plan.cluster.scheduler_port or None,
        slots=len(plan.ranks) if on_npus else None,
    )


def _wait(named: int | None, usual: int) -> int:
    told = whole_number(os.environ.get("MS_TOPO_TIMEOUT", ""), 1, 10**6)
    return named if named is not None else told or usual


def _digest(*parts: object) -> str:
    return launchers.digest_of(" ".join(map(str, (f"preflight {VERSION}", *parts))))


def _own_address(job: PodJob) -> str:
    """The address, of either family, at which this pod can listen; that of its node is one with hostNetwork only."""
    return next((text for text in job.addresses.values() if host.owns(text)), "")


def _of_operator(request: Request, job: PodJob, path: str | None, wait: int) -> Place:
    """Where the operator has a pod for the scheduler, which may have ranks, too.  Raises Refusal."""
    port = ports.named() or DEFAULT_PORT
    is_hub = job.role == pod_job.SCHEDULER
    shape = pod_place.shape_of(request, job) if job.has_ranks else None
    table = _ready(path, job) if path and shape else None
    pods = shape.pods if shape else job.pods.value if job.pods else None
    found = Place(
        kind=CHECK,
        pods=pods,
        number=shape.node if shape else None,
        is_hub=is_hub,
        host=_scheduler(job, is_hub),
        port=port,
        job=_digest(CHECK, port, job.uid),
        wait=wait,
        address=_own_address(job),
        slots=shape.local if shape else None,
        devices=job.devices,
    )
    return _with_table(found, path, table) if path and table else found


def _by_numbers(request: Request, job: PodJob, wait: int) -> Place:
    shape = pod_place.shape_of(request, job)
    port = request.master_port or ports.named() or DEFAULT_PORT
    is_hub = shape.node == 0
    return Place(
        kind=CHECK,
        pods=shape.pods,
        number=shape.node,
        is_hub=is_hub,
        host=_scheduler(job, is_hub or shape.pods == 1),
        port=ports.beside(port),
        job=_digest(CHECK, port, job.uid),
        wait=wait,
        names=job.names,
        address=_own_address(job),
        scheduler=port,
        slots=shape.local,
        devices=job.devices,
    )


def _by_table(job: PodJob, path: str, patience: Patience) -> Place:
    """By the operator's rank table, once it is completed.  Raises Refusal."""
    table = patience.until_ready(lambda: _taken(path, job), pod_place.all_run())
    first = table.servers[0].address
    if len(table.servers) > 1 and not first:
        first = _scheduler(job, table.own == 0)
    elif not pod_place.pods_can_meet(table):
        text = tr("{path} has no container_ip, so the pods cannot connect", path=path)
        raise Refusal(REFUSED, clauses(text, tr("let the operator write it, or use hostNetwork")))
    port = ports.named() or ports.derived(int(table.digest, 16))
    found = Place(
        kind=CHECK,
        pods=len(table.servers),
        number=table.own,
        is_hub=table.own == 0,
        host=first,
        port=ports.beside(port),
        job=_digest(CHECK, port, job.uid, table.digest),
        wait=patience.seconds,
        names=[server.address for server in table.servers] if table.servers[0].address else (),
        address=table.servers[table.own].address or _own_address(job),
        scheduler=port,
        slots=len(table.servers[table.own].ranks),
        devices=job.devices,
    )
    return _with_table(found, path, table)


def _taken(path: str, job: PodJob) -> PodTable:
    return pod_table.take(path, job, bool(job.devices), None)


def _ready(path: str, job: PodJob) -> PodTable | None:
    """The table, if it is there now."""
    try:
        return _taken(path, job)
    except NotReady:
        return None


def _with_table(found: Place, path: str, table: PodTable) -> Place:
    """The same with what the table has of this pod: its devices are compared with those that are here."""
    own = table.servers[table.own]
    names = [text for text in own.addresses if text]
    server = TablePlace(names=names, devices={str(device): None for _, device in own.ranks}) if names else None
    digest = files.digest(path)
    return found.replace(table=(os.path.abspath(path), digest) if digest else None, server=server)


def _scheduler(job: PodJob, is_here: bool) -> str:
    """The host where the pods meet.  Raises Refusal."""
    if job.scheduler is None and not is_here:
        text = tr("nothing says where the pods of this job meet")
        raise Refusal(USAGE, clauses(text, tr("set MS_SCHED_HOST to the name of pod 0 in a headless service")))
    return job.scheduler or ""
