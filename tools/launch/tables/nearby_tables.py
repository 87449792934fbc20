"""Finds rank tables in the current folder and next to the program, and decides which one a launch takes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from hccl_tools.common.language import tr
from hccl_tools.common.words import one_line, some
from hccl_tools.machine import hccn
from hccl_tools.table.address import is_one_of
from tools.launch.request import Request
from tools.launch.tables import table_fit
from tools.launch.tables.table_fit import Fit

_NAME = re.compile(r"hccl_|.*rank_?table", re.IGNORECASE)  # of a file that is meant as a rank table
_KEY = b'"server_list"'  # is in every rank table that a launch takes
_MOST_FILES = 100  # of either kind of name in a folder: one with more of them has data in it
_MOST_NAMED = 5  # tables in the line about those that are not taken


def find(request: Request, devices: list[int], beside: str | None) -> tuple[str, Fit | None, list[str]]:
    """(path, Fit of the first table that fits, or None; remarks).  `beside`: the program's file."""
    taken, fit, others = "", None, []
    addresses = _Addresses(request, devices)
    most = _most_bytes(devices)
    for path in _candidates(_folders(beside), most):
        brief = tr("more than {number} bytes", number=most)
        if not os.path.isfile(path) or os.path.getsize(path) <= most:
            found = table_fit.examine(path, devices, request.chip)
            brief = found.brief or addresses.contradict(found)
            if not brief and not fit:
                taken, fit = path, found
                continue
        others.append(f"{one_line(path)} ({brief or tr('also fits')})")
    return taken, fit, _about(others)


def _about(others: list[str]) -> list[str]:
    """One line, however many there are."""
    if not others:
        return []
    text = tr(
        "rank tables not used: {others}; --rank_table FILE selects one, or reports what is wrong with it",
        others=some(others, _MOST_NAMED),
    )
    return [text]


def _folders(beside: str | None) -> list[str]:
    """The current folder, and that of the program; both as a user would type them."""
    there = os.path.dirname(beside or "")
    return [""] if not there or os.path.samefile(there, ".") else ["", there]


def _most_bytes(devices: list[int]) -> int:
    """A table of so few devices has fewer.  A larger file is not read to its end: that would delay every launch."""
    return (1 << 16) + (1 << 12) * len(devices)


def _candidates(folders: list[str], most: int) -> Iterator[str]:
    """The paths of the rank tables in `folders`; in each those named by hccl_tools.py come first."""
    for folder in folders:
        names = _names(folder or ".")
        meant = [name for name in names if _NAME.match(name)]
        meant.sort(key=lambda name: not name.startswith("hccl_"))
        yield from (os.path.join(folder, name) for name in meant[:_MOST_FILES])
        others = [os.path.join(folder, name) for name in names if not _NAME.match(name)]
        yield from (path for path in others[:_MOST_FILES] if _is_table(path, most))


def _names(folder: str) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if name.endswith(".json"))
    except OSError:  # a folder whose files may be used, but not listed
        return []


def _is_table(path: str, most: int) -> bool:
    if not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as file:
            return _KEY in file.read(most)
    except OSError:
        return False


class _Addresses:
    """The addresses that this host's devices have.  They are asked for once, and only if a table fits otherwise."""

    def __init__(self, request: Request, devices: list[int]) -> None:
        self.conf = request.hccn_conf or hccn.DEFAULT_CONF
        self.devices = devices
        self.found: dict[int, str | None] | None = {} if request.device_target == "CPU" else None

    def contradict(self, fit: Fit) -> str:
        """Why the table is another host's: an example from a document, or a copy.  Empty if there is no sign of it."""
        if self.found is None:
            try:
                self.found, _ = hccn.addresses(self.devices, self.conf)
            except hccn.AddressError:  # nothing to compare with
                self.found = {}
        for device, ip in fit.device_ips.items():
            if ip is not None and self.found.get(device) is not None and not is_one_of(self.found[device], ip):
                return tr(
                    "device {device} has {address}, not {other}",
                    device=device,
                    address=self.found[device],
                    other=one_line(ip),
                )
        return ""
