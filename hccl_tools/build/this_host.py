"""Builds the rank table of this host: its devices, their addresses and its super pod; on a 950 host, their networks."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from hccl_tools.build import output, rank_lists
from hccl_tools.check import rules, verdict
from hccl_tools.common.documents import JsonObject
from hccl_tools.common.language import tr
from hccl_tools.common.problem import Problem, errors
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import BAD, USAGE, Refusal, misused
from hccl_tools.common.words import clauses, count, named, one_line
from hccl_tools.machine import driver, hccn, host, programs, visible
from hccl_tools.table import device_range, rank_table
from hccl_tools.table.address import family

DEVICES = 16  # of an A3 host
_SECONDS = 30  # limit of one npu-smi, which takes a second or two on a busy host
_NONE = "does not support querying spod-info"
_FIELD = re.compile(r"^\s*(SDID|Super Pod ID)\s*:\s*([0-9]{1,10})\s*$", re.MULTILINE)


class Wanted(Record):
    """What the user's options state about the table; None leaves the choice to this host.

    chip: the generation whose rules apply, None for those common to all.  origin: where it comes from, as text.
    """

    devices: str | None = None
    visible_devices: str | None = None
    server_ip: str | None = None
    hccn_conf: str = hccn.DEFAULT_CONF
    root_info: str = rank_lists.ROOT_INFO
    chip: str | None = None
    origin: str = ""


def build(wanted: Wanted, tell: Callable[[str], None]) -> JsonObject:
    """The checked table; `tell` is called with what the user should know about it.  Raises Refusal."""
    if wanted.chip == rank_lists.CHIP:
        return _build_950(wanted, tell)
    devices = chosen_devices(wanted)
    server_id = wanted.server_ip or host.address()
    if family(server_id) is None:
        raise misused(
            "--server_ip {server_id} is not an IPv4 or IPv6 address; write one such as 10.0.0.1",
            server_id=one_line(server_id),
        )
    pod, why_none = super_pod_of(devices) if wanted.chip == "A3" else (None, None)
    found, source = hccn.addresses(devices, wanted.hccn_conf, wanted.chip in ("A2", "A3"))
    table = rank_table.build([(device, found[device]) for device in devices], server_id)
    if pod:
        table = with_super_pod(table, pod)
    _tell_problems(verdict.check(table, wanted.chip), tell)
    tell(
        tr(
            "{ranks} on {listed}, addresses from {source}, server {server_id} ({origin})",
            ranks=count(len(devices), "rank"),
            listed=_listed(devices),
            source=source,
            server_id=server_id,
            origin=wanted.origin,
        )
    )
    if pod:
        tell(tr("version 1.2: super pod {pod}", pod=pod.super_pod_id))
    elif why_none:
        tell(tr("version 1.0, which HCCL accepts outside super pods only: {reason}", reason=why_none))
    return table


def _build_950(wanted: Wanted, tell: Callable[[str], None]) -> JsonObject:
    """The same of a 950 host: its table has networks instead of addresses, and no server."""
    devices = chosen_devices(wanted)
    table, problems = rank_lists.of_950(devices, rank_lists.read_root_info(wanted.root_info))
    _tell_problems(problems, tell)
    tell(
        tr(
            "{ranks} on {listed}, networks from {source} ({origin})",
            ranks=count(len(devices), "rank"),
            listed=_listed(devices),
            source=one_line(wanted.root_info),
            origin=wanted.origin,
        )
    )
    return table


def _tell_problems(problems: Sequence[Problem], tell: Callable[[str], None]) -> None:
    """Tells the warnings.  Raises Refusal if there are errors."""
    if errors(problems):
        raise Refusal(BAD, *(problem.line(tr(output.NOT_WRITTEN)) for problem in problems))
    for problem in problems:
        tell(problem.line(tr("the table")))


def _listed(devices: Sequence[int]) -> str:
    """The devices for a message, in the order of the ranks."""
    if list(devices) == sorted(devices):
        return named("device", devices)
    return f"devices {','.join(map(str, devices))}"


def _seen(wanted: Wanted) -> list[int]:
    """The devices of --devices, which a variable must not hide, otherwise all that this environment shows."""
    try:
        shown = visible.npus()
    except Refusal as error:
        raise Refusal(USAGE, *error.lines) from error
    if wanted.devices is None and shown.ids is not None:
        return list(shown.ids)
    if wanted.devices is None and wanted.chip == rank_lists.CHIP:
        devices = sorted(rank_lists.read_root_info(wanted.root_info).entries)
    else:
        every = f"[0,{DEVICES})" if wanted.chip == "A3" else "[0,8)"
        devices = list(device_range.parse(wanted.devices or every))
    if hidden := [device for device in devices if shown.hides(device)]:
        raise Refusal(USAGE, *shown.refusal(hidden).lines)
    return devices


def remarks(wanted: Wanted) -> list[str]:
    """Notes about device numbers that are written as other tools take them."""
    pairs = ("--devices", wanted.devices), ("--visible_devices", wanted.visible_devices)
    return list(filter(None, (device_range.remark(option, text) for option, text in pairs)))


def chosen_devices(wanted: Wanted) -> Sequence[int]:
    """The physical device ids of the ranks, in rank order.  Raises Refusal."""
    if wanted.visible_devices:
        visible = device_range.parse(wanted.visible_devices)
        positions = device_range.parse(wanted.devices) if wanted.devices else range(len(visible))
        if max(positions) >= len(visible):
            raise misused(
                '--devices "{devices}" asks for position {position}, but '
                "--visible_devices {visible_devices} has positions 0 to {last}; write "
                '--devices "[0,{end})"',
                devices=wanted.devices,
                position=max(positions),
                visible_devices=wanted.visible_devices,
                last=len(visible) - 1,
                end=len(visible),
            )
        devices = [visible[position] for position in positions]
    else:
        devices = _seen(wanted)
    problem = rules.group_problem_910a(devices) if wanted.chip == "910A" else None
    if problem:
        raise Refusal(USAGE, clauses(*problem))
    return devices


class SuperPod(Record):
    """A super pod and the SDIDs of this host's devices in it."""

    super_pod_id: str
    super_device_ids: dict[int, str]


class SuperPodError(Refusal):
    """npu-smi gives no usable answer: the line names the device, what was asked, and what to do."""

    def __init__(self, message: str, **values: object) -> None:
        super().__init__(BAD, tr(message, **values))


def super_pod_of(device_ids: Sequence[int]) -> tuple[SuperPod | None, str | None]:
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


def with_super_pod(table: JsonObject, pod: SuperPod) -> JsonObject:
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
