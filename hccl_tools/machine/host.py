"""This host as a rank table sees it: its addresses and its NPUs."""

import os
import re
import socket

from hccl_tools.machine import programs
from hccl_tools.table.address import family

LOOPBACK = "127.0.0.1"

_SMALL = re.compile("[0-9]{1,6}")  # a number that can be an id


def address():
    """The address that this host's name stands for, 127.0.0.1 if the name stands for no other.

    Debian gives a host's own name to 127.0.1.1, which is no more an address than 127.0.0.1 is.
    """
    try:
        found = socket.gethostbyname(socket.gethostname())
    except (OSError, UnicodeError):  # UnicodeError: Linux takes names that DNS cannot express
        return LOOPBACK
    return LOOPBACK if found.startswith("127.") else found


def owns(server_id):
    """Whether `server_id` names this host: an address that can be bound here, or the host's name."""
    kind = family(server_id)
    if kind is None:
        return server_id in (socket.gethostname(), socket.gethostname().partition(".")[0], "localhost")
    try:
        with socket.socket(kind, socket.SOCK_DGRAM) as probe:
            probe.bind((server_id, 0))
    except OSError:  # not ours, or a kernel without IPv6
        return False
    return True


def devices():
    """The physical ids of the NPUs of this host, sorted; empty where there is none."""
    names = [name[len("davinci") :] for name in os.listdir("/dev") if name.startswith("davinci")]
    return sorted({int(name) for name in names if name.isdigit()} or _devices_of_npu_smi())


def _devices_of_npu_smi():
    if not programs.on_path("npu-smi"):
        return set()
    answer = programs.ask(["npu-smi", "info", "-m"], 30)
    return parse_npu_smi_map(answer.stdout) if answer.status == 0 else set()


def parse_npu_smi_map(text):
    """The device ids in the table that ``npu-smi info -m`` prints, as a set of int."""
    return set(npu_chips(text))


def npu_chips(text):
    """{device id: (NPU ID, Chip ID)} of the table that ``npu-smi info -m`` prints, all int.

    A3 and 950 have a column "Chip Phy-ID", which counts; elsewhere it is "Chip Logic ID", which is
    "-" for the row of the board's controller.
    """
    rows = [re.split(r" {2,}|\t", line.strip()) for line in text.splitlines() if line.strip()]
    if not rows:
        return {}
    device = "Chip Phy-ID" if "Chip Phy-ID" in rows[0] else "Chip Logic ID"
    if any(name not in rows[0] for name in ("NPU ID", "Chip ID", device)):
        return {}
    columns = [rows[0].index(name) for name in (device, "NPU ID", "Chip ID")]
    cells = [[row[column] for column in columns] for row in rows[1:] if len(row) > max(columns)]
    return {int(cell[0]): (int(cell[1]), int(cell[2])) for cell in cells if all(map(_SMALL.fullmatch, cell))}


_PCI = "/sys/bus/pci/devices"
_HUAWEI = "0x19e5"
_CHIPS = {"0xd801": "910A", "0xd802": "A2", "0xd803": "A3"}


def generation():
    """The chip generation of this host's NPUs by their PCI ids, None where there is none that is known."""
    try:
        names = os.listdir(_PCI)
    except OSError:
        return None
    for name in names:
        if _id_of(name, "vendor") == _HUAWEI and _id_of(name, "device") in _CHIPS:
            return _CHIPS[_id_of(name, "device")]
    return None


def chosen_generation(asked):
    """(generation whose rules hold, or None; words for a message) for the --generation that was `asked`.

    asked: a generation, "any", or None: then the hardware of this host decides.
    """
    if asked and asked != "any":
        return asked, f"rules of {asked}"
    found = None if asked else generation()
    return found, f"rules of {found}, this host's" if found else "rules common to all generations"


def _id_of(name, what):
    try:
        with open(os.path.join(_PCI, name, what), encoding="ascii") as file:
            return file.read(16).strip()
    except (OSError, UnicodeDecodeError):
        return None
