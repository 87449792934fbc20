"""Checks whether the NPUs or GPUs that a launch needs are on this host."""

from __future__ import annotations

from hccl_tools.common.language import tr
from hccl_tools.common.words import named
from hccl_tools.machine import host, programs
from tools.launch.programs import trainer_command


def missing_npus(script: str, devices: list[int]) -> str | None:
    """One line when a device is not here, else None."""
    present = host.devices()
    if set(devices) <= set(present):
        return None
    if not present:
        answer = programs.ask(["npu-smi", "info", "-m"], 30)
        said = (
            tr(", which said: {said}", said=programs.said(answer))
            if answer.status and programs.on_path("npu-smi")
            else ""
        )
        return tr(
            "no Ascend NPU on this machine: looked for /dev/davinci{device} and asked "
            "npu-smi{said}; to try the launch without NPUs: bash scripts/{script} "
            "--device_target CPU CONFIG",
            device=devices[0],
            said=said,
            script=script,
        )
    needs, has = named("device", devices), named("device", present)
    return tr(
        "this launch needs {needs}, this machine has {has}; choose from those with --devices", needs=needs, has=has
    )


def missing_gpus(script: str, devices: list[int]) -> str | None:
    """One line when a GPU is not here, else None."""
    without = _without_gpus(script)
    if not programs.on_path("nvidia-smi"):
        return tr("no GPU on this machine: nvidia-smi is not on PATH; {without}", without=without)
    answer = programs.ask(["nvidia-smi", "-L"], 30)
    if answer.status:
        return tr("nvidia-smi does not work, it said: {said}; {without}", said=programs.said(answer), without=without)
    present = sum(line.startswith("GPU ") for line in answer.stdout.splitlines())
    if not present:
        return tr("no GPU on this machine: nvidia-smi names none; {without}", without=without)
    if max(devices) < present:
        return None
    return tr(
        "GPU {device} is not on this machine, which has {present}; start fewer ranks with -n",
        device=max(devices),
        present=present,
    )


def no_gpus_for_mindspore(script: str) -> str | None:
    """One line when MindSpore refuses GPUs, else None.  It is asked, for seconds: each version has rules of its own."""
    from tools.trainer import gpu_backend

    answer = programs.ask([trainer_command.python(), "-c", gpu_backend.QUESTION], 120)
    if gpu_backend.REFUSED not in answer.stderr:
        return None
    return tr(
        "MindSpore cannot use GPUs: {reason}; {without}",
        reason=gpu_backend.refusal(answer.stderr),
        without=_without_gpus(script),
    )


def _without_gpus(script: str) -> str:
    return tr("to try the launch without GPUs: bash scripts/{script} --device_target CPU ...", script=script)
