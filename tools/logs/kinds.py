"""What kind of log a file is, by its name and its first bytes."""

from __future__ import annotations

import os
import re

from tools.logs import owners
from tools.logs.owners import ENGINE, RANK, SCHEDULER, SYSTEM, Owner, of_name

__all__ = ["ENGINE", "RANK", "SCHEDULER", "SYSTEM", "Owner", "kind_of", "owner_of"]
PLOG, DEVICE, TRAIN, HOST, NPU_INFO, OTHER = "plog", "device", "train", "host", "npu_info", "other"
KINDS = (PLOG, DEVICE, TRAIN, HOST)  # those that rules can name

_BY_NAME = (
    (PLOG, owners.PLOG_NAME),
    (DEVICE, owners.DEVICE_NAME),
    (
        HOST,
        re.compile(r"(?:messages|syslog|kern\.log|dmesg|vmcore-dmesg|sysmonitor|host_kernel|device-os)(?![a-zA-Z]).*"),
    ),
    (NPU_INFO, re.compile(r"npu_info.*\.txt")),
    (TRAIN, re.compile(r".*\.(?:log|txt|out|err)|std(?:out|err)")),
)
# What "kubectl get" and "kubectl describe" say of a pod: why it ended, and nothing that a rank has printed
_DESCRIBED = re.compile(rb"Name: +\S+\s+(?:Namespace|Roles): ")
_OBJECT = re.compile(rb'(?:---\s+)?(?:\{\s*)?"?apiVersion"?: ?"?v1\b')
_OF_POD = re.compile(rb'\bkind"?: ?"?(?:Pod|Event)\b')
_NOT_LOGS = re.compile(r".*\.(?:json|ya?ml|env|stack|seen|ckpt|mindir|npy|bin|pyc?|so|csv|sh|html)")


def kind_of(name: str, head: bytes) -> str:
    """One of the kinds above; `name`: with or without folders, `head`: the file's first bytes, unpacked."""
    base = owners.ROTATED.sub("", os.path.basename(name)) or os.path.basename(name)
    names = (base, os.path.basename(name))
    kind = next((kind for kind, pattern in _BY_NAME if any(map(pattern.fullmatch, names))), None)
    if kind is None:
        other = (_NOT_LOGS.fullmatch(base) and not is_of_pod(head)) or b"\0" in head[:64]
        kind = OTHER if other else TRAIN
    if kind == TRAIN and re.match(rb"\s*\[[A-Z]+\] (?:HCCL|RUNTIME|GE|DRV|HCCP|TDT|ASCENDCL)\(\d+", head):
        return PLOG
    return kind


def is_of_pod(head: bytes) -> bool:
    """Whether these are the first bytes of what Kubernetes says of a pod."""
    return bool(_DESCRIBED.match(head) or (_OBJECT.match(head) and _OF_POD.search(head)))


def owner_of(path: str) -> Owner:
    """Whose log the file `path` is; the path is relative to what the user named."""
    return of_name(path)
