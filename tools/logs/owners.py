"""Determines the owner and the kind of a log: from its name and the folders above it, and from its lines.

rank_3.log, worker_3.log, proc-rank-3-device-3.txt     the launcher, msrun, ModelArts
1/rank.03/stderr, out.1.03                             mpirun --output-filename
attempt_0/3/stderr.log                                 torchrun --log_dir
slurm-77_3.out                                         srun --output=slurm-%j_%t.out
train-worker-3.log, train-scheduler-0.log              kubectl logs
device3/train.log3                                     the tutorials of MindSpore
"""

from __future__ import annotations

import os
import re

from hccl_tools.common.record import Row
from tools.logs import plog

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.logs.events import Event
    from tools.logs.voices import Voice

RANK, SCHEDULER, ENGINE, SYSTEM = "rank", "scheduler", "engine", "host"  # roles: only a rank may be a root
_OF_HOST = (
    r"(?:messages|syslog|kern|journal|journalctl|dmesg|vmcore-dmesg|sysmonitor|host_kernel|device-os)(?![a-zA-Z])"
)
_BY_ROLE = (
    (SCHEDULER, re.compile(r"(?:.*[-_.])?(?:scheduler|sched)(?:[-_.]?\d{1,7})?(?:-\w{1,10}){0,2}")),
    (
        ENGINE,
        re.compile(
            r"(?:.*[-_.])?(?:msrun|mpirun|mpiexec|torchrun|srun|launcher|deepspeed)(?:[-_.]?\d{1,7})?(?:-\w{1,10})?"
        ),
    ),
    (SYSTEM, re.compile(rf"{_OF_HOST}.*")),
)
PLOG_NAME = re.compile(r"plog-(?:parser-)?(?P<pid>\d{1,10})[-_](?P<time>\w{1,20})\.log")
DEVICE_NAME = re.compile(r"device-(?P<pid>\d{1,10})_(?P<time>\d{1,20})\.log")
ROTATED = re.compile(r"(?:[.-]\d{1,8})?(?:\.gz)?$")
_SUFFIX = re.compile(r"(?:\.(?:log|txt|out|err))+$")
_RANK_IN_NAME = (
    re.compile(r"(?:.*[-_.])?rank[-_.]?(\d{1,7})(?:[-_.].*)?", re.IGNORECASE),
    re.compile(r"(?:.*[-_.])?(?:worker|task|proc|process|replica|master|chief)[-_.]?(\d{1,7})(?:[-_.].*)?"),
    re.compile(r"slurm-\d{1,12}[-_](\d{1,7})"),
    re.compile(r"(?:device|npu|card)[-_]?(\d{1,4})"),
    re.compile(r"(?:.*[._-])?(?:log|LOG)(\d{1,4})"),
)
_NUMBERED = re.compile(r"[^.]\S*\.\d{1,4}\.(\d{1,7})")  # Open MPI 3: NAME.JOB.RANK
_RANK_FOLDER = re.compile(r"(?:proc-)?rank[-_.]?(\d{1,7})(?:-device-\d+)?")
_DEVICE_FOLDER = re.compile(r"device_?(\d{1,4})")
_ATTEMPT = re.compile(r"attempt_\d{1,7}")
# Folders that CANN, ModelArts and Kubernetes' mounts have in every job: they tell processes apart in no way.
_COMMON = re.compile(r"debug|run|security|plog|log|logs|ascend|process_log|device-\d+|device-os.*|alllogs|debug_\w+|\.")
# Folders that are not named by a host: jobs and ranks of mpirun, attempts of torchrun, what people call their logs
_NO_HOST = re.compile(r"rank.*|\d+|attempt_\d+|device_?\d+|\S+@\d+|(?:.*[-_])?(?:logs?|outputs?|results?)|msrun.*")
_NAMED_TIME = re.compile(r"^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)\d*$")
# Processes of a host or a device that serve all jobs, as plogs call their program
_SYSTEM_PROGRAM = re.compile(
    r"hccp_service|tsd|slogd|log-daemon|dmp_daemon|adda|npu-smi|hccn_tool|msnpureport|ascend-dmi|ascend-docker|dcmi"
)


class Owner(Row):
    """The source of a log: the folders that distinguish processes, the host, the rank and the process, if named."""

    folder: str
    host: str | None
    rank: int | None
    pid: int | None
    role: str = RANK
    begun: float | None = None  # when the file was begun, by its name: with the process, not with its first line
    named: str = ""  # the name that has the rank, where it is that of a pod: "train-worker-3"


def of_name(path: str) -> Owner:
    """The owner of the file `path`; the path is relative to what the user named."""
    *folders, base = path.replace(os.sep, "/").split("/")
    named = [folder for folder in folders if folder and not _COMMON.fullmatch(folder)]
    stem = _SUFFIX.sub("", ROTATED.sub("", base)) or base
    pid, begun = None, None
    for pattern in (PLOG_NAME, DEVICE_NAME):
        found = pattern.fullmatch(ROTATED.sub("", base)) or pattern.fullmatch(base)
        if found:
            pid = int(found["pid"])
            begun = plog.seconds(_NAMED_TIME.sub(r"\1-\2-\3-\4:\5:\6", found["time"]))
    rank = _rank_of_folders(named)
    role = role_of(stem, folders)
    in_name = _rank_of_stem(stem, base) if pid is None and rank is None and role == RANK else None
    return Owner(
        folder="/".join(named),
        host=_host(named),
        rank=in_name if rank is None else rank,
        pid=pid,
        role=role,
        begun=begun,
        named=stem if in_name is not None and "-" in stem else "",
    )


def _rank_of_folders(named: list[str]) -> int | None:
    for above, folder in zip(reversed(["", *named[:-1]]), reversed(named)):
        found = _RANK_FOLDER.fullmatch(folder) or _DEVICE_FOLDER.fullmatch(folder)
        if found:
            return int(found[1])
        if folder.isdigit() and len(folder) < 8 and _ATTEMPT.fullmatch(above):
            return int(folder)
    return None


def _rank_of_stem(stem: str, base: str) -> int | None:
    found = next((found for found in (pattern.fullmatch(stem) for pattern in _RANK_IN_NAME) if found), None)
    found = found or _NUMBERED.fullmatch(base)
    return int(found[1]) if found else None


def _host(named: list[str]) -> str | None:
    for number in range(len(named) - 1, -1, -1):
        run_id = number + 1 < len(named) and _ATTEMPT.fullmatch(named[number + 1])  # what torchrun calls the job
        if not run_id and not _NO_HOST.fullmatch(named[number]):
            return named[number]
    return None


def role_of(stem: str, folders: list[str] | tuple[str, ...] = ()) -> str:
    """The program that writes files with this name: one of the roles above."""
    if any(folder.startswith(("device-os", "dev-os")) for folder in folders):
        return SYSTEM
    return next((role for role, pattern in _BY_ROLE if pattern.fullmatch(stem)), RANK)


def of_lines(owner: Owner, voice: Voice | None, ranked: bool, told: list[Event], program: str) -> Owner:
    """The owner according to the lines, which are more reliable than the name of the file.

    voice: whose lines they are, where the file states that; ranked: it does so for ranks, so that the lines without a
    name are those of what has started them; program: the first one that its lines name.
    """
    if voice:
        owner = _of_voice(owner, voice)
    elif ranked and owner.role == RANK:
        owner = owner._replace(role=ENGINE, rank=None)
    if _SYSTEM_PROGRAM.match(program):
        return owner._replace(role=SYSTEM)
    if owner.role != RANK:
        return owner
    said = {int(event.values["rank"]) for event in told if event.kind == "own_rank"}
    what = {event.kind for event in told}
    if what & {"started", "worker_ended", "first_failure"}:
        return owner._replace(role=ENGINE, rank=None)
    if not said and what & {"scheduler", "registered", "node_lost"}:
        return owner._replace(role=SCHEDULER, rank=None)
    if len(said) == 1:
        return owner._replace(rank=said.pop(), named="")
    if said:
        return owner._replace(rank=None, host=owner.host or owner.named or None)
    return owner


def _of_voice(owner: Owner, voice: Voice) -> Owner:
    role = role_of(voice.name)
    if role != RANK:
        return owner._replace(role=role, rank=None)
    if voice.rank is not None:
        return owner._replace(rank=voice.rank, role=RANK, named=voice.name)
    host = owner.host if voice.name.isdigit() else voice.name.partition("/")[0]  # "train-worker-1/3": of a pod's ranks
    return owner._replace(host=host, folder=f"{owner.folder}/{voice.name}", role=RANK)


def with_masters(owners: list[Owner]) -> list[Owner]:
    """The ranks of a job with a master and workers, as PyTorch's jobs in Kubernetes: worker 0 is rank 1."""
    masters = {name for name in (_job_of(owner.named, "master") for owner in owners) if name is not None}
    return [
        owner._replace(rank=owner.rank + 1)
        if owner.rank is not None and _job_of(owner.named, "worker") in masters
        else owner
        for owner in owners
    ]


def _job_of(name: str, task: str) -> str | None:
    found = re.match(rf"(.*?)-?{task}-\d+", name)
    return found[1] if found else None


# ---- What kind of log a file is, by its name and its first bytes.

PLOG, DEVICE, TRAIN, HOST, NPU_INFO, OTHER = "plog", "device", "train", "host", "npu_info", "other"
KINDS = (PLOG, DEVICE, TRAIN, HOST)  # those that rules can name

_BY_NAME = (
    (PLOG, PLOG_NAME),
    (DEVICE, DEVICE_NAME),
    (HOST, re.compile(rf"{_OF_HOST}.*")),
    (NPU_INFO, re.compile(r"npu_info.*\.txt")),
    (TRAIN, re.compile(r".*\.(?:log|txt|out|err)|std(?:out|err)")),
)
# What "kubectl get" and "kubectl describe" say of a pod: why it ended, and nothing that a rank has printed
_DESCRIBED = re.compile(rb"Name: +\S+\s+(?:Namespace|Roles): ")
_OBJECT = re.compile(rb'(?:---\s+)?(?:\{\s*)?"?apiVersion"?: ?"?v1\b')
_OF_POD = re.compile(rb'\bkind"?: ?"?(?:Pod|Event)\b')
# The kernel's lines, as journalctl and dmesg print them
_OF_KERNEL = re.compile(
    rb"(?:-- [A-Z][^\n]{0,200}\n)?"
    rb"(?:(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\S{8,40}) \S{1,255} kernel: "
    rb"|\[ {0,4}\d{1,10}\.\d{6}\] )"
)
_NOT_LOGS = re.compile(r".*\.(?:json|ya?ml|env|stack|seen|ckpt|mindir|npy|bin|pyc?|so|csv|sh|html)")


def kind_of(name: str, head: bytes) -> str:
    """One of the kinds above; `name`: with or without folders, `head`: the file's first bytes, unpacked."""
    base = ROTATED.sub("", os.path.basename(name)) or os.path.basename(name)
    names = (base, os.path.basename(name))
    kind = next((kind for kind, pattern in _BY_NAME if any(map(pattern.fullmatch, names))), None)
    if kind is None:
        other = (_NOT_LOGS.fullmatch(base) and not is_of_pod(head)) or b"\0" in head[:64]
        kind = OTHER if other else TRAIN
    if kind == TRAIN and re.match(rb"\s*\[[A-Z]+\] (?:HCCL|RUNTIME|GE|DRV|HCCP|TDT|ASCENDCL)\(\d+", head):
        return PLOG
    return kind


def is_of_kernel(name: str, head: bytes) -> bool:
    """Whether a log begins with a line of the kernel, and its name is not that of a rank; `head`: with its times."""
    named = of_name(name)
    return named.rank is None and named.role == RANK and bool(_OF_KERNEL.match(head))


def as_log(name: str) -> str:
    """The name of a file that the user has named: it is read as a log, whatever its name ends with."""
    return name + ".log" if _NOT_LOGS.fullmatch(os.path.basename(name)) else name


def is_of_pod(head: bytes) -> bool:
    """Whether these are the first bytes of what Kubernetes states about a pod."""
    return bool(_DESCRIBED.match(head) or (_OBJECT.match(head) and _OF_POD.search(head)))
