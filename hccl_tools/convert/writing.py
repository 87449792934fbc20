"""Writes a Job as a rank table in one format, or as a list of hosts; refuses if a fact is missing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hccl_tools.common.documents import JsonObject
from hccl_tools.common.language import marked, tr
from hccl_tools.common.refusal import BAD, Refusal, faulty
from hccl_tools.common.words import clauses, some
from hccl_tools.convert.job import HOSTS, NO_SERVER, Job, host_of, some_places
from hccl_tools.hosts import hostfile
from hccl_tools.table.address import packed

TARGETS = {  # what a user types -> format
    "1.0": "v1.0",
    "1.1": "v1.1",
    "1.2": "v1.2",
    "2.0": "v2.0",
    "lab": "legacy_lab",
    "cloud": "legacy_cloud",
    "hosts": HOSTS,
}
_FACTS = marked("give a file about the same job that has it: --facts FILE")
_BUILD = marked("or ask the hosts: python hccl_tools/hccl_tools.py --hostfile HOSTS")


def missing(job: Job, key: str, what: str, *remedies: str) -> None:
    """Raises Refusal if a device has no `key`; what: the format that needs it, as text."""
    without = [position for position, device in enumerate(job.devices) if key not in device]
    if without:
        text = tr(
            "{what} needs {key}, which is missing for {places}", what=what, key=key, places=some_places(job, without)
        )
        raise Refusal(BAD, clauses(text, *(remedies or (tr(_FACTS),))))


def write(job: Job, target: str, name: str) -> JsonObject | str:
    """The table of the format `target`, whose name for people is `name`, or the text of a list of hosts.

    The job has only what the format can say.  Raises Refusal.
    """
    if target == "v2.0":
        return _version_2(job, name)
    if NO_SERVER in job.owners:
        text = tr("{what} needs the servers of the ranks, which version 2.0 does not have", what=name)
        remedy = tr("give a list of hosts with slots, or a table about the same job that has them: --facts FILE")
        raise Refusal(BAD, clauses(text, remedy))
    if target == HOSTS:
        return _hosts(job)
    missing(job, "device_id", name, tr("name the devices of each host: --devices RANGE"), tr(_FACTS))
    _refuse_processors(job, target, name)
    return _WRITERS[target](job, name)


def _refuse_processors(job: Job, target: str, name: str) -> None:
    without = [position for position, device in enumerate(job.devices) if device["device_id"] == "-1"]
    if without and target != "v1.1":
        places = some_places(job, without)
        raise faulty(
            "{what} cannot have ranks on processors, but the table has them: {places}", what=name, places=places
        )


def _version_1(version: str) -> Callable[[Job, str], JsonObject]:
    def writer(job: Job, name: str) -> JsonObject:
        groups = job.groups()
        if len(groups) > 1 and "super_pod_list" not in job.head:
            _need_addresses(job, tr("{what} of several servers", what=name))
        listed = [
            {"server_id": server["server_id"], "device": [_ordered(device) for device in devices], **server}
            for server, devices in groups
        ]
        table = {"version": version, "server_count": str(len(listed)), "server_list": listed}
        return {**table, **job.head, "status": "completed"}

    return writer


def _need_addresses(job: Job, what: str) -> None:
    other = tr("or take the addresses of one of its networks: --layer N") if job.source == "v2.0" else tr(_BUILD)
    missing(job, "device_ip", what, tr(_FACTS), other)


def _version_1_2(job: Job, name: str) -> JsonObject:
    has = "super_pod_list" in job.head
    if has or any("super_device_id" in device for device in job.devices):
        printed = tr("`npu-smi info -t spod-info` prints it as SDID")
        missing(job, "super_device_id", tr("super_pod_list of version 1.2"), tr(_FACTS), printed)
    if not has and any("super_device_id" in device for device in job.devices):
        raise Refusal(BAD, clauses(tr("super_device_id of version 1.2 needs super_pod_list"), tr(_FACTS)))
    return _version_1("1.2")(job, name)


def _ordered(device: JsonObject) -> JsonObject:
    """Its keys in the order of MindSpore's tool, those of other formats after them."""
    known = ("device_id", "super_device_id", "device_ip", "rank_id")
    return {**{key: device[key] for key in known if key in device}, **device}


def _version_1_1(job: Job, name: str) -> JsonObject:
    if "collective_id" not in job.head:
        text = tr("{what} needs collective_id, a name of the job", what=name)
        raise Refusal(BAD, clauses(text, tr("give it: --job NAME")))
    hosts = [(host_of(server), devices) for server, devices in job.groups()]
    if names := [host for host, _ in hosts if not packed(host)]:
        text = tr(
            "{what} needs the address of each server, but the table has only the name of {names}",
            what=name,
            names=some(names, 3),
        )
        raise Refusal(BAD, clauses(text, tr("give a table that has their host_ip: --facts FILE")))
    nodes = []
    for host, devices in hosts:
        ranks = [{"rank_ip" if key == "device_ip" else key: value for key, value in each.items()} for each in devices]
        nodes.append({"node_addr": host, "ranks": ranks})
    return {"version": "1.1", "status": "completed", **job.head, "node_list": nodes}


def _version_2(job: Job, name: str) -> JsonObject:
    missing(job, "device_id", name)
    networks = tr("give a version 2.0 table that has the networks of these ranks: --facts FILE")
    hosts = tr("or ask the hosts: python hccl_tools/hccl_tools.py --generation 950 --hostfile HOSTS")
    missing(job, "level_list", name, networks, hosts)
    missing(job, "local_id", name, networks, hosts)
    numbers = ("rank_id", "local_id", "replaced_local_id", "device_id", "device_port", "host_port")
    ranks = []
    for device in sorted(job.devices, key=lambda device: int(device["rank_id"])):
        known = {key: int(device[key]) for key in numbers if key in device}
        ranks.append({**known, **{key: value for key, value in device.items() if key not in known}})
    return {"version": "2.0", "status": "completed", "rank_count": len(ranks), "rank_list": ranks, **job.head}


# ---- legacy ----------------------------------------------------------------------------------------


def _lab(job: Job, name: str) -> JsonObject:
    _need_addresses(job, name)
    instances = [
        {"devices": [_plain(device)], "rank_id": device["rank_id"], "server_id": server["server_id"]}
        for server, devices in job.groups()
        for device in devices
    ]
    count = str(len(instances))
    group = {"device_num": count, "server_num": str(len(job.groups())), "instance_count": count}
    head = {key: value for key, value in job.head.items() if key != "group_name"}
    named = {"group_name": job.head.get("group_name", ""), **group, "instance_list": instances}
    table = {"status": "completed", "deploy_mode": "lab", "group_count": "1", "group_list": [named]}
    return {**table, "para_plane_nic_location": "device", **head}


def _cloud(job: Job, name: str) -> JsonObject:
    _need_addresses(job, name)
    _refuse_other_ranks(job, name)
    group = job.head.get("group_name", "")
    instances = []
    for number, (server, devices) in enumerate(job.groups()):
        if not group and "pod_name" not in server:
            text = tr("{what} needs the pod_name of server {server}", what=name, server=server["server_id"])
            raise Refusal(BAD, clauses(text, tr("give the job's name: --job NAME; the pods are then NAME-0, NAME-1")))
        pod = server.get("pod_name", f"{group}-{number}")
        listed = [_plain(device) for device in devices]
        instances.append({"pod_name": pod, "server_id": server["server_id"], "devices": listed})
    counts = {"device_count": str(len(job.devices)), "instance_count": str(len(instances))}
    named = {"group_name": group, **counts, "instance_list": instances}
    return {"status": "completed", "group_count": "1", "group_list": [named]}


def _plain(device: JsonObject) -> JsonObject:
    return {key: device[key] for key in ("device_id", "device_ip")}


def _refuse_other_ranks(job: Job, name: str) -> None:
    """The cloud format has no ranks: HCCL numbers its devices by server_id as text, then by device_id."""
    keys = [(job.servers[owner]["server_id"], int(each["device_id"])) for each, owner in zip(job.devices, job.owners)]
    numbers = sorted(range(len(keys)), key=keys.__getitem__)
    for rank, position in enumerate(numbers):
        if job.devices[position]["rank_id"] != str(rank):
            text = tr(
                "{what} has no rank numbers; HCCL would make {place} rank {rank}, but it is rank {own} in the table",
                what=name,
                place=some_places(job, [position]),
                rank=rank,
                own=job.devices[position]["rank_id"],
            )
            raise Refusal(BAD, clauses(text, tr("number the ranks by the text of server_id, then by device_id")))


# ---- hosts -----------------------------------------------------------------------------------------


def _hosts(job: Job) -> str:
    """A hostfile of Open MPI: the servers in the order of their ranks."""
    blocks = [(sorted(int(each["rank_id"]) for each in devices), server) for server, devices in job.groups()]
    blocks.sort(key=lambda block: block[0])
    ranks = [rank for numbers, _ in blocks for rank in numbers]
    if ranks != list(range(len(ranks))):
        raise faulty("a list of hosts gives each host consecutive ranks, but the ranks of these servers interleave")
    hosts = [(host_of(server), len(numbers)) for numbers, server in blocks]
    for host, _ in hosts:
        if fault := hostfile.fault_of_host(host):
            raise Refusal(BAD, fault)
    text = "".join(f"{host} slots={slots}\n" for host, slots in hosts)
    read = hostfile.parse(text.encode(), tr("the list of hosts"))
    if [(host.login, host.slots) for host in read.hosts] != hosts:
        raise faulty("this list of hosts would be misread: {hosts}", hosts=_shown(hosts))
    return text


def _shown(hosts: Sequence[tuple[str, int]]) -> str:
    return some([host for host, _ in hosts], 3)


_WRITERS: dict[str, Callable[[Job, str], JsonObject]] = {
    "v1.0": _version_1("1.0"),
    "v1.1": _version_1_1,
    "v1.2": _version_1_2,
    "legacy_lab": _lab,
    "legacy_cloud": _cloud,
}
