"""Converts a rank table of a legacy format, as ModelArts and Volcano write it, to version 1.0."""

from __future__ import annotations

from hccl_tools.check import verdict
from hccl_tools.common.documents import JsonObject
from hccl_tools.common.language import tr
from hccl_tools.common.problem import errors
from hccl_tools.common.words import one_line
from hccl_tools.table import formats
from hccl_tools.table.view import View

LEGACY = ("legacy_lab", "legacy_cloud")
NAME = "hccl_of_legacy.json"  # of the table in the folder of a run


def converted(document: object) -> JsonObject | None:
    """The version 1.0 table of a valid table in a legacy format; None for any other table.

    The ranks stay what they are.  The cloud format has none: HCCL numbers its devices by the dictionary order of
    server_id, then by device_id, and so does this.
    """
    name, _ = formats.detect(document)
    if name not in LEGACY or not isinstance(document, dict) or errors(verdict.check(document)):
        return None
    view = View(document, name)
    servers = sorted(view.servers, key=lambda server: server.name or "")
    ranks = view.rank_numbers
    if name == "legacy_cloud":
        by_id = [sorted(server.devices, key=lambda n: view.id_numbers[n] or 0) for server in servers]
        ranks = [None] * len(view.devices)
        for rank, device in enumerate(device for devices in by_id for device in devices):
            ranks[device] = rank
    blocks = [(sorted(server.devices, key=lambda n: ranks[n] or 0), server.name) for server in servers]
    entries = []
    for devices, server_id in sorted(blocks, key=lambda block: ranks[block[0][0]] or 0):
        listed = [_device(view.ids[n], view.ips[n], ranks[n]) for n in devices]
        entries.append({"server_id": server_id, "device": listed, "host_nic_ip": "reserve"})
    return {"version": "1.0", "server_count": str(len(entries)), "server_list": entries, "status": "completed"}


def _device(device_id: str | None, ip: str | None, rank: int | None) -> JsonObject:
    entry = {"device_id": device_id, "device_ip": ip, "rank_id": str(rank)}
    return {key: value for key, value in entry.items() if value}


def remark(path: str, written: str) -> str:
    """A note for the user about such a table that is written to `written`; empty: it is not written."""
    shown = one_line(path)
    if not written:
        return tr("{path} is of a legacy format; read as version 1.0", path=shown)
    return tr(
        "{path} is of a legacy format; written as version 1.0 to {written}", path=shown, written=one_line(written)
    )
