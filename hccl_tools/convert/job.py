"""A job independent of the format: servers, devices with ranks, and the rest; every format describes a part of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hccl_tools.common.documents import JsonObject
from hccl_tools.common.language import tr
from hccl_tools.common.record import Record
from hccl_tools.common.words import count, some
from hccl_tools.table import formats
from hccl_tools.table.view import names_of, text

NO_SERVER = -1
HOSTS = "hosts"  # the name of the form that is a list of hosts


class Job(Record):
    """What one file states about a job.

    source:  the format of the file.
    head:    the keys of the table itself, without its lists of servers and their numbers.
    servers: the keys of each server, without its devices; server_id is its name.
    devices: the keys of each device, under the names of version 1.0: device_id, device_ip and rank_id are texts.
    owners:  the position in `servers` of each device's server; NO_SERVER where the file does not state it.
    """

    source: str
    head: JsonObject
    servers: Sequence[JsonObject]
    devices: Sequence[JsonObject]
    owners: Sequence[int]

    def groups(self) -> list[tuple[JsonObject, list[JsonObject]]]:
        """(server, its devices) of every server that has some, in their order."""
        found: list[list[JsonObject]] = [[] for _ in self.servers]
        for device, owner in zip(self.devices, self.owners):
            if owner != NO_SERVER:
                found[owner].append(device)
        return [(server, devices) for server, devices in zip(self.servers, found) if devices]


class Spec(Record):
    """The keys that a format has for a device, a server and the table; others: it may have more, which HCCL ignores.

    Keys under which other formats have the same are those of version 1.0.
    """

    device: frozenset[str]
    server: frozenset[str]
    head: frozenset[str] = frozenset()
    others: bool = False


def _spec(device: str, server: str, head: str = "", others: bool = False) -> Spec:
    return Spec(
        device=frozenset(device.split()), server=frozenset(server.split()), head=frozenset(head.split()), others=others
    )


_DEVICE = "device_id device_ip rank_id device_port host_port"
_SERVER = "server_id host_ip host_nic_ip container_ip server_ip hardware_type"
_HOST = "server_id host_ip server_ip"  # of which the host's address is written
_PLANE = "para_plane_nic_location para_plane_nic_name para_plane_nic_num"
SPECS = {
    "v1.0": _spec(_DEVICE, _SERVER, "", True),
    "v1.2": _spec(f"{_DEVICE} super_device_id backup_device_ip backup_device_port", _SERVER, "super_pod_list", True),
    "cross_cluster": _spec(f"{_DEVICE} dpu_ip numa_id", f"{_SERVER} pod_ip", "cluster_list", True),
    "v1.1": _spec(
        "device_id device_ip rank_id port sdid bind_device_id", _HOST, "collective_id mode heterog_sub_version"
    ),
    "v2.0": _spec(
        "device_id rank_id device_port host_port local_id replaced_local_id level_list control_plane",
        "",
        "detour topo_file_path",
    ),
    "legacy_lab": _spec("device_id device_ip rank_id", "server_id", f"board_id chip_info group_name {_PLANE}"),
    "legacy_cloud": _spec("device_id device_ip rank_id", "server_id pod_name", "group_name"),
    HOSTS: _spec("rank_id", _HOST),
}
_PARTS = ("device", "server", "head")
_OF_SOME = {part: frozenset().union(*(getattr(spec, part) for spec in SPECS.values())) for part in _PARTS}


def holds(name: str, part: str, key: str) -> bool:
    """Whether the format `name` has a place for `key` of a part: "device", "server" or "head"."""
    spec = SPECS[name]
    return key in getattr(spec, part) or (spec.others and key not in _OF_SOME[part])


def only(job: Job, name: str) -> tuple[Job, list[str]]:
    """The job with what the format `name` can express, and the rest: each key, and how many have it."""
    lost: list[str] = []
    head = {key: value for key, value in job.head.items() if holds(name, "head", key)}
    lost += (key for key in job.head if key not in head)
    servers = _kept(job.servers, name, "server", lost)
    devices = _kept(job.devices, name, "device", lost)
    if name in ("v1.1", HOSTS) and (renamed := sum(host_of(each) != each["server_id"] for each in servers)):
        lost.append(f"server_id ({count(renamed, 'server')})")
    return job.replace(head=head, servers=servers, devices=devices), lost


def _kept(entries: Sequence[JsonObject], name: str, part: str, lost: list[str]) -> list[JsonObject]:
    found = Counter(key for entry in entries for key in entry)
    dropped = [key for key in found if not holds(name, part, key)]
    lost += (f"{key} ({count(found[key], part)})" for key in dropped)
    if not dropped:
        return list(entries)
    return [{key: value for key, value in entry.items() if key not in dropped} for entry in entries]


def words(name: str) -> str:
    """The format for people."""
    return tr(formats.FORMATS[name]) if name in formats.FORMATS else tr("the list of hosts")


def place(job: Job, position: int) -> str:
    """The device at this position, as a message names it."""
    device, owner = job.devices[position], job.owners[position]
    server = {} if owner == NO_SERVER else job.servers[owner]
    if "server_id" not in server or "device_id" not in device:
        return tr("rank {rank}", rank=device["rank_id"])
    return tr("device {device} of server {server}", device=device["device_id"], server=server["server_id"])


def some_places(job: Job, positions: Sequence[int]) -> str:
    """The devices at these positions, as a message names them: the first ones, and how many more."""
    if len(positions) == len(job.devices) > 1:
        return tr("every rank")
    return some([place(job, position) for position in positions[:3]] + [""] * (len(positions) - 3), 3)


def host_of(server: JsonObject) -> str:
    """The address at which other hosts reach it: IPv4 or IPv6 in addition to its name, otherwise the name."""
    return names_of(server, text(server, "server_id"))[0]
