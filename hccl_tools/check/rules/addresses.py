"""Rules for the addresses of devices."""

from __future__ import annotations

from collections.abc import Iterator

from hccl_tools.check.rules.registry import LISTED, WITH_DEVICES, Findings, repeated, rule
from hccl_tools.common.language import tr
from hccl_tools.common.problem import WARNING
from hccl_tools.common.words import count, ranges, shown, some
from hccl_tools.table.view import View

_NONE = {bytes(4), bytes(16)}
_WITH_RANK_IP = (*WITH_DEVICES, "v1.1")


@rule("bad-address", _WITH_RANK_IP)
def address_is_none(view: View) -> Findings:
    """device_ip is not an IPv4 or IPv6 address, or is 0.0.0.0.

    Why: HCCL reads it with inet_pton; in a list with commas, it reads each address. Some tables have placeholders here,
    or error messages of hccn_tool.
    Remedy: write what `hccn_tool -i ID -ip -g` prints.
    """
    owners, texts, packed = view.addresses
    if all(packed) and not _NONE.intersection(packed):
        return
    wrong = [(owner, text) for owner, text, octets in zip(owners, texts, packed) if not any(octets)]
    if len(wrong) > 1 and len({owner for owner, _ in wrong}) == len(view.devices) and not any(map(_meant, wrong)):
        named = some([shown(text, 40) for text in dict.fromkeys(text for _, text in wrong)], 3)
        yield from none_has_one(view, tr("{ip_key} is {texts}", ip_key=view.ip_key, texts=named))
        return
    for each in wrong:
        owner, text = each
        meant = _meant(each)
        remedy = tr('write "{text}"', text=meant) if meant else write_printed(view, owner)
        yield view.ip_place(owner), not_an_address(view.ip_key, text), remedy


def _meant(wrong: tuple[int, str]) -> str | None:
    """The address that a misspelt one means, such as 10.9.0.1/24."""
    from hccl_tools.table import misspelt  # only a wrong address needs it

    return misspelt.meant(wrong[1]) if any(c.isdigit() for c in wrong[1]) else None


def none_has_one(view: View, evidence: str) -> Findings:
    """The one finding for a table in which no device has an address, instead of one for each."""
    text = tr(
        "none of the {devices} has an address: {evidence}",
        devices=count(len(view.devices), "device"),
        evidence=evidence,
    )
    ids = sorted({number for number in view.id_numbers if number is not None}) or [0]
    remedy = tr(
        "check for each device ({devices}) on each server whether it has an address and its link is up: "
        "`hccn_tool -i {first} -ip -g` and `hccn_tool -i {first} -link -g`; then build the table again",
        first=ids[0],
        devices=ranges(ids),
    )
    yield f"/{view.list_key}" if view.list_key in view.table else "", text, remedy


def not_an_address(key: str, text: str) -> str:
    """The text of a problem: `key` of a device does not hold an address."""
    return tr("{key} {text} is not an IPv4 or IPv6 address of a device", key=key, text=shown(text))


@rule("duplicate-address", _WITH_RANK_IP)
def address_used_twice(view: View) -> Findings:
    """Two devices have the same device_ip.

    Why: HCCL: "The IP is used repeatedly."
    Remedy: give each device its own address (hccn_tool -ip -s), then build the table again.
    """
    owners, texts, packed = view.addresses
    # A text that is not an address is refused for that alone: a placeholder is the same everywhere.
    values = packed if all(map(any, packed)) else [octets if any(octets) else None for octets in packed]
    yield from repeated(values, lambda index: view.ip_place(owners[index]), view.ip_key, texts)


@rule("mixed-family", WITH_DEVICES)
def families_differ(view: View) -> Findings:
    """In a table with several servers, some device_ip are IPv4 and some are IPv6.

    Why: HCCL, EI0001: "rank[0] device ip family[2] is not same as others[10]".
    Remedy: use IPv4 everywhere, or IPv6 everywhere.
    """
    owners, texts, packed = view.addresses
    if len(view.servers) < 2 or len(set(map(len, packed)) - {0}) < 2:
        return
    first, seen = 0, -1
    for owner, text, octets in zip(owners, texts, packed):
        if owner == seen or not octets:
            continue
        seen = owner  # of a list, the first address counts
        first = first or len(octets)
        if len(octets) != first:
            yield (
                view.ip_place(owner),
                tr("{ip_key} {text} is not of the same family as the first one", ip_key=view.ip_key, text=shown(text)),
            )


@rule("missing-field", LISTED)
def address_missing_between_servers(view: View) -> Findings:
    """device_ip is missing in a table with several servers (1.2: with several super pods).

    Why: HCCL's manual: you may omit device_ip only on a single server (A2, A3), or in a single super pod.
    Remedy: add what `hccn_tool -i ID -ip -g` prints.
    """
    pods = view.table.get("super_pod_list") if view.format == "v1.2" else None
    parts, what = (len(pods), tr("super pods")) if isinstance(pods, list) and pods else (len(view.servers), "servers")
    if parts > 1:
        missing = list(without_address(view))
        text = tr("device_ip is missing, and the table has several {what}", what=what)
        if len(missing) > 1 and len(missing) == len(view.devices):
            yield from none_has_one(view, text)
            return
        for device in missing:
            yield view.place(device), text, add_printed(view, device)


@rule("different-subnets", LISTED, WARNING)
def subnets_differ(view: View) -> Findings:
    """The same device on two servers has addresses that no usual netmask puts into one subnet.

    Why: the devices reach each other over their own network. The widest netmask in HCCL's manual is 255.255.0.0 (64
    bits with IPv6). Without a gateway, the link fails after 120 s.
    Remedy: check with `hccn_tool -i ID -ping -g address A`; set a gateway or another address.
    """
    owners, texts, packed = view.addresses
    if len(view.servers) < 2 or len({_subnet(octets) for octets in packed if octets}) < 2:
        return
    first: dict[object, tuple[bytes, str]] = {}
    for owner, text, octets in zip(owners, texts, packed):
        subnet, earlier = first.setdefault((view.ids[owner], len(octets)), (_subnet(octets), text))
        if octets and subnet != _subnet(octets):
            what = tr(
                "device_ip {text} is not in the subnet of {earlier}, the address of the same device on another server",
                text=shown(text),
                earlier=shown(earlier),
            )
            yield view.ip_place(owner), what, tr("make sure that the devices have a gateway")
            return  # one is enough: the others follow from the same plan of addresses


def _subnet(octets: bytes) -> bytes:
    return octets[:2] if len(octets) == 4 else octets[:8]


def without_address(view: View) -> Iterator[int]:
    """The devices that have no device_ip, or an empty one; the schema reports one of the wrong type."""
    if None in view.ips:
        for device, ip in enumerate(view.ips):
            if ip is None and view.devices[device].get(view.ip_key, "") == "":
                yield device


def write_printed(view: View, device: int) -> str:
    """The remedy for a wrong address: the command that prints the right one."""
    return tr("write what `hccn_tool -i {device} -ip -g` prints", device=view.ids[device])


def add_printed(view: View, device: int) -> str:
    """The remedy for an address that is missing."""
    return tr("add what `hccn_tool -i {device} -ip -g` prints", device=view.ids[device])
