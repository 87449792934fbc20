"""Rules for groups of servers: the A3 super pods of version 1.2, and the clusters of MindSpore's extension of 1.0."""

from __future__ import annotations

from collections.abc import Iterator

from hccl_tools.check.rules.addresses import not_an_address
from hccl_tools.check.rules.registry import Findings, is_number, repeated, rule
from hccl_tools.common.language import tr
from hccl_tools.common.problem import WARNING
from hccl_tools.common.words import shown
from hccl_tools.table.address import packed
from hccl_tools.table.view import View, listed, number, text

_FORMAT = ("v1.2",)
_CLUSTERS = ("cross_cluster",)


def members(view: View, list_key: str) -> list[tuple[str, str | None, int]]:
    """(pointer, server_id, number of the group) of every server that a group of view.table[list_key] lists."""
    return [
        (f"{member}/server_id", text(entry, "server_id"), number)
        for number, (place, group) in enumerate(listed(view.table, list_key))
        for member, entry in listed(group, "server_list", place)
    ]


def not_in_one_group(view: View, list_key: str, noun: str) -> Findings:
    """What a rule yields for each server in two groups, and in none."""
    found = members(view, list_key)
    names = [name for _, name, _ in found]
    yield from repeated(names, lambda index: found[index][0], "server_id")
    known = set(names)
    for server in view.servers:
        if server.name is not None and server.name not in known:
            yield server.pointer, tr("server {name} is in no {noun}", name=shown(server.name), noun=noun)


def unknown_servers(view: View, list_key: str) -> Findings:
    """What a rule yields for each server that is in a group and not in server_list."""
    known = {server.name for server in view.servers}
    for place, name, _ in members(view, list_key):
        if name is not None and name not in known:
            yield place, tr("server {name} is not in server_list", name=shown(name))


def listed_twice(view: View, list_key: str, id_key: str) -> Findings:
    """What a rule yields for each group whose name another group has."""
    groups = listed(view.table, list_key)
    yield from repeated([text(group, id_key) for _, group in groups], lambda n: f"{groups[n][0]}/{id_key}", id_key)


def _pod_of(view: View) -> dict[str | None, int]:
    """{server_id: number of the super pod that lists it first}."""
    found: dict[str | None, int] = {}
    for _, name, pod in members(view, "super_pod_list"):
        found.setdefault(name, pod)
    return found


@rule("missing-field", _FORMAT)
def pods_without_device_ids(view: View) -> Findings:
    """The table has super_pod_list but a device has no super_device_id, or the reverse.

    Why: HCCL's manual for A3: you may omit both, but only together.
    Remedy: add what `npu-smi info -t spod-info -i NPU -c CHIP` prints as SDID, or super_pod_list.
    """
    without = [device for device, entry in enumerate(view.devices) if "super_device_id" not in entry]
    if "super_pod_list" in view.table:
        for device in without:
            remedy = tr("add the SDID that `npu-smi info -t spod-info` prints")
            yield view.place(device), tr("super_device_id is missing, and the table has super_pod_list"), remedy
    elif len(without) < len(view.devices):
        remedy = tr("add super_pod_list with every server, or remove super_device_id everywhere")
        yield "", tr("super_pod_list is missing, and devices have super_device_id"), remedy


@rule("duplicate-super-device", _FORMAT)
def super_device_listed_twice(view: View) -> Findings:
    """Two devices in one super pod have the same super_device_id.

    Why: HCCL, EI0014: "devices have same superDeviceId in superPod"; devices of different pods may share one.
    Remedy: write the SDID that `npu-smi info -t spod-info` prints for each device.
    """
    pods = _pod_of(view)
    devices = [(device, pods.get(server.name)) for server in view.servers for device in server.devices]
    texts = [text(view.devices[device], "super_device_id") for device, _ in devices]
    values = [value and (pod, value) for value, (_, pod) in zip(texts, devices)]
    yield from repeated(
        values, lambda n: view.place(devices[n][0], "super_device_id"), "super_device_id", texts, counts=_is_known
    )


def _is_known(value: object) -> bool:
    return isinstance(value, tuple) and is_number(value[1])


@rule("bad-value", _FORMAT)
def super_device_id_too_large(view: View) -> Findings:
    """super_device_id is above 4294967295.

    Why: an SDID has 32 bits (server, chip, die, device).
    Remedy: write the SDID that `npu-smi info -t spod-info` prints.
    """
    for device, entry in enumerate(view.devices):
        value = number(entry.get("super_device_id"))
        if value is not None and value >= 1 << 32:
            yield (
                view.place(device, "super_device_id"),
                tr("super_device_id {value} has more than 32 bits", value=value),
            )


@rule("duplicate-super-pod", _FORMAT)
def super_pod_listed_twice(view: View) -> Findings:
    """Two super pods have the same super_pod_id.

    Why: HCCL's manual for A3: super_pod_id is unique.
    Remedy: list each super pod once, with all its servers.
    """
    yield from listed_twice(view, "super_pod_list", "super_pod_id")


@rule("unknown-server", _FORMAT)
def pod_has_unknown_server(view: View) -> Findings:
    """A super pod lists a server that is not in server_list.

    Why: HCCL's manual for A3: super_pod_list groups the servers of server_list.
    Remedy: write a server_id from server_list, or remove the entry.
    """
    yield from unknown_servers(view, "super_pod_list")


@rule("pod-membership", _FORMAT)
def server_not_in_one_pod(view: View) -> Findings:
    """A server is in no super pod, or in two.

    Why: HCCL's manual for A3: every server is in exactly one super pod.
    Remedy: list each server under its own super pod, once.
    """
    if "super_pod_list" in view.table:
        yield from not_in_one_group(view, "super_pod_list", tr("super pod"))


@rule("pod-interleave", _FORMAT)
def pods_interleave(view: View) -> Findings:
    """The servers of a super pod are not next to one another in server_list.

    Why: HCCL's manual for A3: no interleaving.
    Remedy: sort server_list by super pod.
    """
    pods, before, done = _pod_of(view), None, set()
    for server in view.servers:
        pod = pods.get(server.name)
        if pod is None or pod == before:
            continue
        if pod in done:
            yield (
                server.pointer,
                tr("server {name} is not next to the other servers of its super pod", name=shown(server.name)),
            )
        done.add(pod)
        before = pod


@rule("bad-address", _FORMAT)
def backup_address_is_none(view: View) -> Findings:
    """backup_device_ip is not an IPv4 or IPv6 address.

    Why: HCCL reads it like device_ip.
    Remedy: write the device_ip of the other die of the same NPU, or remove the key.
    """
    for device, entry in enumerate(view.devices):
        address = text(entry, "backup_device_ip")
        if address and not any(packed(address)):  # HCCL takes "" for not set
            yield view.place(device, "backup_device_ip"), not_an_address("backup_device_ip", address)


@rule("backup-address", _FORMAT, WARNING)
def backup_is_not_the_other_die(view: View) -> Findings:
    """backup_device_ip is not the device_ip of the other die of the same NPU.

    Why: HCCL's manual for A3: devices 0 and 1 back each other up, as do 2 and 3, and so on.
    Remedy: write the device_ip of the other die.
    """
    for device, other in _dies(view):
        backup, wanted = text(view.devices[device], "backup_device_ip"), view.ips[other]
        if backup and wanted is not None and backup != wanted:
            what = tr(
                "backup_device_ip {backup} is not the device_ip of device {device}",
                backup=shown(backup),
                device=view.id_numbers[other],
            )
            yield view.place(device, "backup_device_ip"), what, tr('write "{text}"', text=wanted)


@rule("port-clash", _FORMAT)
def backup_port_is_taken(view: View) -> Findings:
    """backup_device_port is the same as the other die's device_port on the same address.

    Why: HCCL's manual for A3: a network port's main and backup port differ.
    Remedy: use another port.
    """
    for device, other in _dies(view):
        port = text(view.devices[device], "backup_device_port")
        if port is not None and port == view.devices[other].get("device_port"):
            what = tr(
                "backup_device_port {port} is also the device_port of device {device}",
                port=port,
                device=view.id_numbers[other],
            )
            yield view.place(device, "backup_device_port"), what


def _dies(view: View) -> Iterator[tuple[int, int]]:
    """(device, the other die of its NPU), as positions, of the devices whose NPU has both dies in the table."""
    for server in view.servers:
        by_id = {view.id_numbers[device]: device for device in server.devices}
        for device in server.devices:
            own = view.id_numbers[device]
            if own is not None and own ^ 1 in by_id:
                yield device, by_id[own ^ 1]


@rule("cluster-membership", _CLUSTERS)
def server_not_in_one_cluster(view: View) -> Findings:
    """A server is in no cluster, or in two.

    Why: MindSpore's manual: every server is in one cluster of cluster_list.
    Remedy: list each server under its own cluster, once.
    """
    yield from not_in_one_group(view, "cluster_list", tr("cluster"))


@rule("unknown-server", _CLUSTERS)
def cluster_has_unknown_server(view: View) -> Findings:
    """A cluster lists a server that is not in server_list.

    Why: MindSpore's manual: cluster_list groups the servers of server_list.
    Remedy: write a server_id from server_list, or remove the entry.
    """
    yield from unknown_servers(view, "cluster_list")


@rule("duplicate-cluster", _CLUSTERS)
def cluster_listed_twice(view: View) -> Findings:
    """Two clusters have the same cluster_id.

    Why: cluster_id names the cluster; two entries with the same name are the same cluster twice.
    Remedy: list each cluster once, with all its servers.
    """
    yield from listed_twice(view, "cluster_list", "cluster_id")
