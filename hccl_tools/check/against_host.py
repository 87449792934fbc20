"""Checks whether a valid table fits this host, its devices' addresses, and the rank set in this shell."""

from __future__ import annotations

import os
from collections.abc import Iterator

from hccl_tools.common.documents import JsonObject
from hccl_tools.common.language import tr
from hccl_tools.common.problem import Problem
from hccl_tools.common.refusal import Refusal
from hccl_tools.common.words import shown
from hccl_tools.machine import hccn, host, visible
from hccl_tools.table.address import is_one_of
from hccl_tools.table.view import Server, View, names_of, number, objects


def problems(table: JsonObject, name: str, conf: str = hccn.DEFAULT_CONF) -> list[Problem]:
    """The Problems of a table of format `name` on this host; `conf` is read where hccn_tool is missing."""
    view = View(table, name)
    on_host = _of_servers(view, conf) if view.servers else []  # 2.0 lists ranks and no servers
    return [*on_host, *_of_environment(view)]


def _of_servers(view: View, conf: str) -> list[Problem]:
    servers = [(names_of(s.entry, s.name), {device: ip for device, ip, _ in _addresses(view, s)}) for s in view.servers]
    ours = [view.servers[n] for n in host.servers_here(servers, conf)]
    if ours:
        return [problem for server in ours for problem in _of_addresses(view, server, conf)]
    text = tr("none of the {servers} servers is this host", servers=len(servers))
    return [
        Problem("host-server", "/" + view.list_key, text, tr("build this host's table with hccl_tools/hccl_tools.py"))
    ]


def _addresses(view: View, server: Server) -> list[tuple[int, str, int]]:
    """(device id, device_ip, position in the columns) of the devices that have both."""
    found = ((view.id_numbers[n], view.ips[n], n) for n in server.devices)
    return [(device, ip, n) for device, ip, n in found if device is not None and ip is not None]


def _of_addresses(view: View, server: Server, conf: str) -> Iterator[Problem]:
    devices = _addresses(view, server)
    try:
        found, source = hccn.addresses([device for device, _, _ in devices], conf) if devices else ({}, "")
    except hccn.AddressError as error:
        yield Problem("host-address", server.pointer, str(error), tr("without it the addresses cannot be compared"))
        return
    for device, ip, n in devices:
        if not is_one_of(found[device], ip):
            place = f"{view.place(n)}/{view.ip_key}"
            text = tr(
                "device_ip is {ip}, but device {device} has {found} ({source})",
                ip=shown(ip),
                device=device,
                found=found[device],
                source=source,
            )
            yield Problem(
                "host-address", place, text, tr('write "{found}", or build the table again', found=found[device])
            )


def _of_environment(view: View) -> Iterator[Problem]:
    """RANK_ID, RANK_SIZE and DEVICE_ID, where they are set."""
    ranks = _ranks(view)
    rank, size, device = (os.environ.get(name) for name in ("RANK_ID", "RANK_SIZE", "DEVICE_ID"))
    if not ranks:  # the legacy cloud format leaves the numbers to HCCL
        return
    if size and size != str(len(ranks)):
        text = tr("RANK_SIZE is {size} but the table has {ranks} ranks", size=shown(size), ranks=len(ranks))
        yield Problem("host-rank", "", text, tr("set RANK_SIZE={ranks}", ranks=len(ranks)))
    if not rank:
        return
    wanted, place = ranks.get(number(rank), (None, None))
    if place is None:
        text = tr("RANK_ID is {rank}, which is not a rank of the table", rank=shown(rank))
        yield Problem("host-rank", "", text, tr("set RANK_ID to 0 to {last}", last=len(ranks) - 1))
    elif device and wanted is not None and number(device) != (index := _index(wanted)):
        text = tr(
            "rank {rank} is on device {wanted}, but DEVICE_ID is {device}",
            rank=rank,
            wanted=wanted,
            device=shown(device),
        )
        remedy = tr("set DEVICE_ID={wanted}, the physical device", wanted=wanted)
        if index != wanted:
            remedy = tr(
                "set DEVICE_ID={index}, the number that processes here use for device {wanted}",
                index=index,
                wanted=wanted,
            )
        yield Problem("host-rank", place, text, remedy)


def _index(device: int) -> int:
    """DEVICE_ID of a rank on the device with this physical id, in this environment."""
    try:
        index = visible.npus().index(device)
    except Refusal:  # of the variable, which states nothing about the table
        index = None
    return device if index is None else index


def _ranks(view: View) -> dict[int | None, tuple[int | None, str]]:
    """{rank: (device id, pointer of its device_id)}."""
    if view.format == "v2.0":
        entries = objects(view.table, "rank_list")
        return {e.get("rank_id"): (e.get("device_id"), f"/rank_list/{n}/device_id") for n, e in entries}
    rows = zip(view.rank_numbers, view.id_numbers, range(len(view.devices)))
    return {rank: (device, view.place(row) + "/device_id") for rank, device, row in rows if rank is not None}
