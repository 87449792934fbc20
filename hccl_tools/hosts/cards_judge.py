"""What is wrong with the network of a rank table's devices, and which error of HCCL comes from it."""

import ipaddress
from collections import Counter, namedtuple

from hccl_tools.table.address import packed

# check: the fact that is wrong; code: the error that HCCL would end with; device: its id, None: the server
Finding = namedtuple("Finding", "server device rank check code text remedy")

_Fault = namedtuple("_Fault", "check code text remedy")  # of one device


def partners(servers):
    """{(server_id, device id): address}: the device that each one is to reach, from the table.

    That is the device at the same place of the next server, with which rings are made.  On a single server
    it is the next one of the same subnet, if there is one: those of a server need no network between
    them, and on 910A the eight stand in four subnets without a gateway.
    """
    if len(servers) == 1:
        return _partners_at_home(servers[0])
    found = {}
    for number, server in enumerate(servers):
        others = servers[(number + 1) % len(servers)].devices
        for place, device in enumerate(server.devices):
            found[server.server_id, int(device.device_id)] = others[place % len(others)].device_ip
    return found


def _partners_at_home(server):
    """The same for the devices of one server."""
    subnets = {}
    for device in server.devices:  # the table has no netmasks; a subnet is what differs in the last byte only
        subnets.setdefault(packed(device.device_ip.partition(",")[0])[:-1], []).append(device)
    return {
        (server.server_id, int(device.device_id)): following.device_ip
        for devices in subnets.values()
        for device, following in zip(devices, devices[1:] + devices[:1])
        if following is not device
    }


def judge(servers, facts):
    """The Findings for the servers of a table; facts: {server_id: {device id: facts of network.ask}}."""
    asked = [
        (server, device, facts[server.server_id][int(device.device_id)])
        for server in servers
        if server.server_id in facts
        for device in server.devices
    ]
    usual_tls = _usual(found["tls"] for _, _, found in asked)
    reached = partners(servers)
    findings = []
    for server, device, found in asked:
        partner = reached.get((server.server_id, int(device.device_id)))
        place = server.server_id, int(device.device_id), int(device.rank_id)
        findings += [Finding(*place, *fault) for fault in _of_device(device, found, partner, usual_tls)]
    return findings


def _usual(values):
    """The most frequent value that is known, the smaller of equals; None where none is."""
    counts = Counter(value for value in values if value is not None)
    return max(sorted(counts), key=lambda value: counts[value]) if counts else None


def _of_device(device, found, partner, usual_tls):
    """The _Faults of one device."""
    number = device.device_id
    for check, said in found["failed"].items():
        if check == "restore":
            yield _Fault("detect", None, said, f"set it with `hccn_tool -i {number} -netdetect -s address A`")
        elif check != "gateway":  # not every card has one
            yield _Fault(
                check,
                "EI0009" if check != "tls" else "EI0016",
                f"hccn_tool told nothing about {check}: {said}",
                "look at the driver with `npu-smi info`",
            )
    if found["link"] not in (None, "UP"):
        yield _Fault(
            "link",
            "EI0009",
            f"the link is {found['link']}",
            f"look at cable and optical module: `hccn_tool -i {number} -optical -g`, and at the switch's port",
        )
    yield from _of_address(device, found, partner)
    if found["health"] not in (None, "Success"):
        yield _Fault(
            "health",
            "EI0006",
            f"its network does not reach {partner}: {found['health']}",
            f"look at link, address and gateway of both ends, then `hccn_tool -i {number} -ping -g address {partner}`",
        )
    for address, lost in found["lost"].items():
        yield _Fault(
            "ping",
            "EI0006",
            f"{lost:g} % of the packets to {address} are lost",
            "look at the other device and at the switch between them",
        )
    if found["tls"] not in (None, usual_tls):
        states = {"0": "off", "1": "on"}
        yield _Fault(
            "tls",
            "EI0016",
            f"TLS is {states[found['tls']]}, on most devices it is {states[usual_tls]}",
            f"make it the same on all: `hccn_tool -i {number} -tls -s enable {usual_tls}`",
        )


def _of_address(device, found, partner):
    """What is wrong with address and netmask of one device."""
    number, wanted = device.device_id, device.device_ip
    if "ip" in found["failed"]:
        return
    if found["ip"] is None:
        remedy = f"set it: `hccn_tool -i {number} -ip -s address {wanted} netmask M`"
        yield _Fault("ip", "EI0009", f"it has no address; the table says {wanted}", remedy)
    elif wanted is not None and packed(found["ip"]) not in map(packed, wanted.split(",")):
        yield _Fault(
            "ip",
            "EI0014",
            f"its address is {found['ip']}; the table says {wanted}",
            "build the table anew, or set the address that it says",
        )
    elif partner and not found["gateway"] and _outside(found["ip"], found["netmask"], partner):
        yield _Fault(
            "netmask",
            "EI0006",
            f"{partner} is outside of {found['ip']}/{found['netmask']} and no gateway is set",
            f"set a wider netmask, or a gateway: `hccn_tool -i {number} -gateway -s gateway G`",
        )


def _outside(address, netmask, partner):
    try:
        return ipaddress.ip_address(partner) not in ipaddress.ip_network(f"{address}/{netmask}", strict=False)
    except ValueError:  # no netmask told, or IPv6
        return False
