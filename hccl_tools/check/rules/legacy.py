"""Rules for the two formats without a version: lab and cloud."""

from __future__ import annotations

from hccl_tools.check.rules.devices import ids_above
from hccl_tools.check.rules.registry import LEGACY, Findings, repeated, rule
from hccl_tools.check.rules.table import wrong_count
from hccl_tools.common.language import tr
from hccl_tools.common.problem import WARNING
from hccl_tools.common.words import shown
from hccl_tools.table.view import View, listed, number, objects, text


@rule("count-mismatch", LEGACY)
def group_count_wrong(view: View) -> Findings:
    """group_count is not the number of entries in group_list.

    Why: HCCL's parser of the legacy formats.
    Remedy: write the number of groups, in quotes.
    """
    yield from wrong_count(view.table, "group_count", "group_list")


@rule("count-mismatch", LEGACY)
def instance_count_wrong(view: View) -> Findings:
    """instance_count is not the number of entries in instance_list.

    Why: HCCL's parser of the legacy formats.
    Remedy: write the number of instances, in quotes.
    """
    for place, group in listed(view.table, "group_list"):
        yield from wrong_count(group, "instance_count", "instance_list", place)


@rule("count-mismatch", LEGACY)
def device_count_wrong(view: View) -> Findings:
    """device_count (lab: device_num) is not the number of devices in the group.

    Why: HCCL's manual; lab: instance_count is device_num, because an instance has one device.
    Remedy: write the number of devices, in quotes.
    """
    key = "device_num" if view.format == "legacy_lab" else "device_count"
    for place, group in listed(view.table, "group_list"):
        count = text(group, key)
        found = sum(len(objects(instance, "devices")) for _, instance in objects(group, "instance_list"))
        if count is not None and count != str(found):
            yield (
                f"{place}/{key}",
                tr("{key} is {count} but the group has {found} devices", key=key, count=shown(count), found=found),
                tr('write "{text}"', text=found),
            )


@rule("bad-value", ("legacy_lab",))
def devices_do_not_divide(view: View) -> Findings:
    """device_num divided by server_num is not 1, 2, 4, 8 or 16.

    Why: HCCL's parser of the lab format.
    Remedy: write the true numbers of servers and devices.
    """
    for place, group in listed(view.table, "group_list"):
        devices, servers = number(group.get("device_num")), number(group.get("server_num"))
        if devices is None or servers is None:
            continue
        if servers == 0 or devices not in [servers * each for each in (1, 2, 4, 8, 16)]:
            what = tr(
                "{devices} devices on {servers} servers: a server has 1, 2, 4, 8 or 16",
                devices=devices,
                servers=servers,
            )
            yield f"{place}/server_num", what


@rule("server-num", ("legacy_lab",), WARNING)
def server_num_wrong(view: View) -> Findings:
    """server_num is not the number of different values of server_id.

    Why: HCCL divides device_num by it, and would assign the ranks to the wrong servers.
    Remedy: write the number of servers, in quotes.
    """
    groups = listed(view.table, "group_list")
    if len(groups) == 1:
        place, group = groups[0]
        count, found = text(group, "server_num"), len(view.servers)
        if count is not None and count != str(found):
            what = tr(
                "server_num is {count} but {found} different server_id are listed", count=shown(count), found=found
            )
            yield f"{place}/server_num", what, tr('write "{text}"', text=found)


@rule("bad-value", LEGACY)
def device_id_not_on_910(view: View) -> Findings:
    """device_id is above 7.

    Why: the legacy formats are for 910A, whose hosts have devices 0 to 7.
    Remedy: write the physical id that npu-smi shows, 0 to 7.
    """
    for device, found in ids_above(view, 7):
        yield view.place(device, "device_id"), tr("device_id {found} is too large", found=found)


@rule("duplicate-pod", ("legacy_cloud",))
def pod_name_used_twice(view: View) -> Findings:
    """Two instances have the same pod_name.

    Why: HCCL's manual: pod_name is unique.
    Remedy: list each pod once, with all its devices.
    """
    names = [text(server.entry, "pod_name") for server in view.servers]
    yield from repeated(names, lambda index: view.servers[index].pointer + "/pod_name", "pod_name")
