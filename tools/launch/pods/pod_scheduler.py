"""Finds the pod of MindSpore's scheduler, an operator's or that of rank 0; and checks this pod before its ranks start.

Containers often have too little shared memory, and too few processes.
"""

from __future__ import annotations

import os
import socket

from hccl_tools.common.language import strerror, tr
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import REFUSED, USAGE, Refusal
from hccl_tools.common.words import clauses, named, one_line
from hccl_tools.machine import host, system_files
from hccl_tools.table.address import family
from tools.launch.engines import ports
from tools.launch.engines.facts import Cluster
from tools.launch.engines.msrun import DEFAULT_PORT
from tools.launch.hosts import network
from tools.launch.pods import pod_job
from tools.launch.pods.pod_job import PodJob
from tools.launch.pods.pod_table import NotReady, Patience, PodTable
from tools.launch.request import Request

MIB = 1 << 20
LEAST_SHARED = 1024 * MIB  # Kubernetes gives 64 MiB; the workers of one data pipeline need hundreds
LEAST_PROCESSES = 256  # threads count, of which a MindSpore rank has more than a hundred
MANAGERS = ("davinci_manager", "devmm_svm", "hisi_hdc")  # device nodes that every process on an NPU opens


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


def check_pod(request: Request, job: PodJob, root: str = "/") -> list[str]:
    """Remarks on what may be too little.  `root`: the folder of dev/ and sys/.  Raises Refusal."""
    if request.no_check or not job.has_ranks:
        return []
    if request.device_target == "Ascend":
        _devices(request, job, root)
    ranks = job.local.value if job.local else 1
    return [line for line in (_shared_memory(root), _processes(root, ranks)) if line]


def _devices(request: Request, job: PodJob, root: str) -> None:
    """The device plugin has mounted what it gave the pod.  Raises Refusal."""
    given = job.devices or ()
    missing = sorted(set(given) - set(host.devices())) if given else []
    remedy = tr(
        "is Ascend Docker Runtime the container runtime of this node? See: kubectl describe pod; "
        "ls /dev on the node; npu-smi info"
    )
    if missing:
        source = "--devices" if request.devices is not None else "ASCEND_VISIBLE_DEVICES"
        text = tr(
            "{source} gives this pod {given}, but the container lacks {missing}: there is no /dev/davinci{first}",
            source=source,
            given=named("device", given),
            missing=named("device", missing),
            first=missing[0],
        )
        raise Refusal(REFUSED, clauses(text, remedy))
    dev = os.path.join(root, "dev")
    if any(name.startswith("davinci") and name[7:].isdigit() for name in os.listdir(dev)):
        lost = [f"/dev/{name}" for name in MANAGERS if not os.path.exists(os.path.join(dev, name))]
        if lost:
            text = tr("the container has NPUs, but not {nodes}, which they need", nodes=", ".join(lost))
            raise Refusal(REFUSED, clauses(text, remedy))


def _shared_memory(root: str) -> str | None:
    try:
        found = os.statvfs(os.path.join(root, "dev", "shm"))
    except OSError as error:
        text = tr("/dev/shm cannot be used: {reason}", reason=strerror(error))
    else:
        size = found.f_blocks * found.f_frsize
        if size >= LEAST_SHARED:
            return None
        text = tr("/dev/shm has {size} MiB, too little for data workers and HCCL", size=size // MIB)
    return tr("note: {text}; mount a volume there: emptyDir with medium Memory", text=text)


def _processes(root: str, ranks: int) -> str | None:
    """The control group of the container allows enough processes; version 2 has its limits at its root, 1 in pids/."""
    for folder in ("sys/fs/cgroup", "sys/fs/cgroup/pids"):
        allowed, used = (system_files.number(os.path.join(root, folder, name)) for name in ("pids.max", "pids.current"))
        if allowed is not None and allowed - (used or 0) < LEAST_PROCESSES * ranks:
            return tr(
                "note: the container may have {allowed} processes and threads, too few for {ranks} ranks; "
                "raise the kubelet's podPidsLimit",
                allowed=allowed,
                ranks=ranks,
            )
    return None
