"""Reads a 950 host's description of its own devices: /etc/hccl_rootinfo.json, which HCCL also reads.

It has the entries of a version 2.0 rank table, for all devices of the host and without ranks:

    {"version": "2.0", "topo_file_path": "...", "rank_count": 8, "rank_list": [{"device_id": 0, "local_id": 0, ...}]}
"""

from __future__ import annotations

from collections.abc import Sequence

from hccl_tools.common.documents import JsonObject
from hccl_tools.common.language import tr
from hccl_tools.common.refusal import BAD, Refusal, faulty
from hccl_tools.common.words import clauses, named, one_line, some
from hccl_tools.table import rank_table
from hccl_tools.table.view import objects

DEFAULT = "/etc/hccl_rootinfo.json"
_KEPT = ("local_id", "device_id", "level_list", "control_plane", "device_port", "host_port", "replaced_local_id")


class RootInfo:
    """The devices of a host: the entry of each by its physical number, in the file's order."""

    def __init__(self, path: str, entries: dict[int, JsonObject]) -> None:
        self.path = path
        self.entries = entries

    def of(self, devices: Sequence[int]) -> list[JsonObject]:
        """The entries of these devices, in this order, as a rank table has them.  Raises Refusal."""
        if missing := [device for device in devices if device not in self.entries]:
            raise faulty(
                "{path} does not describe {devices}, only {others}; choose from those with --devices",
                path=one_line(self.path),
                devices=named("device", missing),
                others=named("device", self.entries),
            )
        return [{key: entry[key] for key in _KEPT if key in entry} for entry in map(self.entries.__getitem__, devices)]


def read(path: str) -> RootInfo:
    """The devices that the file describes.  Raises Refusal."""
    shown = one_line(path)
    try:
        document, problems = rank_table.read(path)
    except rank_table.NotReadable as error:
        text = tr("{error}: it describes the devices of a 950 host, and the table is made of it", error=error)
        remedy = tr("mount it into the container, or name such a file: --root_info FILE")
        raise Refusal(BAD, clauses(text, remedy)) from error
    if problems:
        raise Refusal(BAD, *(problem.line(shown) for problem in problems))
    entries: dict[int, JsonObject] = {}
    for place, entry in objects(document, "rank_list"):
        number = entry.get("device_id")
        if type(number) is not int or number in entries:
            text = tr("device_id is not a number, or repeats that of another entry")
            raise Refusal(BAD, f"{shown}: /rank_list/{place}: {text}")
        entries[number] = entry
    if not entries:
        keys = some([one_line(key) for key in document], 4) if isinstance(document, dict) else "-"
        text = tr("{path} has no rank_list with the devices of this host, only: {keys}", path=shown, keys=keys)
        raise Refusal(
            BAD, clauses(text, tr("let the driver or MindCluster write it again, or name another: --root_info FILE"))
        )
    return RootInfo(path, entries)
