"""Fills in the facts that a file lacks from another file about the same job."""

from __future__ import annotations

from hccl_tools.common.documents import JsonObject
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import faulty
from hccl_tools.common.words import count, one_line, some
from hccl_tools.convert.job import HOSTS, NO_SERVER, Job, holds, some_places
from hccl_tools.table.view import names_of, text


class Facts(Record):
    """A Job, and what the user calls its file."""

    name: str
    job: Job


def filled(job: Job, facts: Facts, name: str) -> Job:
    """The job, completed with the facts that it lacks and that the format `name` can express.  Raises Refusal.

    What the job says stays, also where the facts say something else.
    """
    return _with_values(placed(job, facts), facts, name)


def placed(job: Job, facts: Facts) -> Job:
    """The job with the servers and the devices of its ranks, where it lacks them.  Raises Refusal."""
    if NO_SERVER in job.owners and facts.job.servers:
        job = _with_servers(job, facts)
    if any("device_id" not in device for device in job.devices) and facts.job.source != HOSTS:
        job = _with_device_ids(job, facts)
    return job


# ---- servers ---------------------------------------------------------------------------------------


def _with_servers(job: Job, facts: Facts) -> Job:
    """The ranks of a list of ranks, on the servers of the facts: a list of hosts fills its slots in rank order."""
    other = facts.job
    _refuse_other_size(job, facts)
    by_rank = {device["rank_id"]: position for position, device in enumerate(other.devices)}
    owners = [other.owners[by_rank[device["rank_id"]]] for device in job.devices]
    if NO_SERVER in owners:
        return job
    if other.source != HOSTS:
        _refuse_other_devices(job, facts, by_rank)
    names = [{"server_id": server["server_id"]} for server in other.servers]
    return job.replace(servers=names, owners=owners)


def _refuse_other_devices(job: Job, facts: Facts, by_rank: dict[str, int]) -> None:
    for device in job.devices:
        there = facts.job.devices[by_rank[device["rank_id"]]]
        if there["device_id"] != device["device_id"]:
            raise faulty(
                "rank {rank} is on device {device}, but on device {other} in {file}; give one about the same job",
                rank=device["rank_id"],
                device=device["device_id"],
                other=there["device_id"],
                file=one_line(facts.name),
            )


def _with_device_ids(job: Job, facts: Facts) -> Job:
    """The ranks of a list of hosts, on the devices that the same server has in the facts, in the order of its ranks.

    Facts without servers have them by rank.
    """
    if NO_SERVER in facts.job.owners:
        return _with_device_ids_by_rank(job, facts)
    known = _servers_by_name(facts.job)
    devices, wrong = list(job.devices), []
    for number, server in enumerate(job.servers):
        mine = [position for position, owner in enumerate(job.owners) if owner == number]
        found = next((known[name] for name in _names(server) if name in known), None)
        if found is None:
            continue
        ids = [device["device_id"] for device in sorted(found[1], key=lambda device: int(device["rank_id"]))]
        if len(ids) != len(mine):
            wrong.append(server["server_id"])
            continue
        for position, device_id in zip(mine, ids):
            devices[position] = {"device_id": device_id, **devices[position]}
    if wrong:
        raise faulty(
            "{file} has another number of devices on {servers}; give one about the same job",
            file=one_line(facts.name),
            servers=some(wrong, 3),
        )
    return job.replace(devices=devices)


def _with_device_ids_by_rank(job: Job, facts: Facts) -> Job:
    _refuse_other_size(job, facts)
    known = {device["rank_id"]: device["device_id"] for device in facts.job.devices}
    return job.replace(devices=[{"device_id": known[each["rank_id"]], **each} for each in job.devices])


def _refuse_other_size(job: Job, facts: Facts) -> None:
    """Raises Refusal where the facts have another number of ranks."""
    if len(facts.job.devices) != len(job.devices):
        raise faulty(
            "{file} has places for {places}, but the table has {ranks}; give one about the same job",
            file=one_line(facts.name),
            places=count(len(facts.job.devices), "rank"),
            ranks=count(len(job.devices), "rank"),
        )


def _names(server: JsonObject) -> list[str]:
    return names_of(server, text(server, "server_id"))


def _servers_by_name(job: Job) -> dict[str, tuple[JsonObject, list[JsonObject]]]:
    """{name or address: (server, its devices)}"""
    found: dict[str, tuple[JsonObject, list[JsonObject]]] = {}
    for server, devices in job.groups():
        for name in _names(server):
            found.setdefault(name, (server, devices))
    return found


# ---- values ----------------------------------------------------------------------------------------


def _with_values(job: Job, facts: Facts, name: str) -> Job:
    other = facts.job
    known = _servers_by_name(other)
    there = [next((known[each] for each in _names(server) if each in known), None) for server in job.servers]
    servers = [
        {**_wanted(pair[0], name, "server"), **server} if pair else server for server, pair in zip(job.servers, there)
    ]
    if other.source == HOSTS:
        return job.replace(servers=servers)
    devices = _by_rank(job, other) if NO_SERVER in (*job.owners, *other.owners) else _by_server(job, there)
    filled_in = [{**_wanted(found, name, "device"), **device} for device, found in zip(job.devices, devices)]
    head = {**_wanted(other.head, name, "head"), **job.head}
    if "super_pod_list" in head and "super_pod_list" not in job.head:
        head["super_pod_list"] = _pods(head["super_pod_list"], {server["server_id"] for server in job.servers})
    return job.replace(head=head, servers=servers, devices=filled_in)


def _by_server(job: Job, there: list[tuple[JsonObject, list[JsonObject]] | None]) -> list[JsonObject]:
    """The entry of each device in the facts, by its server and number."""
    tables = [{device["device_id"]: device for device in pair[1]} if pair else {} for pair in there]
    return [tables[owner].get(device.get("device_id"), {}) for device, owner in zip(job.devices, job.owners)]


def _by_rank(job: Job, other: Job) -> list[JsonObject]:
    """The same by its rank, where a file does not state the server; the number must be the same, too."""
    known = {(device["rank_id"], device.get("device_id")): device for device in other.devices}
    return [known.get((device["rank_id"], device.get("device_id")), {}) for device in job.devices]


def _wanted(entry: JsonObject, name: str, part: str) -> JsonObject:
    """What the format has a place for, but for that which states who the entry is."""
    identity = ("device_id", "rank_id", "server_id")
    return {key: value for key, value in entry.items() if key not in identity and holds(name, part, key)}


def _pods(pods: list[JsonObject], servers: set[str]) -> list[JsonObject]:
    """The super pods with those of their servers that the job has."""
    kept = [
        {**pod, "server_list": [each for each in pod["server_list"] if each["server_id"] in servers]} for pod in pods
    ]
    return [pod for pod in kept if pod["server_list"]]


# ---- options ---------------------------------------------------------------------------------------


def with_devices(job: Job, numbers: tuple[int, ...]) -> Job:
    """The ranks of a list of hosts, on these devices of every host, in this order.  Raises Refusal."""
    devices: list[JsonObject] = []
    for server, ranks in job.groups():
        if len(ranks) != len(numbers):
            raise faulty(
                "{host} has {slots}, and --devices names {devices}; name as many devices as a host has slots",
                host=server["server_id"],
                slots=count(len(ranks), "slot"),
                devices=count(len(numbers), "device"),
            )
        devices += ({"device_id": str(number), **rank} for number, rank in zip(numbers, ranks))
    return job.replace(devices=devices)


def with_addresses(job: Job, layer: int) -> Job:
    """The ranks of a version 2.0 table, with their IP addresses on this layer as device_ip.  Raises Refusal."""
    found = [_of_layer(device, layer) for device in job.devices]
    if without := [position for position, address in enumerate(found) if not address]:
        raise faulty(
            "net_layer {layer} has no IPv4 or IPv6 address of {places}; choose another layer with --layer",
            layer=layer,
            places=some_places(job, without),
        )
    devices = [{**device, "device_ip": address} for device, address in zip(job.devices, found)]
    return job.replace(devices=devices)


def _of_layer(device: JsonObject, layer: int) -> str:
    """Its addresses as device_ip has them, with commas between several."""
    levels = [level for level in device.get("level_list", ()) if level["net_layer"] == layer]
    entries = [entry for level in levels for entry in level["rank_addr_list"]]
    return ",".join(entry["addr"] for entry in entries if entry["addr_type"] in ("IPV4", "IPV6"))
