"""Rules on the devices' addresses."""

from hccl_tools.check.rules.registry import LISTED, WITH_DEVICES, rule
from hccl_tools.check.rules.repeated import repeated
from hccl_tools.common.problem import WARNING
from hccl_tools.common.words import shown

_NONE = {bytes(4), bytes(16)}
_WITH_RANK_IP = (*WITH_DEVICES, "v1.1")


@rule("bad-address", _WITH_RANK_IP)
def address_is_none(view):
    """device_ip is not an IPv4 or IPv6 address, or is 0.0.0.0.

    Why: HCCL reads it with inet_pton, each address of a list with commas; what hccn_tool says when
    it fails ends up here, and placeholders do.
    Mend: write what `hccn_tool -i ID -ip -g` prints.
    """
    owners, texts, packed = view.addresses
    if all(packed) and not _NONE.intersection(packed):
        return
    for owner, text, octets in zip(owners, texts, packed):
        if not octets or not any(octets):
            what = f"{view.ip_key} {shown(text)} is not an IPv4 or IPv6 address of a device"
            yield _place(view, owner), what, how_to_ask(view, owner)


@rule("duplicate-address", _WITH_RANK_IP)
def address_used_twice(view):
    """Two devices have one device_ip.

    Why: HCCL: "The IP is used repeatedly."
    Mend: give each device its own address (hccn_tool -ip -s), then write the table anew.
    """
    owners, texts, packed = view.addresses
    yield from repeated(
        packed if all(packed) else [octets or text for octets, text in zip(packed, texts)],
        lambda index: _place(view, owners[index]),
        view.ip_key,
        "give each device its own address (hccn_tool -ip -s)",
        texts,
    )


@rule("mixed-family", WITH_DEVICES)
def families_differ(view):
    """In a table of several servers some device_ip are IPv4 and some IPv6.

    Why: HCCL, EI0001: "rank[0] device ip family[2] is not same as others[10]".
    Mend: use IPv4 everywhere, or IPv6 everywhere.
    """
    owners, texts, packed = view.addresses
    if len(view.servers) < 2 or len(set(map(len, packed)) - {0}) < 2:
        return
    first, seen = None, -1
    for owner, text, octets in zip(owners, texts, packed):
        if owner == seen or not octets:
            continue
        seen = owner  # of a list, the first address counts
        first = first or len(octets)
        if len(octets) != first:
            what = f"{view.ip_key} {shown(text)} is not of the same family as the first one"
            yield _place(view, owner), what, "use IPv4 everywhere, or IPv6"


@rule("missing-field", LISTED)
def address_missing_between_servers(view):
    """device_ip is missing in a table of several servers (1.2: of several super pods).

    Why: HCCL's manual: device_ip may be left out on one server only (A2, A3), or in one super pod.
    Mend: add what `hccn_tool -i ID -ip -g` prints.
    """
    pods = view.table.get("super_pod_list") if view.format == "v1.2" else None
    parts, what = (len(pods), "super pods") if isinstance(pods, list) and pods else (len(view.servers), "servers")
    if parts > 1:
        for device in without_address(view):
            text = f"device_ip is missing, and the table has several {what}"
            yield view.place(device), text, f"add {how_to_ask(view, device)[6:]}"


@rule("different-subnets", LISTED, WARNING)
def subnets_differ(view):
    """The same device of two servers has addresses that no usual netmask puts into one subnet.

    Why: the devices reach each other by their own network; a 255.255.0.0 netmask (64 bits with
    IPv6) is the widest that HCCL's manual shows. Without a gateway the link fails after 120 s.
    Mend: check with `hccn_tool -i ID -ping -g address A`; set a gateway or another address.
    """
    owners, texts, packed = view.addresses
    if len(view.servers) < 2 or len({_subnet(octets) for octets in packed if octets}) < 2:
        return
    first = {}
    for owner, text, octets in zip(owners, texts, packed):
        key = (view.ids[owner], len(octets))
        subnet, earlier = first.setdefault(key, (_subnet(octets), text))
        if octets and subnet != _subnet(octets):
            what = f"device_ip {shown(text)} is in another subnet than {shown(earlier)}, of the same device elsewhere"
            yield _place(view, owner), what, "make sure that the devices have a gateway"
            return  # one tells it: the others follow from the same plan of addresses


def _subnet(octets):
    return octets[:2] if len(octets) == 4 else octets[:8]


def without_address(view):
    """The devices that have no device_ip at all; one of the wrong type is the schema's matter."""
    if None in view.ips:
        for device, ip in enumerate(view.ips):
            if ip is None and view.ip_key not in view.devices[device]:
                yield device


def how_to_ask(view, device):
    """The remedy where an address has to be written."""
    return f"write what `hccn_tool -i {view.ids[device]} -ip -g` prints"


def _place(view, device):
    return f"{view.place(device)}/{view.ip_key}"
