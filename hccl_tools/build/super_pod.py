"""The super pod that an A3 host is in, as npu-smi knows it, and the version 1.2 table that says so.

On A3 an NPU has two chips, each a device of its own.  HCCL finds the devices of other servers of the
same super pod by their SDID, in the table super_device_id; without them it uses the network only.
"""

import re
from collections import namedtuple

from hccl_tools.common.words import one_line
from hccl_tools.machine import host, programs

DEVICES = 16  # of an A3 host
_SECONDS = 30  # for one npu-smi, which takes a second or two on a busy host
_NONE = "does not support querying spod-info"
_FIELD = re.compile(r"^\s*(SDID|Super Pod ID)\s*:\s*([0-9]{1,10})\s*$", re.MULTILINE)

SuperPod = namedtuple("SuperPod", "super_pod_id super_device_ids")  # str, {device id: str}


class SuperPodError(Exception):
    """npu-smi gives no usable answer: the text names the device, what was asked, and what to do."""


def of_devices(device_ids):
    """(SuperPod, None) of this host's devices, or (None, why not) where there is no super pod.

    All devices are asked at the same time.  Raises SuperPodError where that cannot be known.
    """
    if not programs.on_path("npu-smi"):
        return None, "npu-smi is not on PATH (it is in /usr/local/bin or /usr/local/sbin of a host)"
    chips = _chips(device_ids)
    answers = {device: _spod_info(device, *chips[device], answer) for device, answer in _ask(chips).items()}
    outside = [device for device, found in answers.items() if found is None]
    if len(outside) == len(answers):
        return None, "npu-smi says that this host is in no super pod"
    if outside:
        raise SuperPodError(
            f"device {outside[0]} is in no super pod but others of this host are; see "
            f"`npu-smi info -t spod-info -i {chips[outside[0]][0]} -c {chips[outside[0]][1]}`"
        )
    pods = sorted({pod for _, pod in answers.values()})
    if len(pods) > 1:
        raise SuperPodError(f"the devices of this host are in several super pods: {', '.join(pods)}; ask its operator")
    return SuperPod(pods[0], {device: sdid for device, (sdid, _) in answers.items()}), None


def add(table, pod):
    """The version 1.2 table of the one server that the 1.0 `table` has, in super pod `pod` (SuperPod)."""
    (server,) = table["server_list"]
    devices = [_with_super_device_id(device, pod) for device in server["device"]]
    members = [{"server_id": server["server_id"]}]
    return {
        "version": "1.2",
        "server_count": "1",
        "server_list": [{"server_id": server["server_id"], "device": devices}],
        "super_pod_list": [{"super_pod_id": pod.super_pod_id, "server_list": members}],
        "status": "completed",
    }


def _with_super_device_id(device, pod):
    rest = {key: value for key, value in device.items() if key != "device_id"}
    number = device["device_id"]
    return {"device_id": number, "super_device_id": pod.super_device_ids[int(number)], **rest}


# ---- npu-smi -------------------------------------------------------------------------------------


def _chips(device_ids):
    """{device: (NPU, chip)} in the order of `device_ids`, from ``npu-smi info -m``."""
    answer = programs.ask(["npu-smi", "info", "-m"], _SECONDS)
    found = host.npu_chips(answer.stdout) if answer.status == 0 else {}
    if not found:
        raise SuperPodError(f"`npu-smi info -m` names no device: {_said(answer)}; check the driver with `npu-smi info`")
    for device in device_ids:
        if device not in found:
            there = ",".join(map(str, sorted(found)))
            raise SuperPodError(
                f"device {device} is not there: `npu-smi info -m` has {there}; choose from those with --device_num"
            )
    return {device: found[device] for device in device_ids}


def _ask(chips):
    """{device: programs.Ended} of the super pod's question, all asked at once."""
    question = ["npu-smi", "info", "-t", "spod-info"]
    commands = {device: [*question, "-i", str(npu), "-c", str(chip)] for device, (npu, chip) in chips.items()}
    return programs.ask_all(commands, _SECONDS)


def _spod_info(device, npu, chip, answer):
    """(SDID, super pod id) as text, or None where the device is in no super pod."""
    if _NONE in answer.stdout + answer.stderr:
        return None
    fields = dict(_FIELD.findall(answer.stdout)) if answer.status == 0 else {}
    if len(fields) == 2:
        return str(int(fields["SDID"])), str(int(fields["Super Pod ID"]))
    raise SuperPodError(
        f"device {device} has no SDID: `npu-smi info -t spod-info -i {npu} -c {chip}` said: {_said(answer)}; "
        "check the card with `npu-smi info`"
    )


def _said(answer):
    lines = (answer.stderr.strip() or answer.stdout.strip() or "nothing").splitlines()
    return f"{one_line(lines[0].strip())} (exit {answer.status})"
