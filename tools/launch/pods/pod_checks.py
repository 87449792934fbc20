"""Checks the pod before its ranks start: devices, shared memory, processes; containers often have too little."""

from __future__ import annotations

import os

from hccl_tools.common.language import tr
from hccl_tools.common.refusal import REFUSED, Refusal
from hccl_tools.common.words import clauses, named
from hccl_tools.machine import host, system_files
from tools.launch.pods.pod_job import PodJob
from tools.launch.request import Request

MIB = 1 << 20
LEAST_SHARED = 1024 * MIB  # Kubernetes gives 64 MiB; the workers of one data pipeline need hundreds
LEAST_PROCESSES = 256  # threads count, of which a MindSpore rank has more than a hundred
MANAGERS = ("davinci_manager", "devmm_svm", "hisi_hdc")  # device nodes that every process on an NPU opens


def check(request: Request, job: PodJob, root: str = "/") -> list[str]:
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
        text = tr("/dev/shm cannot be used: {reason}", reason=error.strerror)
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
