"""This host as a rank table describes it: its addresses, its NPUs, and its server in a table."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

from hccl_tools.common.language import tr
from hccl_tools.common.numbers import whole_number
from hccl_tools.machine import driver, hccn, programs, system_files
from hccl_tools.table.address import family, is_one_of

LOOPBACK = "127.0.0.1"
_MOST_LOOKED_UP = 256  # names of servers: a name server that does not answer must not delay a launch for minutes


def address() -> str:
    """The address that this host's name resolves to; 127.0.0.1 if that is a loopback address.

    Debian resolves a host's own name to 127.0.1.1, which other hosts cannot reach either.
    """
    import socket  # not at the top: most launches do not ask

    try:
        found = socket.gethostbyname(socket.gethostname())
    except (OSError, UnicodeError):  # UnicodeError: Linux takes names that DNS cannot express
        return LOOPBACK
    return LOOPBACK if found.startswith("127.") else found


def owns(server_id: str) -> bool:
    """Whether `server_id` names this host: an address that can be bound here, or the host's name."""
    import socket

    kind = family(server_id)
    if kind is None:
        return server_id in (socket.gethostname(), socket.gethostname().partition(".")[0], "localhost")
    try:
        with socket.socket(kind, socket.SOCK_DGRAM) as probe:
            probe.bind((server_id, 0))
    except OSError:  # not ours, or a kernel without IPv6
        return False
    return True


def servers_here(
    servers: Sequence[tuple[Sequence[str], Mapping[int, str | None]]],
    conf: str = hccn.DEFAULT_CONF,
    looks_up: bool = True,
) -> list[int]:
    """The positions of those `servers`, (names, {device: device_ip}), that are this host.  names: see view.names_of.

    The names decide.  If none is ours, the addresses of the devices do: in a container the host's own address is not
    visible.  A server without any device_ip is then recognised by what its name stands for, if that can be looked up.
    looks_up: whether a name server may be asked, which can take seconds.
    """
    here = [n for n, (names, _) in enumerate(servers) if any(map(owns, names))]
    if here:
        return here
    answers: dict[tuple[int, ...], Mapping[int, str | None]] = {}  # the servers of a table have the same devices
    here = [n for n, (_, device_ips) in enumerate(servers) if _has_addresses(device_ips, conf, answers)]
    return here or (_by_look_up([names for names, _ in servers]) if looks_up else [])


def _has_addresses(
    device_ips: Mapping[int, str | None], conf: str, answers: dict[tuple[int, ...], Mapping[int, str | None]]
) -> bool:
    wanted = {device: ip for device, ip in device_ips.items() if ip is not None}
    asked = tuple(sorted(wanted))
    if asked not in answers:
        try:
            answers[asked] = hccn.addresses(list(asked), conf)[0] if asked else {}
        except hccn.AddressError:
            answers[asked] = {}
    found = answers[asked]
    return bool(wanted) and all(is_one_of(found.get(device), ip) for device, ip in wanted.items())


def _by_look_up(servers: Sequence[Sequence[str]]) -> list[int]:
    """The positions of those servers whose one name, not an address itself, stands for an address of this host."""
    from hccl_tools.machine import addresses  # only where addresses do not tell

    unknown = {names[0]: n for n, names in enumerate(servers) if len(names) == 1 and family(names[0]) is None}
    if not 0 < len(unknown) <= _MOST_LOOKED_UP:
        return []
    found = addresses.of(unknown)
    return [unknown[name] for name, address in found.items() if address is not None and owns(address)]


def may_be_here(names: Sequence[str], device_ips: Mapping[int, str | None], conf: str = hccn.DEFAULT_CONF) -> bool:
    """Whether it cannot be determined which host a server is: its name cannot be resolved, nor its devices queried.

    So it is with the name of a job as server_id.  For a server that `servers_here` does not take.
    """
    from hccl_tools.machine import addresses  # only where nothing else tells

    if any(family(name) is not None for name in names) or any(addresses.of(names).values()):
        return False
    wanted = [device for device, ip in device_ips.items() if ip is not None]
    try:
        return not wanted or not hccn.addresses(wanted, conf)[0]
    except hccn.AddressError:
        return True


def devices() -> list[int]:
    """The physical ids of the NPUs of this host, sorted: those of /dev, otherwise those that npu-smi names."""
    return nodes() or sorted(_devices_of_npu_smi())


def nodes() -> list[int]:
    """The physical ids of the NPUs in /dev, sorted; a container has only those that were mounted."""
    found = {whole_number(name[len("davinci") :]) for name in os.listdir("/dev") if name.startswith("davinci")}
    return sorted(device for device in found if device is not None)


def gpu_nodes() -> list[int]:
    """The numbers of the GPUs in /dev, sorted; nvidiactl, nvidia-uvm and nvidia-caps are none."""
    found = {whole_number(name[len("nvidia") :]) for name in os.listdir("/dev") if name.startswith("nvidia")}
    return sorted(device for device in found if device is not None)


def _devices_of_npu_smi() -> set[int]:
    program = driver.find(driver.NPU_SMI)
    if program is None:
        return set()
    answer = programs.ask([program, "info", "-m"], 30)
    return set(npu_chips(answer.stdout)) if answer.status == 0 else set()


def npu_chips(text: str) -> dict[int, tuple[int, int]]:
    """{device id: (NPU ID, Chip ID)} of the table that ``npu-smi info -m`` prints.

    The device id is in the column "Chip Phy-ID" (A3 and 950), otherwise in "Chip Logic ID", which is "-" for
    the row of the board's controller.
    """
    rows = [re.split(r" {2,}|\t", line.strip()) for line in text.splitlines() if line.strip()]
    if not rows:
        return {}
    device = "Chip Phy-ID" if "Chip Phy-ID" in rows[0] else "Chip Logic ID"
    if any(name not in rows[0] for name in ("NPU ID", "Chip ID", device)):
        return {}
    columns = [rows[0].index(name) for name in (device, "NPU ID", "Chip ID")]
    found = {}
    for row in rows[1:]:
        if len(row) > max(columns):
            chip, npu, number = (whole_number(row[column]) for column in columns)
            if chip is not None and npu is not None and number is not None:
                found[chip] = npu, number
    return found


_PCI = "/sys/bus/pci/devices"
_HUAWEI = "0x19e5"
_CHIPS = {"0xd801": "910A", "0xd802": "A2", "0xd803": "A3"}


def generation() -> str | None:
    """The chip generation of this host's NPUs by their PCI ids; None without a known NPU."""
    try:
        names = os.listdir(_PCI)
    except OSError:
        return None
    ids = {name: [system_files.read(os.path.join(_PCI, name, what)) for what in ("vendor", "device")] for name in names}
    chips = (_CHIPS.get(device or "") for vendor, device in ids.values() if vendor == _HUAWEI)
    return next(filter(None, chips), None)


def chosen_generation(asked: str | None) -> tuple[str | None, str]:
    """(generation whose rules apply, or None; text for a message) for the --generation in `asked`.

    asked: a generation, "any", or None: then the hardware of this host decides.
    """
    if asked and asked != "any":
        return asked, tr("rules of {chip}", chip=asked)
    found = None if asked else generation()
    return found, tr("rules of {chip}, this host's", chip=found) if found else tr("rules common to all generations")
