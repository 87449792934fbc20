"""Rules of the two formats without a version: lab and cloud."""

from hccl_tools.check.rules.registry import LEGACY, rule
from hccl_tools.check.rules.repeated import repeated
from hccl_tools.check.rules.table import count_problem
from hccl_tools.common.problem import WARNING
from hccl_tools.common.words import shown
from hccl_tools.table.view import number, objects, text


def _groups(view):
    return [(f"/group_list/{n}", group) for n, group in objects(view.table, "group_list")]


@rule("count-mismatch", LEGACY)
def group_count_wrong(view):
    """group_count is not the number of entries in group_list.

    Why: HCCL's parser of the legacy formats.
    Mend: write the number of groups, in quotes.
    """
    yield from count_problem(view.table, "group_count", "group_list", "")


@rule("count-mismatch", LEGACY)
def instance_count_wrong(view):
    """instance_count is not the number of entries in instance_list.

    Why: HCCL's parser of the legacy formats.
    Mend: write the number of instances, in quotes.
    """
    for place, group in _groups(view):
        yield from count_problem(group, "instance_count", "instance_list", place)


@rule("count-mismatch", LEGACY)
def device_count_wrong(view):
    """device_count (lab: device_num) is not the number of devices of the group.

    Why: HCCL's manual; lab: instance_count is device_num, since an instance has one device.
    Mend: write the number of devices, in quotes.
    """
    key = "device_num" if view.format == "legacy_lab" else "device_count"
    for place, group in _groups(view):
        count, found = text(group, key), 0
        for _, instance in objects(group, "instance_list"):
            found += len(objects(instance, "devices"))
        if count is not None and count != str(found):
            yield f"{place}/{key}", f"{key} is {shown(count)} but the group has {found} devices", f'write "{found}"'


@rule("bad-value", ("legacy_lab",))
def devices_do_not_divide(view):
    """device_num divided by server_num is not 1, 2, 4, 8 or 16.

    Why: HCCL's parser of the lab format.
    Mend: write the true numbers of servers and devices.
    """
    for place, group in _groups(view):
        devices, servers = number(group.get("device_num")), number(group.get("server_num"))
        known = devices is not None and servers is not None
        if known and (servers == 0 or devices not in [servers * each for each in (1, 2, 4, 8, 16)]):
            what = f"{devices} devices on {servers} servers: a server has 1, 2, 4, 8 or 16"
            yield f"{place}/server_num", what, "write the number of servers, each with as many devices"


@rule("server-num", ("legacy_lab",), WARNING)
def server_num_wrong(view):
    """server_num is not the number of different server_id.

    Why: HCCL divides device_num by it; the ranks would be laid out on other servers than listed.
    Mend: write the number of servers, in quotes.
    """
    groups = _groups(view)
    count, found = text(groups[0][1], "server_num") if len(groups) == 1 else None, len(view.servers)
    if count is not None and count != str(found):
        what = f"server_num is {shown(count)} but {found} different server_id are listed"
        yield f"{groups[0][0]}/server_num", what, f'write "{found}"'


@rule("bad-value", LEGACY)
def device_id_not_on_910(view):
    """device_id is above 7.

    Why: the legacy formats are for 910A, whose hosts have devices 0 to 7.
    Mend: write the physical id that npu-smi shows.
    """
    for device, number_ in enumerate(view.id_numbers):
        if number_ is not None and number_ > 7:
            yield view.place(device) + "/device_id", f"device_id {number_} is too large", "its devices are 0 to 7"


@rule("duplicate-pod", ("legacy_cloud",))
def pod_name_used_twice(view):
    """Two instances have one pod_name.

    Why: HCCL's manual: pod_name is unique.
    Mend: list each pod once, with all its devices.
    """
    names = [text(server.entry, "pod_name") for server in view.servers]
    remedy = "list each pod once, with all its devices"
    yield from repeated(names, lambda index: view.servers[index].pointer + "/pod_name", "pod_name", remedy)
