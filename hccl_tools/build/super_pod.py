"""Finds the super pod of an A3 host with npu-smi, and builds the version 1.2 table with it.

On A3 an NPU has two chips, and each is a separate device.  HCCL finds the devices of other servers in the same super
pod by their SDID, which the table has as super_device_id.  Without it HCCL uses only the network.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hccl_tools.common.documents import JsonObject
from hccl_tools.common.language import tr
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import BAD, Refusal
from hccl_tools.common.words import one_line
from hccl_tools.machine import driver, host, programs

DEVICES = 16  # of an A3 host
_SECONDS = 30  # limit of one npu-smi, which takes a second or two on a busy host
_NONE = "does not support querying spod-info"
_FIELD = re.compile(r"^\s*(SDID|Super Pod ID)\s*:\s*([0-9]{1,10})\s*$", re.MULTILINE)


class SuperPod(Record):
    """A super pod and the SDIDs of this host's devices in it."""

    super_pod_id: str
    super_device_ids: dict[int, str]


class SuperPodError(Refusal):
    """npu-smi gives no usable answer: the line names the device, what was asked, and what to do."""

    def __init__(self, message: str, **values: object) -> None:
        super().__init__(BAD, tr(message, **values))


def of_devices(device_ids: Sequence[int]) -> tuple[SuperPod | None, str | None]:
    """(SuperPod, None) of this host's devices, or (None, why not) where there is no super pod.

    All devices are asked at the same time.  Raises SuperPodError if npu-smi gives no clear answer.
    """
    if driver.find(driver.NPU_SMI) is None:
        return None, driver.missing(driver.NPU_SMI)[0]
    chips = _chips(device_ids)
    answers = {device: _spod_info(device, *chips[device], answer) for device, answer in _ask(chips).items()}
    inside = {device: found for device, found in answers.items() if found}
    if not inside:
        return None, tr("npu-smi reports that this host is not in a super pod")
    for device, (npu, chip) in chips.items():
        if device not in inside:
            raise SuperPodError(
                "device {device} is not in a super pod, but other devices of this host are; see `npu-smi info -t "
                "spod-info -i {npu} -c {chip}`",
                device=device,
                npu=npu,
                chip=chip,
            )
    pods = sorted({pod for _, pod in inside.values()})
    if len(pods) > 1:
        raise SuperPodError(
            "the devices of this host are in several super pods: {pods}; ask its operator", pods=", ".join(pods)
        )
    return SuperPod(super_pod_id=pods[0], super_device_ids={device: sdid for device, (sdid, _) in inside.items()}), None


def add(table: JsonObject, pod: SuperPod) -> JsonObject:
    """The version 1.2 table of the one server that the 1.0 `table` has, in super pod `pod`."""
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


def _with_super_device_id(device: dict[str, str], pod: SuperPod) -> dict[str, str]:
    rest = {key: value for key, value in device.items() if key != "device_id"}
    number = device["device_id"]
    return {"device_id": number, "super_device_id": pod.super_device_ids[int(number)], **rest}


# ---- npu-smi -------------------------------------------------------------------------------------


def _chips(device_ids: Sequence[int]) -> dict[int, tuple[int, int]]:
    """{device: (NPU, chip)} in the order of `device_ids`, from ``npu-smi info -m``."""
    answer = programs.ask([driver.word(driver.NPU_SMI), "info", "-m"], _SECONDS)
    found = host.npu_chips(answer.stdout) if answer.status == 0 else {}
    if not found:
        raise SuperPodError(
            "`npu-smi info -m` names no device: {said}; check the driver with `npu-smi info`", said=_said(answer)
        )
    for device in device_ids:
        if device not in found:
            there = ",".join(map(str, sorted(found)))
            raise SuperPodError(
                "device {device} is not there: `npu-smi info -m` has {there}; choose from those with --devices",
                device=device,
                there=there,
            )
    return {device: found[device] for device in device_ids}


def _ask(chips: dict[int, tuple[int, int]]) -> dict[int, programs.Ended]:
    """What npu-smi reports about the super pod of each device; all are asked at once."""
    question = [driver.word(driver.NPU_SMI), "info", "-t", "spod-info"]
    commands = {device: [*question, "-i", str(npu), "-c", str(chip)] for device, (npu, chip) in chips.items()}
    return programs.ask_all(commands, _SECONDS)


def _spod_info(device: int, npu: int, chip: int, answer: programs.Ended) -> tuple[str, str] | None:
    """(SDID, super pod id) as text, or None where the device is in no super pod."""
    if _NONE in answer.stdout + answer.stderr:
        return None
    fields = dict(_FIELD.findall(answer.stdout)) if answer.status == 0 else {}
    if len(fields) == 2:
        return str(int(fields["SDID"])), str(int(fields["Super Pod ID"]))
    raise SuperPodError(
        "device {device} has no SDID: `npu-smi info -t spod-info -i {npu} -c {chip}` printed: {said}; check the "
        "card with `npu-smi info`",
        device=device,
        npu=npu,
        chip=chip,
        said=_said(answer),
    )


def _said(answer: programs.Ended) -> str:
    lines = (answer.stderr.strip() or answer.stdout.strip() or "nothing").splitlines()
    return f"{one_line(lines[0].strip())} (exit {answer.status})"
