"""Rules of version 1.2: A3 super pods."""

from hccl_tools.check.rules.registry import rule
from hccl_tools.check.rules.repeated import repeated
from hccl_tools.common.problem import WARNING
from hccl_tools.common.words import shown
from hccl_tools.table.address import packed
from hccl_tools.table.view import number, objects, text

_FORMAT = ("v1.2",)


def _pods(view):
    """(pointer, pod id, [(pointer, server_id)]) of every well-formed super pod."""
    for index, pod in objects(view.table, "super_pod_list"):
        place = f"/super_pod_list/{index}"
        members = [
            (f"{place}/server_list/{n}/server_id", text(entry, "server_id")) for n, entry in objects(pod, "server_list")
        ]
        yield place, text(pod, "super_pod_id"), members


def _pod_of(view):
    """{server_id: number of the super pod that lists it first}."""
    found = {}
    for position, (_, _, members) in enumerate(_pods(view)):
        for _, name in members:
            found.setdefault(name, position)
    return found


@rule("missing-field", _FORMAT)
def pods_without_device_ids(view):
    """The table has super_pod_list and a device has no super_device_id, or the other way round.

    Why: HCCL's manual for A3: both may be left out, but only together.
    Mend: add what `npu-smi info -t spod-info -i NPU -c CHIP` prints as SDID, or super_pod_list.
    """
    with_id = [device for device, entry in enumerate(view.devices) if "super_device_id" in entry]
    if "super_pod_list" in view.table:
        for device in sorted(set(range(len(view.devices))) - set(with_id)):
            remedy = "add the SDID that `npu-smi info -t spod-info` prints"
            yield view.place(device), "super_device_id is missing, and the table has super_pod_list", remedy
    elif with_id:
        remedy = "add super_pod_list with every server, or take super_device_id away everywhere"
        yield "", "super_pod_list is missing, and devices have super_device_id", remedy


@rule("duplicate-super-device", _FORMAT)
def super_device_listed_twice(view):
    """Two devices of one super pod have one super_device_id.

    Why: HCCL, EI0014: "devices have same superDeviceId in superPod"; in another pod it may stand again.
    Mend: write the SDID that `npu-smi info -t spod-info` prints for each device.
    """
    pods, devices, values = _pod_of(view), [], []
    for server in view.servers:
        for device in server.devices:
            value = text(view.devices[device], "super_device_id")
            devices.append(device)
            values.append(None if value is None else (pods.get(server.name), value))
    yield from repeated(
        values,
        lambda index: view.place(devices[index]) + "/super_device_id",
        "super_device_id",
        "write the SDID that `npu-smi info -t spod-info` prints",
        [value and value[1] for value in values],
    )


@rule("bad-value", _FORMAT)
def super_device_id_too_large(view):
    """super_device_id is above 4294967295.

    Why: an SDID has 32 bits (server, chip, die, device).
    Mend: write the SDID that `npu-smi info -t spod-info` prints.
    """
    for device, entry in enumerate(view.devices):
        value = number(entry.get("super_device_id"))
        if value is not None and value >= 1 << 32:
            place = view.place(device) + "/super_device_id"
            yield place, f"super_device_id {value} has more than 32 bits", "write the SDID that npu-smi prints"


@rule("duplicate-super-pod", _FORMAT)
def super_pod_listed_twice(view):
    """Two super pods have one super_pod_id.

    Why: HCCL's manual for A3: super_pod_id is unique.
    Mend: list each super pod once, with all its servers.
    """
    pods = list(_pods(view))
    names = [name for _, name, _ in pods]
    remedy = "list each super pod once, with all its servers"
    yield from repeated(names, lambda index: pods[index][0] + "/super_pod_id", "super_pod_id", remedy)


@rule("unknown-server", _FORMAT)
def pod_has_unknown_server(view):
    """A super pod lists a server that is not in server_list.

    Why: HCCL's manual for A3: super_pod_list groups the servers of server_list.
    Mend: write a server_id of server_list, or take the entry away.
    """
    known = {server.name for server in view.servers}
    for _, _, members in _pods(view):
        for place, name in members:
            if name is not None and name not in known:
                yield place, f"server {shown(name)} is not in server_list", "write a server_id of server_list"


@rule("pod-membership", _FORMAT)
def server_not_in_one_pod(view):
    """A server is in no super pod, or in two.

    Why: HCCL's manual for A3: every server is in exactly one super pod.
    Mend: list each server under its own super pod, once.
    """
    if "super_pod_list" not in view.table:
        return
    places = [member for _, _, members in _pods(view) for member in members]
    names = [name for _, name in places]
    yield from repeated(names, lambda index: places[index][0], "server_id", "list each server under one super pod")
    listed = set(names)
    for server in view.servers:
        if server.name is not None and server.name not in listed:
            text_ = f"server {shown(server.name)} is in no super pod"
            yield server.pointer, text_, "list it in super_pod_list, under its own super pod"


@rule("pod-interleave", _FORMAT)
def pods_interleave(view):
    """The servers of a super pod do not stand next to one another in server_list.

    Why: HCCL's manual for A3: no interleaving.
    Mend: sort server_list by super pod.
    """
    pods, before, done = _pod_of(view), None, set()
    for server in view.servers:
        pod = pods.get(server.name)
        if pod is None or pod == before:
            continue
        if pod in done:
            text_ = f"server {shown(server.name)} stands apart from the other servers of its super pod"
            yield server.pointer, text_, "sort server_list by super pod"
        done.add(pod)
        before = pod


@rule("bad-address", _FORMAT)
def backup_address_is_none(view):
    """backup_device_ip is not an IPv4 or IPv6 address.

    Why: HCCL reads it as it reads device_ip.
    Mend: write the device_ip of the other die of the same NPU, or leave it out.
    """
    for device, entry in enumerate(view.devices):
        address = text(entry, "backup_device_ip")
        if address is not None and not any(packed(address)):
            place = view.place(device) + "/backup_device_ip"
            what = f"backup_device_ip {shown(address)} is not an IPv4 or IPv6 address of a device"
            yield place, what, "write the device_ip of the other die of the same NPU"


@rule("backup-address", _FORMAT, WARNING)
def backup_is_not_the_other_die(view):
    """backup_device_ip is not the device_ip of the other die of the same NPU.

    Why: HCCL's manual for A3: devices 0 and 1 back each other up, 2 and 3, and so on.
    Mend: write the device_ip of the other die.
    """
    for server, by_id in _backed_up(view):
        for device in server.devices:
            backup, own = text(view.devices[device], "backup_device_ip"), view.id_numbers[device]
            other = None if own is None else by_id.get(own ^ 1)
            if backup is not None and other is not None and view.ips[other] is not None and backup != view.ips[other]:
                what = f"backup_device_ip {shown(backup)} is not the device_ip of device {own ^ 1}"
                yield view.place(device) + "/backup_device_ip", what, f'write "{view.ips[other]}"'


@rule("port-clash", _FORMAT)
def backup_port_is_taken(view):
    """backup_device_port is the device_port that the other die uses on the same address.

    Why: HCCL's manual for A3: a network port's main and backup port differ.
    Mend: take another port.
    """
    for server, by_id in _backed_up(view):
        for device in server.devices:
            entry, own = view.devices[device], view.id_numbers[device]
            other = None if own is None else by_id.get(own ^ 1)
            port = text(entry, "backup_device_port")
            if port is not None and other is not None and port == view.devices[other].get("device_port"):
                what = f"backup_device_port {port} is the device_port of device {own ^ 1}, whose port it would share"
                yield view.place(device) + "/backup_device_port", what, "take another port"


def _backed_up(view):
    """(server, {device id: position}) of the servers."""
    for server in view.servers:
        yield server, {view.id_numbers[device]: device for device in server.devices}
