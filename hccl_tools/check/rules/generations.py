"""Rules that hold on one chip generation only."""

from hccl_tools.check.rules.addresses import how_to_ask, without_address
from hccl_tools.check.rules.groups import group_problem_910a
from hccl_tools.check.rules.registry import ALL, LEGACY, LISTED, WITH_DEVICES, rule
from hccl_tools.common.problem import WARNING
from hccl_tools.common.words import shown

_V1 = ("v1.0", "cross_cluster", *LEGACY)


@rule("wrong-version", ("v1.2", "v2.0"), generations=("910A", "A2"))
def version_of_another_chip(view):
    """A 1.2 or 2.0 table for 910A or A2.

    Why: HCCL's manual: 910A and A2 take version 1.0; 1.2 is for A3, 2.0 for 950.
    Mend: build a 1.0 table with hccl_tools/hccl_tools.py.
    """
    yield _version(view, '910A and A2 take "1.0"')


@rule("wrong-version", ("v2.0",), generations=("A3",))
def version_2_on_a3(view):
    """A 2.0 table for A3.

    Why: HCCL's manual: A3 takes version 1.2, or 1.0; 2.0 is for 950.
    Mend: build a 1.2 table with hccl_tools/hccl_tools.py --generation A3.
    """
    yield _version(view, 'A3 takes "1.2" or "1.0"')


@rule("wrong-version", tuple(name for name in ALL if name != "v2.0"), generations=("950",))
def version_1_on_950(view):
    """A table of another version than 2.0 for 950.

    Why: 950's libhccl_v2 takes version 2.0 only; a 1.0 table ends in EI0014.
    Mend: write the table in version 2.0 (rank_list).
    """
    yield _version(view, '950 takes "2.0" only, with rank_list')


def _version(view, remedy):
    place = "/version" if "version" in view.table else ""
    return place, f"a table of version {shown(view.table.get('version'))} for a chip that cannot read it", remedy


@rule("wrong-version", LEGACY, WARNING, generations=("A2", "A3"))
def legacy_after_910a(view):
    """A legacy table (group_list) for A2 or A3.

    Why: HCCL's manual shows the legacy format for 910A only.
    Mend: build a 1.0 table with hccl_tools/hccl_tools.py.
    """
    yield "", "HCCL's manual knows the legacy format on 910A only", "build a table of version 1.0"


@rule("device-group", _V1, generations=("910A",))
def devices_not_linked(view):
    """A server's devices cannot run one job on 910A: not 1, 2, 4 or 8, or not linked, or above 7.

    Why: HCCL's manual: devices 0-3 and 4-7 are two networks; the legal sets of four are in HCCL's
    topoinfo_parse.cc.
    Mend: take "[0,8)", "[0,4)", "[4,8)", a pair of one network, or one device.
    """
    for server in view.servers:
        ids = sorted(n for n in (view.id_numbers[device] for device in server.devices) if n is not None)
        problem = group_problem_910a(ids)
        if problem:
            yield (_devices_place(view, server), *problem)


@rule("device-count", _V1, generations=("910A",))
def servers_unlike_on_910a(view):
    """Two servers have different numbers of devices, on 910A.

    Why: HCCL: "Ensure that the devices num of eachserver is consistent".
    Mend: take the same number of devices on every server.
    """
    yield from _unlike(view, "910A: the same number on every server")


@rule("device-count", LISTED, WARNING, generations=("A2", "A3"))
def servers_unlike(view):
    """Two servers have different numbers of devices, on A2 or A3.

    Why: HCCL's manual recommends equal numbers; unequal ones run, with slower collectives.
    Mend: take the same number of devices on every server where you can.
    """
    yield from _unlike(view, "take the same number on every server where you can")


def _unlike(view, remedy):
    for server in view.servers[1:]:
        first = len(view.servers[0].devices)
        if len(server.devices) != first:
            text = f"{len(server.devices)} devices, but the first server has {first}"
            yield _devices_place(view, server), text, remedy


@rule("missing-field", WITH_DEVICES, generations=("910A",))
def address_missing_on_910a(view):
    """device_ip is missing on one server, on 910A.

    Why: HCCL's manual: 910A needs it on one server too.
    Mend: add what `hccn_tool -i ID -ip -g` prints.
    """
    for device in without_address(view) if len(view.servers) == 1 and view.format in LISTED else ():
        yield view.place(device), "device_ip is missing (910A needs it)", f"add {how_to_ask(view, device)[6:]}"


@rule("bad-value", LISTED, generations=("A2", "A3"))
def device_id_not_there(view):
    """device_id is above 15, on A2 or A3.

    Why: HCCL's manual: A2 hosts have devices 0 to 7 or 0 to 15, A3 hosts 0 to 15.
    Mend: write the physical id that npu-smi shows.
    """
    for device, number in enumerate(view.id_numbers):
        if number is not None and 15 < number <= 64:  # above 64 every chip says no
            text = f"device_id {number} does not exist on an A2 or A3 host"
            yield view.place(device) + "/device_id", text, "its devices are 0 to 15"


@rule("device-group", LISTED, WARNING, generations=("A2",))
def planes_differ_on_a2(view):
    """A 16-device A2 server uses both halves (0-7 and 8-15), but not the same planes of each.

    Why: HCCL's manual, A2 with 16 devices: over PCIe both halves need the same devices (0 and 8, 1 and 9).
    Mend: take the same places of both halves, or one half only.
    """
    for server in view.servers:
        ids = {view.id_numbers[device] for device in server.devices} - {None}
        low, high = {n for n in ids if n < 8}, {n - 8 for n in ids if 7 < n < 16}
        if low and high and low != high:
            text = f"devices {','.join(map(str, sorted(ids)))} are not the same places of 0-7 and 8-15"
            yield _devices_place(view, server), text, "take pairs such as 0 and 8, or devices of one half only"


@rule("vnic-address", ("v1.0", "cross_cluster"), WARNING, generations=("A3",))
def virtual_address_on_a3(view):
    """device_ip is that of an A3 device's virtual NIC: 192.SERVER.2 or 3.(199 - device).

    Why: the driver gives such addresses to virtual NICs; the table wants the network port's.
    Mend: write what `hccn_tool -i ID -ip -g` prints.
    """
    yield from virtual_addresses(view)


@rule("vnic-address", ("v1.2",), WARNING)
def virtual_address_in_super_pod(view):
    """device_ip is that of an A3 device's virtual NIC: 192.SERVER.2 or 3.(199 - device), in a 1.2 table.

    Why: the driver gives such addresses to virtual NICs; the table wants the network port's.
    Mend: write what `hccn_tool -i ID -ip -g` prints.
    """
    yield from virtual_addresses(view)


def virtual_addresses(view):
    """Findings for the devices whose address is that of their own virtual NIC."""
    owners, texts, packed = view.addresses
    for owner, text, octets in zip(owners, texts, packed):
        device = view.id_numbers[owner]
        if device is not None and octets[:1] == b"\xc0" and list(octets[2:]) == [2 + device % 2, 199 - device]:
            what = f"device_ip {shown(text)} looks like the virtual NIC of device {device}, not its network port"
            yield view.place(owner) + "/device_ip", what, how_to_ask(view, owner)


def _devices_place(view, server):
    # In the legacy lab format the devices of a server stand in several entries: name the first.
    return server.pointer if view.format == "legacy_lab" else f"{server.pointer}/{view.device_key}"
