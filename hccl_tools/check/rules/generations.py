"""Rules for a single chip generation."""

from __future__ import annotations

from collections.abc import Sequence

from hccl_tools.check.rules.addresses import add_printed, none_has_one, without_address, write_printed
from hccl_tools.check.rules.devices import ids_above
from hccl_tools.check.rules.registry import ALL, LEGACY, LISTED, WITH_DEVICES, Findings, rule
from hccl_tools.common.language import tr
from hccl_tools.common.problem import WARNING
from hccl_tools.common.words import count, named, ranges, shown
from hccl_tools.table.device_range import MAX_DEVICE_ID
from hccl_tools.table.view import Server, View

_V1 = ("v1.0", "cross_cluster", *LEGACY)
# The sets of four devices that HCCL's code accepts on 910A (topoinfo_parse.cc).  It accepts every pair,
# but only devices 0-3 and 4-7 are wired to each other, and the manual forbids pairs across.
_FOURS_910A = (
    (0, 1, 2, 3),
    (4, 5, 6, 7),
    (0, 1, 4, 5),
    (0, 2, 4, 6),
    (0, 3, 4, 7),
    (1, 2, 5, 6),
    (1, 3, 5, 7),
    (2, 3, 6, 7),
)


def group_problem_910a(ids: Sequence[int]) -> tuple[str, str] | None:
    """(text, remedy) when a 910A host cannot run one job on the devices `ids`, else None."""
    if ids and max(ids) > 7:
        return tr("device {device} does not exist on a 910A host", device=max(ids)), tr("its devices are 0 to 7")
    if len(ids) not in (1, 2, 4, 8):
        return tr("{devices} ({ids}) on a 910A host", devices=count(len(ids), "device"), ids=ranges(ids)), tr(
            "use 1, 2, 4 or 8 devices"
        )
    if len(ids) == 2 and ids[0] // 4 != ids[1] // 4:
        remedy = tr("use both from 0-3 or both from 4-7")
    elif len(ids) == 4 and tuple(sorted(ids)) not in _FOURS_910A:
        remedy = tr('use "[0,4)", "[4,8)" or two linked pairs such as 0,1,4,5')
    else:
        return None
    return tr("{devices} are not linked on a 910A host", devices=named("device", ids)), remedy


@rule("wrong-version", ("v1.2", "v2.0"), generations=("910A", "A2"))
def version_of_another_chip(view: View) -> Findings:
    """A 1.2 or 2.0 table for 910A or A2.

    Why: HCCL's manual: 910A and A2 read version 1.0; 1.2 is for A3, 2.0 for 950.
    Remedy: build a 1.0 table with hccl_tools/hccl_tools.py.
    """
    yield (*_version(view), '910A and A2 read "1.0"')


@rule("wrong-version", ("v2.0",), generations=("A3",))
def version_2_on_a3(view: View) -> Findings:
    """A 2.0 table for A3.

    Why: HCCL's manual: A3 reads version 1.2, or 1.0; 2.0 is for 950.
    Remedy: build a 1.2 table with hccl_tools/hccl_tools.py --generation A3.
    """
    yield (*_version(view), 'A3 reads "1.2" or "1.0"')


@rule("wrong-version", tuple(name for name in ALL if name != "v2.0"), generations=("950",))
def version_1_on_950(view: View) -> Findings:
    """A table for 950 does not have version 2.0.

    Why: 950's libhccl_v2 reads version 2.0 only; a 1.0 table causes EI0014.
    Remedy: write the table in version 2.0 (rank_list).
    """
    yield (*_version(view), tr('950 reads "2.0" only, with rank_list'))


def _version(view: View) -> tuple[str, str]:
    place = "/version" if "version" in view.table else ""
    return place, tr(
        "a table of version {version} for a chip that cannot read it", version=shown(view.table.get("version"))
    )


@rule("wrong-version", LEGACY, WARNING, generations=("A2", "A3"))
def legacy_after_910a(view: View) -> Findings:
    """A legacy table (group_list) for A2 or A3.

    Why: HCCL's manual shows the legacy format for 910A only.
    Remedy: build a 1.0 table with hccl_tools/hccl_tools.py.
    """
    yield "", tr("HCCL's manual has the legacy format on 910A only")


@rule("device-group", _V1, generations=("910A",))
def devices_not_linked(view: View) -> Findings:
    """A server's devices are not 1, 2, 4 or 8 linked devices from 0-7.

    Why: HCCL's manual: devices 0-3 and 4-7 are two networks; HCCL's topoinfo_parse.cc has the allowed sets of four.
    Remedy: use "[0,8)", "[0,4)", "[4,8)", a pair of one network, or one device.
    """
    for server in view.servers:
        ids = sorted(n for n in (view.id_numbers[device] for device in server.devices) if n is not None)
        problem = group_problem_910a(ids)
        if problem:
            yield (_devices_place(view, server), *problem)


@rule("device-count", _V1, generations=("910A",))
def servers_unlike_on_910a(view: View) -> Findings:
    """Two servers have different numbers of devices, on 910A.

    Why: HCCL: "Ensure that the devices num of eachserver is consistent".
    Remedy: use the same number of devices on every server.
    """
    yield from _unlike(view)


@rule("device-count", ("v1.0", "cross_cluster"), generations=("910A",))
def few_devices_on_910a(view: View) -> Findings:
    """In a table with several servers, one has fewer than 8 devices, on 910A.

    Why: MindSpore's manual for 910A: a job on several hosts has 8*N devices. HCCL alone accepts 1, 2, 4 or 8 per
    server. This rule skips the legacy formats, because MindSpore's tool does not write them.
    Remedy: use all 8 devices of every server, or devices of one server only.
    """
    for server in view.servers if len(view.servers) > 1 else ():
        if len(server.devices) < 8:
            yield (
                _devices_place(view, server),
                tr("{devices}, in a job of several servers", devices=count(len(server.devices), "device")),
            )


@rule("device-count", LISTED, WARNING, generations=("A2", "A3"))
def servers_unlike(view: View) -> Findings:
    """Two servers have different numbers of devices, on A2 or A3.

    Why: HCCL's manual recommends equal numbers; with different numbers, collectives are slower.
    Remedy: use the same number of devices on every server where you can.
    """
    yield from _unlike(view)


def _unlike(view: View) -> Findings:
    for server in view.servers[1:]:
        first = len(view.servers[0].devices)
        if len(server.devices) != first:
            text = tr(
                "{devices}, but the first server has {first}", devices=count(len(server.devices), "device"), first=first
            )
            yield _devices_place(view, server), text


@rule("missing-field", WITH_DEVICES, generations=("910A",))
def address_missing_on_910a(view: View) -> Findings:
    """device_ip is missing on one server, on 910A.

    Why: HCCL's manual: 910A needs it on a single server, too.
    Remedy: add what `hccn_tool -i ID -ip -g` prints.
    """
    missing = list(without_address(view)) if len(view.servers) == 1 and view.format in LISTED else []
    if len(missing) > 1 and len(missing) == len(view.devices):
        yield from none_has_one(view, tr("device_ip is missing (910A needs it)"))
        return
    for device in missing:
        yield (
            view.place(device),
            tr("device_ip is missing (910A needs it)"),
            add_printed(view, device),
        )


@rule("bad-value", LISTED, generations=("A2", "A3"))
def device_id_not_there(view: View) -> Findings:
    """device_id is above 15, on A2 or A3.

    Why: HCCL's manual: A2 hosts have devices 0 to 7 or 0 to 15, A3 hosts 0 to 15.
    Remedy: write the physical id that npu-smi shows, 0 to 15.
    """
    for device, found in ids_above(view, 15):
        if found <= MAX_DEVICE_ID:  # larger ones are wrong on every chip
            yield (
                view.place(device, "device_id"),
                tr("device_id {found} does not exist on an A2 or A3 host", found=found),
            )


@rule("device-group", LISTED, WARNING, generations=("A2",))
def planes_differ_on_a2(view: View) -> Findings:
    """A 16-device A2 server uses both halves (0-7 and 8-15), but not the same planes in each half.

    Why: HCCL's manual, A2 with 16 devices: over PCIe both halves need the same devices (0 and 8, 1 and 9).
    Remedy: use pairs such as 0 and 8, or devices of one half only.
    """
    for server in view.servers:
        ids = {n for n in (view.id_numbers[device] for device in server.devices) if n is not None}
        low, high = {n for n in ids if n < 8}, {n - 8 for n in ids if 7 < n < 16}
        if low and high and low != high:
            text = tr("{devices} are not the same places of 0-7 and 8-15", devices=named("device", ids))
            yield _devices_place(view, server), text


@rule("vnic-address", ("v1.0", "cross_cluster"), WARNING, generations=("A3",))
def virtual_address_on_a3(view: View) -> Findings:
    """device_ip is the address of an A3 device's virtual NIC: 192.SERVER.2 or 3.(199 - device).

    Why: the driver gives such addresses to virtual NICs; the table needs the address of the network port.
    Remedy: write what `hccn_tool -i ID -ip -g` prints.
    """
    yield from _virtual_addresses(view)


@rule("vnic-address", ("v1.2",), WARNING)
def virtual_address_in_super_pod(view: View) -> Findings:
    """device_ip is the address of an A3 device's virtual NIC: 192.SERVER.2 or 3.(199 - device), in a 1.2 table.

    Why: the driver gives such addresses to virtual NICs; the table needs the address of the network port.
    Remedy: write what `hccn_tool -i ID -ip -g` prints.
    """
    yield from _virtual_addresses(view)


def _virtual_addresses(view: View) -> Findings:
    """Findings for the devices whose address is that of their own virtual NIC."""
    owners, texts, packed = view.addresses
    for owner, text, octets in zip(owners, texts, packed):
        device = view.id_numbers[owner]
        if device is not None and octets[:1] == b"\xc0" and list(octets[2:]) == [2 + device % 2, 199 - device]:
            what = tr(
                "device_ip {text} looks like the virtual NIC of device {device}, not its network port",
                text=shown(text),
                device=device,
            )
            yield view.ip_place(owner), what, write_printed(view, owner)


def _devices_place(view: View, server: Server) -> str:
    # In the legacy lab format several entries list the devices of a server: name the first.
    return server.pointer if view.format == "legacy_lab" else f"{server.pointer}/{view.device_key}"
