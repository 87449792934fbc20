"""Checks whether the NPUs or GPUs that a launch needs are on this host."""

from __future__ import annotations

from collections.abc import Sequence

from hccl_tools.common.language import tr
from hccl_tools.common.refusal import REFUSED, NotHere, refused
from hccl_tools.common.words import named
from hccl_tools.machine import driver, host, npu_use, programs, visible
from tools.launch.programs import trainer_command


def npus(devices: list[int]) -> None:
    """Checks that these NPUs are here.  Raises Refusal."""
    present = host.devices()
    if set(devices) <= set(present):
        return
    if not present:
        answer = programs.ask([driver.word(driver.NPU_SMI), "info", "-m"], 30)
        said = ""
        if answer.status and driver.find(driver.NPU_SMI):
            remedy = driver.remedy_for(answer)
            said = tr(", which printed: {said}; {remedy}", said=programs.said(driver.telling(answer)), remedy=remedy)
        raise NotHere(
            REFUSED,
            tr(
                "no Ascend NPU on this machine: looked for /dev/davinci{device} and asked npu-smi{said}",
                device=devices[0],
                said=said,
            ),
        )
    needs, has = named("device", devices), named("device", present)
    raise refused(
        "this launch needs {needs}, this machine has {has}; choose from those with --devices", needs=needs, has=has
    )


def gpus(devices: list[int]) -> None:
    """Checks that these GPUs are here.  Raises Refusal."""
    if not programs.on_path("nvidia-smi"):
        raise NotHere(REFUSED, tr("no GPU on this machine: nvidia-smi is not on PATH"))
    answer = programs.ask(["nvidia-smi", "-L"], 30)
    if answer.status:
        raise NotHere(REFUSED, tr("nvidia-smi does not work; it printed: {said}", said=programs.said(answer)))
    present = sum(line.startswith("GPU ") for line in answer.stdout.splitlines())
    shown = visible.gpus()
    if not present:
        raise NotHere(REFUSED, tr("no GPU on this machine: nvidia-smi names none"))
    if max(devices) < present or (shown.of_slurm and len(devices) <= present):
        return
    if shown.limit:
        text = tr(
            "{limit} names GPU {device}, but this machine has {present}",
            limit=shown.limit,
            device=max(devices),
            present=present,
        )
        raise refused("{text}; see: nvidia-smi -L", text=text)
    raise refused(
        "GPU {device} is not on this machine, which has {gpus}; {remedy}",
        device=max(devices),
        gpus=named("GPU", range(present)),
        remedy=tr("start fewer ranks with -n") if len(devices) > present else tr("choose from those with --devices"),
    )


def gpus_in_use(devices: Sequence[int]) -> list[str]:
    """A remark for each GPU of the launch on which a process of somebody else computes.

    A GPU serves several processes in turns: on an H200 a step took 2.7 ms instead of 1.0 next to one that computed.
    """
    if not programs.on_path("nvidia-smi"):
        return []
    wanted = {"gpus": npu_use.ask_gpus("index,gpu_uuid"), "holders": npu_use.ask_gpu_holders()}
    asked = programs.ask_all(wanted, npu_use.GPU_SECONDS)
    holders = npu_use.gpu_holders(asked["holders"])
    numbers = set(map(str, devices))
    return [
        tr(
            "note: another process uses GPU {gpu} ({processes}) and will slow this job; see: nvidia-smi",
            gpu=index,
            processes=holders[uuid],
        )
        for index, uuid in npu_use.gpu_rows(asked["gpus"], 2)
        if index in numbers and uuid in holders
    ]


def gpus_for_mindspore() -> None:
    """Asks MindSpore whether it takes GPUs, for seconds: each version has rules of its own.  Raises Refusal."""
    from tools.trainer import gpu_backend

    answer = programs.ask([trainer_command.python(), "-c", gpu_backend.QUESTION], 120)
    if gpu_backend.REFUSED in answer.stderr:
        reason = gpu_backend.refusal(answer.stderr)
        raise NotHere(REFUSED, tr("MindSpore cannot use GPUs: {reason}", reason=reason))
