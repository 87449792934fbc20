"""Whether the NPUs or GPUs that a launch wants are on this host."""

from hccl_tools.machine import host, programs


def missing(script, devices):
    """One line when a device is not here, else None."""
    present = host.devices()
    absent = [device for device in devices if device not in present]
    if not absent:
        return None
    wanted = ",".join(map(str, devices))
    if not present:
        return (
            f"no Ascend NPU on this machine: looked for /dev/davinci{devices[0]} and asked npu-smi; to try the "
            f"launch without NPUs: bash scripts/{script} --device_target CPU CONFIG"
        )
    return (
        f"device {','.join(map(str, absent))} of {wanted} is not on this machine, which has "
        f"{','.join(map(str, present))}; choose from those with --devices"
    )


def missing_gpus(script, devices):
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
