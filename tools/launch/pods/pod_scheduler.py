"""Finds the pod of MindSpore's scheduler: one that an operator makes for it, otherwise the pod of rank 0."""

from __future__ import annotations

import socket

from hccl_tools.common.language import tr
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import USAGE, Refusal
from hccl_tools.common.words import clauses, one_line
from hccl_tools.machine import host
from hccl_tools.table.address import family
from tools.launch.engines import ports
from tools.launch.engines.facts import Cluster
from tools.launch.engines.msrun import DEFAULT_PORT
from tools.launch.hosts import network
from tools.launch.pods import pod_job
from tools.launch.pods.pod_job import PodJob
from tools.launch.pods.pod_table import NotReady, Patience, PodTable
from tools.launch.request import Request


class Shape(Record):
    """The pods of a job without a rank table: each has the same number of ranks."""

    pods: int
    node: int  # the number of this pod
    local: int  # ranks of a pod


def by_table(job: PodJob, table: PodTable, patience: Patience) -> Cluster:
    """Where MindSpore's scheduler is: in the operator's pod for it, otherwise in that of rank 0.  Raises Refusal."""
    if job.role:
        return of_operator(job, patience)
    first = table.servers[0].address
    port = ports.named() or ports.derived(int(table.digest, 16))
    if not first:  # version 2.0 has no addresses of hosts
        if len(table.servers) == 1:
            return Cluster(scheduler_port=port)
        return _cluster(job, patience, is_here=not table.own, port=port)
    return Cluster(
        scheduler_host=network.address_of(first, tr("the pod of rank 0")),
        scheduler_port=port,
        scheduler_node=first if table.own else "",
        scheduler_is_shared=not table.own and len(table.servers) > 1,
    )


def by_numbers(request: Request, job: PodJob, shape: Shape, patience: Patience) -> Cluster:
    """Where MindSpore's scheduler is: in the operator's pod for it, otherwise in pod 0.  Raises Refusal."""
    if job.role:
        return of_operator(job, patience)
    port = request.master_port or ports.named()
    if shape.pods == 1:
        return Cluster(is_needed=True, scheduler_port=port or 0)
    return _cluster(job, patience, is_here=not shape.node, port=port or DEFAULT_PORT)


def of_operator(job: PodJob, patience: Patience) -> Cluster:
    """The scheduler of an operator that has a pod for it, which may have ranks, too.  Raises Refusal."""
    return _cluster(job, patience, is_here=job.role == pod_job.SCHEDULER, port=ports.named() or DEFAULT_PORT)


def _cluster(job: PodJob, patience: Patience, is_here: bool, port: int) -> Cluster:
    """The cluster of several pods; is_here: its scheduler is in this one.  Raises Refusal."""
    if is_here:
        address = own_address(job) or resolved(job, patience)
        return Cluster(is_needed=True, scheduler_host=address, scheduler_port=port, scheduler_is_shared=True)
    address = resolved(job, patience)
    return Cluster(is_needed=True, scheduler_host=address, scheduler_port=port, scheduler_node=address)


def own_address(job: PodJob) -> str | None:
    """An address on which this pod can listen, IPv4 if possible; the node's only with hostNetwork."""
    found = [text for text in job.addresses.values() if host.owns(text)]
    return next((text for text in found if family(text) == socket.AF_INET), next(iter(found), None))


def resolved(job: PodJob, patience: Patience) -> str:
    """The address of the scheduler's host, once DNS knows it.  Raises Refusal."""
    if job.scheduler is None:
        text = tr("nothing says in which pod MindSpore's scheduler is")
        remedy = tr("set MS_SCHED_HOST, or give --master_addr: the name of pod 0 in a headless service")
        raise Refusal(USAGE, clauses(text, remedy))
    name = job.scheduler

    def look() -> str:
        try:
            return network.address_of(name, tr("the scheduler's host {name}", name=one_line(name)))
        except Refusal as refusal:
            raise NotReady(refusal.lines[0]) from refusal

    return patience.until_ready(
        look,
        tr(
            "does that pod exist, and does the headless service have publishNotReadyAddresses: true? See: kubectl "
            "get pods, endpoints"
        ),
    )
