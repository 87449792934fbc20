"""This host as a rank table sees it: its addresses and its NPUs."""

import os
import re
import socket

from hccl_tools import programs, rules

LOOPBACK = "127.0.0.1"


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
    kind = rules.family(server_id)
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
    import subprocess  # 5 ms that a host with /dev/davinci* need not spend

    try:
        answer = subprocess.run(["npu-smi", "info", "-m"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return set()
    return parse_npu_smi_map(answer.stdout) if answer.returncode == 0 else set()


def parse_npu_smi_map(text):
    """The device ids in the table that ``npu-smi info -m`` prints, as a set of int.

    A3 and 950 have a column "Chip Phy-ID", which counts; elsewhere it is "Chip Logic ID", which is
    "-" for the row of the board's controller.
    """
    rows = [re.split(r" {2,}|\t", line.strip()) for line in text.splitlines() if line.strip()]
    if not rows:
        return set()
    for name in ("Chip Phy-ID", "Chip Logic ID"):
        if name in rows[0]:
            column = rows[0].index(name)
            return {int(row[column]) for row in rows[1:] if len(row) > column and row[column].isdigit()}
    return set()


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


def _id_of(name, what):
    try:
        with open(os.path.join(_PCI, name, what), encoding="ascii") as file:
            return file.read(16).strip()
    except (OSError, UnicodeDecodeError):
        return None
