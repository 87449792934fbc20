"""Rules on device ids and ports."""

from hccl_tools.check.rules.registry import LISTED, WITH_DEVICES, rule
from hccl_tools.check.rules.repeated import repeated
from hccl_tools.common.problem import WARNING
from hccl_tools.table.view import number, texts

MAX_DEVICE_ID = 64


@rule("duplicate-device", WITH_DEVICES)
def device_listed_twice(view):
    """A server lists one device_id twice.

    Why: HCCL: "device id repeat for one server. Please check ranktable".
    Mend: list each device of a server once.
    """
    for server in view.servers:
        ids = [view.ids[device] for device in server.devices]
        yield from repeated(
            ids,
            lambda index, server=server: view.place(server.devices[index]) + "/device_id",
            "device_id",
            "list each device of a server once",
        )


@rule("bad-value", LISTED)
def device_id_too_large(view):
    """device_id is above 64.

    Why: HCCL's newest parser takes device ids below 65.
    Mend: write the physical id that npu-smi shows.
    """
    known = set(view.id_numbers) - {None}
    for device, number_ in enumerate(view.id_numbers) if known and max(known) > MAX_DEVICE_ID else ():
        if number_ is not None and number_ > MAX_DEVICE_ID:
            text = f"device_id {number_} is too large"
            yield view.place(device) + "/device_id", text, f"device ids run from 0 to {MAX_DEVICE_ID}"


_PORTS = ("device_port", "host_port", "backup_device_port")


@rule("bad-value", LISTED)
def port_impossible(view):
    """A port is 0 or above 65535.

    Why: HCCL's manual: ports are 1 to 65535.
    Mend: write a free port.
    """
    for place, key, port in _ports(view):
        if not 1 <= port <= 65535:
            yield place, f"{key} {port} is no port", "ports run from 1 to 65535"


@rule("low-port", LISTED, WARNING)
def port_reserved(view):
    """A port is below 1024.

    Why: HCCL's manual: avoid 1 to 1023, the system's own.
    Mend: take a port from 1024 on, such as 16666.
    """
    for place, key, port in _ports(view):
        if 1 <= port < 1024:
            yield place, f"{key} {port} belongs to the system", "take a port from 1024 to 65535"


def _ports(view):
    for device, entry in enumerate(view.devices):
        if len(entry) > 3:  # most devices have an id, an address and a rank, and no port
            for key in _PORTS:
                port = number(entry.get(key))
                if port is not None:
                    yield f"{view.place(device)}/{key}", key, port


@rule("port-clash", LISTED)
def host_port_used_twice(view):
    """Two devices of a server have one host_port.

    Why: HCCL's manual: host_port is distinct within a server, since every rank listens on its own.
    Mend: give each device of the server its own host_port.
    """
    ports = texts(view.devices, "host_port")
    for server in view.servers if any(ports) else ():
        yield from repeated(
            [number(ports[device]) for device in server.devices],
            lambda index, server=server: view.place(server.devices[index]) + "/host_port",
            "host_port",
            "give each device of the server its own",
        )
