"""What kind of log a file is, by its name and its first bytes, and whose it is, by the folders above it."""

from __future__ import annotations

import os
import re

from hccl_tools.common.record import Row
from tools.logs import plog

PLOG, DEVICE, TRAIN, HOST, NPU_INFO, OTHER = "plog", "device", "train", "host", "npu_info", "other"
KINDS = (PLOG, DEVICE, TRAIN, HOST)  # those that rules can name

_BY_NAME = (
    (PLOG, re.compile(r"plog-(?:parser-)?(?P<pid>\d{1,10})[-_](?P<time>\w{1,20})\.log")),
    (DEVICE, re.compile(r"device-(?P<pid>\d{1,10})_(?P<time>\d{1,20})\.log")),
    (
        HOST,
        re.compile(r"(?:messages|syslog|kern\.log|dmesg|vmcore-dmesg|sysmonitor|host_kernel|device-os)(?![a-zA-Z]).*"),
    ),
    (NPU_INFO, re.compile(r"npu_info.*\.txt")),
    (TRAIN, re.compile(r".*\.(?:log|txt|out|err)|std(?:out|err)")),
)
RANK, SCHEDULER, ENGINE, SYSTEM = "rank", "scheduler", "engine", "host"  # roles: only a rank may be a root
_BY_ROLE = (
    (SCHEDULER, re.compile(r"(?:.*[-_.])?(?:scheduler|sched)(?:[-_.]?\d{1,7})?")),
    (ENGINE, re.compile(r"(?:.*[-_.])?(?:msrun|mpirun|mpiexec|torchrun|srun|launcher|deepspeed)(?:[-_.]?\d{1,7})?")),
)
_NOT_LOGS = re.compile(r".*\.(?:json|ya?ml|env|stack|seen|ckpt|mindir|npy|bin|pyc?|so|csv|sh|html)")
_ROTATED = re.compile(r"(?:[.-]\d{1,8})?(?:\.gz)?$")
_RANK = re.compile(r"(?:rank|worker)[-_]?(\d{1,7})")
# Folders that CANN, ModelArts and Kubernetes' mounts have in every job: they tell processes apart in no way.
_COMMON = re.compile(r"debug|run|security|plog|log|logs|ascend|process_log|device-\d+|device-os.*|alllogs|debug_\w+|\.")
_NAMED_TIME = re.compile(r"^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)\d*$")


class Owner(Row):
    """Whose log it is: the folders that tell processes apart, the host, the rank and the process, as far as named."""

    folder: str
    host: str | None
    rank: int | None
    pid: int | None
    role: str = RANK
    begun: float | None = None  # when the file was begun, by its name: with the process, not with its first line


def kind_of(name: str, head: bytes) -> str:
    """One of the kinds above; `name`: with or without folders, `head`: the file's first bytes, unpacked."""
    base = _ROTATED.sub("", os.path.basename(name)) or os.path.basename(name)
    names = (base, os.path.basename(name))
    kind = next((kind for kind, pattern in _BY_NAME if any(map(pattern.fullmatch, names))), None)
    if kind is None:
        kind = OTHER if _NOT_LOGS.fullmatch(base) or b"\0" in head[:64] else TRAIN
    if kind == TRAIN and re.match(rb"\s*\[[A-Z]+\] (?:HCCL|RUNTIME|GE|DRV|HCCP|TDT|ASCENDCL)\(\d+", head):
        return PLOG
    return kind


def owner_of(path: str) -> Owner:
    """Whose log the file `path` is; the path is relative to what the user named."""
    *folders, base = path.replace(os.sep, "/").split("/")
    named = [folder for folder in folders if folder and not _COMMON.fullmatch(folder)]
    rank = next(
        (int(found[1]) for found in map(_RANK.fullmatch, reversed(named)) if found and "rank" in found[0]), None
    )
    host = next((folder for folder in reversed(named) if not folder.startswith("rank")), None)
    pid, begun = None, None
    for _, pattern in _BY_NAME[:2]:
        found = pattern.fullmatch(_ROTATED.sub("", base)) or pattern.fullmatch(base)
        if found:
            pid = int(found["pid"])
            begun = plog.seconds(_NAMED_TIME.sub(r"\1-\2-\3-\4:\5:\6", found["time"]))
    own = _RANK.match(base)
    if pid is None and own and rank is None:
        rank = int(own[1])
    return Owner("/".join(named), host, rank, pid, role_of(path), begun)


def role_of(path: str) -> str:
    """Who wrote the file, as far as its name tells: one of the roles above."""
    base = os.path.basename(path)
    stem = re.sub(r"\.(?:log|txt|out|err)$", "", _ROTATED.sub("", base))
    if kind_of(path, b"") == HOST:
        return SYSTEM
    return next((role for role, pattern in _BY_ROLE if pattern.fullmatch(stem)), RANK)
