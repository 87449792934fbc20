"""Determines the job of a pod from the variables of an operator, Volcano, ModelArts or an Indexed Job of Kubernetes.

An option of the user takes precedence over any variable.  If two variables contradict each other, the launch is
refused, and the message names both.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterable

from hccl_tools.common.language import tr
from hccl_tools.common.numbers import whole_number
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import REFUSED, Refusal, refused
from hccl_tools.common.words import clauses, named, one_line, short
from hccl_tools.hosts import hostfile
from hccl_tools.machine import visible
from hccl_tools.table import device_range
from hccl_tools.table.address import bare, family
from tools.launch.request import MAX_RANKS, Request

SCHEDULER, WORKER = "MS_SCHED", "MS_WORKER"
# The addresses of this pod, and of its node.  A manifest asks the downward API for them; ModelArts sets the last.
ADDRESSES = ("POD_IP", "XDL_IP", "HOST_IP", "MA_CURRENT_IP")
_INDICES = ("MS_NODE_RANK", "JOB_COMPLETION_INDEX", "VK_TASK_INDEX", "VC_TASK_INDEX")
_HOSTS = re.compile(r"VC_(\w+)_HOSTS")


class Fact(Record):
    """A number, and the text that names its source."""

    source: str
    value: int


class PodJob(Record):
    """What options and environment say about this pod and its job.  None: not specified."""

    world: Fact | None  # ranks of the job
    local: Fact | None  # ranks of this pod
    pods: Fact | None  # pods with ranks
    node: Fact | None  # the number of this pod, from 0
    role: str  # MS_SCHED or MS_WORKER, by an operator that has a pod for the scheduler; otherwise ""
    has_ranks: bool  # False: this pod has the scheduler, and nothing else
    scheduler: str | None  # the scheduler's host: a name or an address
    devices: tuple[int, ...] | None  # physical ids, sorted
    addresses: dict[str, str]  # {variable: address}
    names: list[str]  # of the job's pods, in their order; empty: unknown
    uid: str = ""  # what only the pods of one job have alike


def read(request: Request) -> PodJob:
    """The job of this pod.  Raises Refusal."""
    role, has_ranks = _role()
    names, names_source = _names()
    devices = _devices(request)
    world = _option("--worker_num", request.worker_num) or _number("MS_WORKER_NUM", 1)
    local = _local(request, devices, has_ranks)
    node = _option("--node_rank", request.node_rank) or _agreed(_number(name, 0) for name in _INDICES)
    told = [Fact(source=names_source, value=len(names))] if names else []
    pods = _agreed([*told, _number("MA_NUM_HOSTS", 1), _quotient(world, local)])
    if node and pods and node.value >= pods.value and has_ranks:
        text = tr(
            "{source} is {number}, but the job has {pods} pods ({pods_source}), which count from 0",
            source=node.source,
            number=node.value,
            pods=pods.value,
            pods_source=pods.source,
        )
        raise Refusal(REFUSED, clauses(text, _remedy()))
    return PodJob(
        world=world,
        local=local,
        pods=pods,
        node=node,
        role=role,
        has_ranks=has_ranks,
        scheduler=_host("--master_addr", request.master_addr)
        or _host("MS_SCHED_HOST", os.environ.get("MS_SCHED_HOST"))
        or next(iter(names), None),
        devices=devices,
        addresses=_addresses(),
        names=names,
        uid=os.environ.get("MINDX_TASK_ID") or os.environ.get("JOB_UID", ""),
    )


def _remedy() -> str:
    return tr("correct the manifest: what a container sets replaces what the operator sets")


def _option(name: str, value: int | None) -> Fact | None:
    return None if value is None else Fact(source=name, value=value)


def _number(name: str, least: int) -> Fact | None:
    """The number in a variable; None where it is not set or empty.  Raises Refusal."""
    text = os.environ.get(name, "")
    if not text:
        return None
    value = whole_number(text, least, MAX_RANKS)
    if value is None:
        what = tr("is not a number from {least} to {most}", least=least, most=MAX_RANKS)
        raise Refusal(REFUSED, clauses(f"{name}={short(text)} {what}", _remedy()))
    return Fact(source=name, value=value)


def _agreed(facts: Iterable[Fact | None]) -> Fact | None:
    """The first of these facts, if all say the same.  Raises Refusal."""
    told = [fact for fact in facts if fact]
    for other in told[1:]:
        if other.value != told[0].value:
            text = tr(
                "{first} is {value}, but {second} is {other}",
                first=told[0].source,
                value=told[0].value,
                second=other.source,
                other=other.value,
            )
            raise refused("contradictory variables: {text}; {remedy}", text=text, remedy=_remedy())
    return told[0] if told else None


def _quotient(world: Fact | None, local: Fact | None) -> Fact | None:
    """The number of pods, if the numbers of ranks tell it.  Raises Refusal."""
    if not world or not local:
        return None
    if world.value % local.value:
        text = tr(
            "{all} ranks in all ({all_source}) are not a multiple of {each} in each pod ({each_source})",
            all=world.value,
            all_source=world.source,
            each=local.value,
            each_source=local.source,
        )
        raise Refusal(REFUSED, clauses(text, tr("give every pod the same number of ranks")))
    return Fact(source=f"{world.source} / {local.source}", value=world.value // local.value)


def _local(request: Request, devices: tuple[int, ...] | None, has_ranks: bool) -> Fact | None:
    """The ranks of this pod.  On NPUs the devices must be as many.  Raises Refusal."""
    cards = Fact(source=_counted(request), value=len(devices)) if devices else None
    said = _option("--local_worker_num", request.local_worker_num) or _number("MS_LOCAL_WORKER", 1)
    if not has_ranks or (said and request.device_target != "Ascend"):
        return said
    return _agreed([said, cards]) or (None if os.environ.get("MA_NUM_GPUS") == "0" else _number("MA_NUM_GPUS", 1))


def _devices_source(request: Request) -> str:
    return "--devices" if request.devices is not None else "ASCEND_VISIBLE_DEVICES"


def _counted(request: Request) -> str:
    """What states how many devices the ranks have: a variable may leave some of those that the pod got."""
    source = _devices_source(request)
    limited = request.devices is None and request.device_target == "Ascend" and visible.npus().limit
    return visible.NPUS if limited else source


def _devices(request: Request) -> tuple[int, ...] | None:
    """The physical devices that the pod got, and that its ranks see.  Raises Refusal."""
    source = _devices_source(request)
    text = request.devices or os.environ.get("ASCEND_VISIBLE_DEVICES", "")
    if not text.strip():
        return None
    text = re.sub(r"\bAscend\w*-(?=\d)", "", text)  # an annotation has Ascend910-0,Ascend910-1
    try:
        found = tuple(sorted(device_range.parse(re.sub(r"(\d+)-(\d+)", _run, text))))
    except device_range.RangeError as error:
        remedy = tr("write physical devices such as 0,1,2,3")
        raise Refusal(REFUSED, clauses(f"{source}: {error}", remedy)) from error
    if request.devices is not None or request.device_target != "Ascend":
        return found
    shown = visible.npus()
    return tuple(device for device in found if not shown.hides(device))


def _run(found: re.Match[str]) -> str:
    """``0-3`` as ``0,1,2,3``; anything else stays as it is, for the message."""
    first, last = (whole_number(text, 0, MAX_RANKS) for text in found.groups())
    if first is None or last is None or not first <= last < first + 64:
        return found[0]
    return ",".join(map(str, range(first, last + 1)))


def _role() -> tuple[str, bool]:
    """(MS_ROLE, whether this pod has ranks).  Raises Refusal."""
    role = os.environ.get("MS_ROLE", "")
    if role not in ("", SCHEDULER, WORKER):
        text = tr("MS_ROLE={value} is neither {one} nor {other}", value=short(role), one=SCHEDULER, other=WORKER)
        raise Refusal(REFUSED, clauses(text, _remedy()))
    # An operator that gives the scheduler's pod devices wants ranks there, too.
    return role, role != SCHEDULER or os.environ.get("NPU_POD", "").lower() == "true"


def _host(source: str, text: str | None) -> str | None:
    """`text`, which `source` gives as the name or the address of a host.  Raises Refusal."""
    if text is not None and family(bare(text)) is None and (not text or hostfile.fault_of_host(text)):
        what = tr('"{text}" is neither the name nor the address of a host', text=short(text))
        raise Refusal(REFUSED, clauses(f"{source}: {what}", _remedy()))
    return text


def _names() -> tuple[list[str], str]:
    """(the names of the job's pods, the variable) by Volcano's plugin svc and ModelArts.  Raises Refusal."""
    lists = {name: value.split(",") for name, value in os.environ.items() if _HOSTS.fullmatch(name) and value.strip()}
    own = socket.gethostname().partition(".")[0]
    if len(lists) > 1:  # a list for each task: this pod is in one of them
        lists = {name: hosts for name, hosts in lists.items() if own in (host.partition(".")[0] for host in hosts)}
    for name, hosts in lists.items():
        for host in hosts:
            _host(name, host)
    return next(((hosts, name) for name, hosts in lists.items()), ([], ""))


def _addresses() -> dict[str, str]:
    """The addresses that the environment gives.  Raises Refusal."""
    found = {name: os.environ[name] for name in ADDRESSES if name in os.environ}
    for name, text in found.items():
        if not text:
            remedy = tr(
                'the pod has no IP, or the manifest asks for another field than "status.podIP"; '
                "see: kubectl get pod -o wide"
            )
            raise Refusal(REFUSED, clauses(f"{name}: {tr('it is empty')}", remedy))
        if family(text) is None:
            raise Refusal(REFUSED, clauses(f"{name}={short(text)}: {tr('this is not an IP address')}", _remedy()))
    return found


def described(job: PodJob) -> str:
    """How this pod identifies itself in a rank table, for a message: its addresses and devices."""
    parts = [f"{name}={one_line(text)}" for name, text in job.addresses.items()]
    parts = parts or [tr("no variable {names} is set", names=", ".join(ADDRESSES[:3]))]
    if job.devices:
        parts.append(named("device", job.devices))
    return ", ".join(parts)
