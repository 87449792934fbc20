"""Does a good table fit this host, its devices' addresses, and the rank that this shell is set up for?"""

import os

from hccl_tools.common.problem import Problem
from hccl_tools.common.words import shown
from hccl_tools.machine import hccn, host
from hccl_tools.table.address import packed
from hccl_tools.table.view import View, number, objects


def problems(table, name, conf=hccn.DEFAULT_CONF):
    """The Problems of a table of format `name` on this host; `conf` stands in where there is no hccn_tool."""
    view = View(table, name)
    found = []
    if view.servers:  # 2.0 lists ranks and no servers
        found += _of_servers(view, conf)
    return found + list(_of_environment(view))


def _of_servers(view, conf):
    ours = [server for server in view.servers if server.name is not None and host.owns(server.name)]
    if ours:
        return [problem for server in ours for problem in _of_addresses(view, server, conf)]
    # In a container the host's address is not ours; the devices' addresses tell the server just as well.
    if any(server.devices and not _of_addresses(view, server, conf) for server in view.servers):
        return []
    text = f"none of the {len(view.servers)} servers is this host"
    return [Problem("host-server", "/" + view.list_key, text, "build this host's table with hccl_tools/hccl_tools.py")]


def _of_addresses(view, server, conf):
    devices = [device for device in server.devices if view.ips[device] is not None]
    try:
        found, source = hccn.addresses([view.id_numbers[device] for device in devices], conf) if devices else ({}, "")
    except hccn.AddressError as error:
        return [Problem("host-address", server.pointer, str(error), "without it the addresses cannot be compared")]
    faults = []
    for device in devices:
        real = found[view.id_numbers[device]]
        if real is not None and packed(real) not in map(packed, view.ips[device].split(",")):
            text = f"device_ip is {shown(view.ips[device])}, but device {view.ids[device]} has {real} ({source})"
            place = f"{view.place(device)}/{view.ip_key}"
            faults.append(Problem("host-address", place, text, f'write "{real}", or build the table anew'))
    return faults


def _of_environment(view):
    """RANK_ID, RANK_SIZE and DEVICE_ID, where they are set."""
    ranks = _ranks(view)
    rank, size, device = (os.environ.get(name) for name in ("RANK_ID", "RANK_SIZE", "DEVICE_ID"))
    if not ranks:  # the legacy cloud format leaves the numbers to HCCL
        return
    if size and size != str(len(ranks)):
        text = f"RANK_SIZE is {shown(size)} but the table has {len(ranks)} ranks"
        yield Problem("host-rank", "", text, f"set RANK_SIZE={len(ranks)}")
    if not rank:
        return
    if number(rank) not in ranks:
        text = f"RANK_ID is {shown(rank)}, which is no rank of the table"
        yield Problem("host-rank", "", text, f"set RANK_ID to 0 to {len(ranks) - 1}")
        return
    wanted, place = ranks[number(rank)]
    if device and wanted is not None and number(device) != wanted:
        text = f"rank {rank} is on device {wanted}, but DEVICE_ID is {shown(device)}"
        yield Problem("host-rank", place, text, f"set DEVICE_ID={wanted}, the physical device")


def _ranks(view):
    """{rank: (device id, pointer of its device_id)}."""
    if view.format == "v2.0":
        entries = objects(view.table, "rank_list")
        return {e.get("rank_id"): (e.get("device_id"), f"/rank_list/{n}/device_id") for n, e in entries}
    rows = zip(view.rank_numbers, view.id_numbers, range(len(view.devices)))
    return {rank: (device, view.place(row) + "/device_id") for rank, device, row in rows if rank is not None}
