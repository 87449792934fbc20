"""Whether the NPUs that a launch wants are on this host."""

from hccl_tools import host


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
