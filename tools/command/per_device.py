"""--nproc_per_node auto, gpu, npu or cpu, as torchrun has them: one rank per device, or per core, of a host."""

from __future__ import annotations

import os

from hccl_tools.common.language import marked, tr
from hccl_tools.table import device_range
from tools.command.line import Line

TARGETS = {"gpu": "GPU", "npu": "Ascend", "cpu": "CPU", "auto": ""}
OPTIONS = ("n", "npernode", "local_worker_num", "ntasks_per_node")  # ours, for which they can stand
_EACH = marked("one rank starts for each device")
_SLOTS = marked("the slots of the hosts say how many ranks each has")
_ALLOCATION = marked("Slurm's allocation says how many ranks each node has")


def finish(line: Line) -> None:
    """When all words are read: the number of ranks of this host, in the option that the script has for it."""
    typed, own, word = line.per_device
    target = _target(line, typed, TARGETS[word])
    why = _needless(line, own, target)
    if why:
        line.note_needless(typed, tr(why))
        return
    number = _devices(line, target)
    if not number:
        raise line.misused(
            "{typed}: this host has no visible {target}; write the number of ranks, or: --device_target CPU",
            typed=typed,
            target="NPU" if target == "Ascend" else target,
        )
    each = tr("one for each core") if target == "CPU" else tr("one for each device of this host")
    line.note(tr("note: {typed}: {number} ranks, {each}", typed=typed, number=number, each=each))
    line.options.append((own, str(number)))
    line.per_host = True


def _target(line: Line, typed: str, named: str) -> str:
    """The hardware that the ranks run on: the word names it, else --device_target or the script, else this machine."""
    given = line.value("device_target")
    if named and given and given.lower() != named.lower():
        raise line.misused(
            "{typed} and --device_target {target} name different hardware; give one of them", typed=typed, target=given
        )
    if named and not given and "device_target" in line.table:
        line.options.append(("device_target", named))
    found = named or given or line.declaration.extra.get("device_target", "")
    if not found:
        from tools.launch import request  # few command lines need it

        return request.found_target()
    return next((name for name in TARGETS.values() if name and name.lower() == found.lower()), found)


def _needless(line: Line, own: str, target: str) -> str:
    """Why counting is not needed, as a message; empty if it is."""
    if line.given(own) or own == "ntasks_per_node":
        return _ALLOCATION if own == "ntasks_per_node" else _EACH
    if line.given("hosts") or line.given("hostfile") or line.names[:1] == ("HOSTFILE",) or line.is_list_of_hosts():
        return _SLOTS
    return _EACH if own == "n" and (target != "CPU" or line.given("devices")) else ""


def _devices(line: Line, target: str) -> int:
    """How many there are here, of those that are visible.  Raises Refusal."""
    if line.given("devices"):
        return len(device_range.parse(line.value("devices")))
    if target == "CPU":
        return len(os.sched_getaffinity(0))
    from hccl_tools.machine import host, visible

    ids = visible.of(target).ids
    if ids is not None:
        return len(ids)
    return visible.number_of_gpus() if target == "GPU" else len(host.devices())
