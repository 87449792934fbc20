"""Finds the servers of a version 2.0 rank table, which does not state where its ranks are, from a list of hosts.

The hosts take the ranks in the order of both.  Nothing is guessed: the list must state how many ranks a host has.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence

from hccl_tools.common.documents import JsonObject
from hccl_tools.common.language import tr
from hccl_tools.common.problem import pointer
from hccl_tools.common.refusal import REFUSED, USAGE, Refusal
from hccl_tools.common.words import clauses, count, named, one_line, some
from hccl_tools.hosts import hostfile
from hccl_tools.table import rank_table
from hccl_tools.table.view import objects

OPTION = "--table_hosts"
Slots = tuple[str, "int | None"]  # a host, [user@]host, and how many ranks it has


def is_list(table: object) -> bool:
    """Whether the table lists ranks, and no servers."""
    return bool(objects(table, "rank_list"))


def given(text: str) -> list[Slots]:
    """The hosts of --table_hosts: HOST:8,HOST:8, or the path of a hostfile.  Raises Refusal."""
    try:
        hosts = hostfile.read(text).hosts if os.path.isfile(text) else hostfile.parse_words(text)
    except (hostfile.HostfileError, ValueError) as error:
        lines = error.lines if isinstance(error, Refusal) else (str(error),)
        raise Refusal(USAGE, *(f"{OPTION}: {line}" for line in lines)) from error
    if spare := [host.name for host in hosts if host.spare]:
        text = tr("each host of a table has ranks; leave out the spare hosts: {hosts}", hosts=some(spare, 3))
        raise Refusal(USAGE, f"{OPTION}: {text}")
    return [(host.name, host.slots) for host in hosts]


def needed(path: str, option: str = OPTION) -> Refusal:
    """Why such a table is not enough without a list of hosts; option: the one that names the hosts."""
    text = tr("{path} is of version 2.0, which does not say on which hosts its ranks are", path=one_line(path))
    remedy = tr("name them in the order of the ranks: {option} node1:8,node2:8, or a hostfile", option=option)
    return Refusal(REFUSED, clauses(text, remedy))


def of(table: JsonObject, hosts: Sequence[Slots], path: str, option: str = OPTION) -> list[rank_table.Server]:
    """The servers of a good table, on these hosts.  Raises Refusal; option: what names the hosts."""
    if without := [name for name, slots in hosts if slots is None]:
        text = tr(
            "the number of ranks on {hosts} is missing; write node1:8, or slots=8 in a hostfile", hosts=some(without, 3)
        )
        raise Refusal(REFUSED, f"{option}: {text}")
    places = ((int(rank["rank_id"]), number, rank) for number, rank in objects(table, "rank_list"))
    entries = [(number, rank) for _, number, rank in sorted(places, key=lambda place: place[:2])]
    slots = sum(slots or 0 for _, slots in hosts)
    if slots != len(entries):
        text = tr(
            "{path} has {ranks}, the hosts have room for {slots}; name the hosts of this table, with their ranks",
            path=one_line(path),
            ranks=count(len(entries), "rank"),
            slots=slots,
        )
        raise Refusal(REFUSED, f"{option}: {text}")
    found, first = [], 0
    for login, size in hosts:
        name = login.rpartition("@")[2]
        devices = [_device(number, rank) for number, rank in entries[first : first + (size or 0)]]
        first += len(devices)
        _refuse_repeated(name, devices, path, option)
        found.append(rank_table.Server(devices[0].pointer, name, devices, [name]))
    return found


def _device(number: int, rank: JsonObject) -> rank_table.Device:
    place, device_id, rank_id = pointer("rank_list", number), int(rank["device_id"]), int(rank["rank_id"])
    return rank_table.Device(place, str(device_id), None, str(rank_id))


def _refuse_repeated(name: str, devices: Sequence[rank_table.Device], path: str, option: str) -> None:
    """Raises Refusal where a host would have a device twice: its number of ranks is another, or the order is."""
    counted = Counter(int(device.device_id) for device in devices)
    if repeated := [number for number, times in counted.items() if times > 1]:
        text = tr(
            "with {path}, host {name} would have ranks {first} to {last}, and use {devices} twice; write how many "
            "ranks each host has, in the order of the ranks",
            path=one_line(path),
            name=one_line(name),
            first=devices[0].rank_id,
            last=devices[-1].rank_id,
            devices=named("device", repeated),
        )
        raise Refusal(REFUSED, f"{option}: {text}")
