"""This host as a rank table describes it: its addresses, its NPUs, and which server of a table it is."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

from hccl_tools.common.language import marked, tr
from hccl_tools.common.numbers import whole_number
from hccl_tools.machine import hccn, programs
from hccl_tools.table.address import family, is_one_of

LOOPBACK = "127.0.0.1"

NO_NPU_SMI = marked("npu-smi is not on PATH (it is in /usr/local/bin or /usr/local/sbin of a host)")


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


def is_this_host(server_id: str | None, device_ips: Mapping[int, str | None], conf: str = hccn.DEFAULT_CONF) -> bool:
    """Whether this host is the server of a rank table; see `servers_here`."""
    return bool(servers_here([(server_id, device_ips)], conf))


def servers_here(
    servers: Sequence[tuple[str | None, Mapping[int, str | None]]], conf: str = hccn.DEFAULT_CONF
) -> list[int]:
    """The positions of those `servers`, (server_id, {device: device_ip}), that are this host.

    The server_id decides.  If no server_id is ours, the addresses of the devices do: in a container the
    host's own address is not visible.  A server without any device_ip is then not recognised.
    """
    named = [n for n, (server_id, _) in enumerate(servers) if server_id is not None and owns(server_id)]
    return named or [n for n, (_, device_ips) in enumerate(servers) if _has_addresses(device_ips, conf)]


def _has_addresses(device_ips: Mapping[int, str | None], conf: str) -> bool:
    wanted = {device: ip for device, ip in device_ips.items() if ip is not None}
    try:
        found, _ = hccn.addresses(list(wanted), conf) if wanted else ({}, "")
    except hccn.AddressError:
        return False
    return bool(wanted) and all(is_one_of(found[device], ip) for device, ip in wanted.items())


def devices() -> list[int]:
    """The physical ids of the NPUs of this host, sorted."""
    found = {whole_number(name[len("davinci") :]) for name in os.listdir("/dev") if name.startswith("davinci")}
    return sorted({device for device in found if device is not None} or _devices_of_npu_smi())


def _devices_of_npu_smi() -> set[int]:
    if not programs.on_path("npu-smi"):
        return set()
    answer = programs.ask(["npu-smi", "info", "-m"], 30)
    return set(npu_chips(answer.stdout)) if answer.status == 0 else set()


def npu_chips(text: str) -> dict[int, tuple[int, int]]:
    """{device id: (NPU ID, Chip ID)} of the table that ``npu-smi info -m`` prints.

    The device id is in the column "Chip Phy-ID" (A3 and 950), else in "Chip Logic ID", which is "-" for
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
    chips = (_CHIPS.get(_id_of(name, "device")) for name in names if _id_of(name, "vendor") == _HUAWEI)
    return next(filter(None, chips), None)


def chosen_generation(asked: str | None) -> tuple[str | None, str]:
    """(generation whose rules apply, or None; text for a message) for the --generation in `asked`.

    asked: a generation, "any", or None: then the hardware of this host decides.
    """
    if asked and asked != "any":
        return asked, tr("rules of {chip}", chip=asked)
    found = None if asked else generation()
    return found, tr("rules of {chip}, this host's", chip=found) if found else tr("rules common to all generations")


def _id_of(name: str, what: str) -> str:
    try:
        with open(os.path.join(_PCI, name, what), encoding="ascii") as file:
            return file.read(16).strip()
    except (OSError, UnicodeDecodeError):
        return ""
