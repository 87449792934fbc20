"""Builds the rank table of this host: its devices, their addresses and its super pod; on a 950 host, their networks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hccl_tools.build import output, rank_lists, super_pod
from hccl_tools.check import rules, verdict
from hccl_tools.common.documents import JsonObject
from hccl_tools.common.language import tr
from hccl_tools.common.problem import Problem, errors
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import BAD, USAGE, Refusal, misused
from hccl_tools.common.words import clauses, count, named, one_line
from hccl_tools.machine import hccn, host, root_info, visible
from hccl_tools.table import device_range, rank_table
from hccl_tools.table.address import family


class Wanted(Record):
    """What the user's options state about the table; None leaves the choice to this host.

    chip: the generation whose rules apply, None for those common to all.  origin: where it comes from, as text.
    """

    devices: str | None = None
    visible_devices: str | None = None
    server_ip: str | None = None
    hccn_conf: str = hccn.DEFAULT_CONF
    root_info: str = root_info.DEFAULT
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
    pod, why_none = super_pod.of_devices(devices) if wanted.chip == "A3" else (None, None)
    found, source = hccn.addresses(devices, wanted.hccn_conf, wanted.chip in ("A2", "A3"))
    table = rank_table.build([(device, found[device]) for device in devices], server_id)
    if pod:
        table = super_pod.add(table, pod)
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
    table, problems = rank_lists.of_950(devices, root_info.read(wanted.root_info))
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
        devices = sorted(root_info.read(wanted.root_info).entries)
    else:
        every = f"[0,{super_pod.DEVICES})" if wanted.chip == "A3" else "[0,8)"
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
