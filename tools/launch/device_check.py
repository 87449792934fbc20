"""Checks whether the NPUs or GPUs that a launch needs are on this host."""

from __future__ import annotations

from hccl_tools.common.words import named
from hccl_tools.machine import host, programs


def missing_npus(script: str, devices: list[int]) -> str | None:
    """One line when a device is not here, else None."""
    present = host.devices()
    if set(devices) <= set(present):
        return None
    if not present:
        return (
            f"no Ascend NPU on this machine: looked for /dev/davinci{devices[0]} and asked npu-smi; to try the "
            f"launch without NPUs: bash scripts/{script} --device_target CPU CONFIG"
        )
    needs, has = named("device", devices), named("device", present)
    return f"this launch needs {needs}, this machine has {has}; choose from those with --devices"


def missing_gpus(script: str, devices: list[int]) -> str | None:
    """One line when a GPU is not here, else None."""
    present = 0
    if programs.on_path("nvidia-smi"):
        answer = programs.ask(["nvidia-smi", "-L"], 30)
        present = sum(line.startswith("GPU ") for line in answer.stdout.splitlines()) if answer.status == 0 else 0
    if not present:
        why = "names none" if programs.on_path("nvidia-smi") else "is not on PATH"
        return (
            f"no GPU on this machine: nvidia-smi {why}; "
            f"to try the launch without GPUs: bash scripts/{script} --device_target CPU ..."
        )
    if max(devices) < present:
        return None
    return f"GPU {max(devices)} is not on this machine, which has {present}; start fewer ranks with -n"
