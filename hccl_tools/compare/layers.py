"""Treats the networks of a version 2.0 rank as separate keys, so that a difference names its layer."""

from __future__ import annotations

from hccl_tools.common.documents import JsonObject

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

PREFIX = "net_layer "  # of the keys below
_USUAL = {"plane_id": "0", "net_attr": ""}  # what a key means that is left out


def flat(device: JsonObject) -> JsonObject:
    """The entry with keys such as "net_layer 2 addr" in the place of its level_list."""
    found = {key: value for key, value in device.items() if key != "level_list"}
    for level in device.get("level_list", ()):
        layer = f"{PREFIX}{int(level['net_layer'])}"
        entries = level["rank_addr_list"]
        rest = {"net_attr": _USUAL["net_attr"], **level}
        found.update({f"{layer} {key}": rest[key] for key in rest if key not in ("net_layer", "rank_addr_list")})
        keys = dict.fromkeys(key for entry in entries for key in ("plane_id", *entry))
        found.update({f"{layer} {key}": _column(entries, key) for key in keys})
        if not entries:
            found[f"{layer} addr"] = []
    return found


def _column(entries: Sequence[JsonObject], key: str) -> Any:
    """The values of a key in all entries; of a single entry its value."""
    values = [entry.get(key, _USUAL.get(key)) for entry in entries]
    return values[0] if len(values) == 1 else values
