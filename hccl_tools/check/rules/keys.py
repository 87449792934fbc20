"""Rules for misspelt keys: names that are almost a key that HCCL reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from hccl_tools.check.rules.registry import ALL, Findings, rule
from hccl_tools.common.documents import JsonObject
from hccl_tools.common.language import tr
from hccl_tools.common.problem import WARNING, pointer
from hccl_tools.common.words import shown
from hccl_tools.table.view import View, listed

_TABLE = "version status server_count server_list super_pod_list cluster_list"
_SERVER = "server_id device host_ip host_nic_ip container_ip server_ip pod_ip hardware_type"
_DEVICE = "device_id device_ip rank_id device_port host_port super_device_id backup_device_ip backup_device_port"
_LEGACY_TABLE = (
    "status group_count group_list board_id chip_info deploy_mode "
    "para_plane_nic_location para_plane_nic_name para_plane_nic_num"
)
_LEGACY_GROUP = "group_name device_num server_num device_count instance_count instance_list"
_LEVEL = "net_layer net_instance_id net_type net_attr rank_addr_list control_plane"

# kind of object -> the keys it may have that HCCL or another program reads
_KNOWN = {
    name: frozenset(keys.split())
    for name, keys in {
        "table": _TABLE + " IsMindIEEPJob",
        "server": _SERVER,
        "device": _DEVICE + " dpu_ip numa_id",
        "legacy table": _LEGACY_TABLE,
        "group": _LEGACY_GROUP,
        "instance": "pod_name server_id devices rank_id",
        "table of 1.1": "version status collective_id node_list mode heterog_sub_version",
        "node": "node_addr ranks",
        "rank of 1.1": "rank_id device_id rank_ip port sdid bind_device_id",
        "table of 2.0": "version status rank_count rank_list detour topo_file_path",
        "rank": "rank_id local_id device_id device_port host_port level_list replaced_local_id control_plane",
        "level": _LEVEL,
        "address": "addr_type addr ports plane_id backup_addr",
    }.items()
}


@rule("misspelt-key", ALL, WARNING)
def key_almost_known(view: View) -> Findings:
    """An unknown key differs slightly from a key that HCCL reads, and that key is missing.

    Why: HCCL ignores unknown keys: a misspelt key has the same effect as a missing one.
    Remedy: write the key that you mean.
    """
    said = set()
    for kind, place, entry in _entries(view):
        known = _KNOWN[kind]
        if known.issuperset(entry):
            continue
        for key in entry:
            if key not in known and (kind, key) not in said:
                said.add((kind, key))  # a program writes the same mistake 100,000 times
                near = _near(key, known)
                if near and near not in entry:
                    yield (
                        (place() if callable(place) else place) + pointer(key),
                        tr("no such key: {key}", key=shown(key)),
                        tr('did you mean "{near}"?', near=near),
                    )


def _near(key: str, known: frozenset[str]) -> str | None:
    from difflib import get_close_matches  # 2 ms that a good table need not spend

    near = get_close_matches(key[:64].lower(), known, n=1, cutoff=0.8)
    return near[0] if near else None


def _entries(view: View) -> Iterator[tuple[str, str | Callable[[], str], JsonObject]]:
    """(kind, place, object) of everything in the table whose keys are known; a device's place is built on demand."""
    if view.format == "v2.0":
        yield from _entries_of_rank_list(view.table)
        return
    legacy, mixed = view.format.startswith("legacy"), view.format == "v1.1"
    yield "legacy table" if legacy else "table of 1.1" if mixed else "table", "", view.table
    for place, group in listed(view.table, "group_list") if legacy else ():
        yield "group", place, group
    kind = "instance" if legacy else "node" if mixed else "server"
    for server in view.servers:
        yield kind, server.pointer, server.entry
    kind = "rank of 1.1" if mixed else "device"
    if all(map(_KNOWN[kind].issuperset, view.devices)):  # the usual case
        return
    for index, device in enumerate(view.devices):
        yield kind, partial(view.place, index), device


def _entries_of_rank_list(table: JsonObject) -> Iterator[tuple[str, str, JsonObject]]:
    yield "table of 2.0", "", table
    for place, rank in listed(table, "rank_list"):
        yield "rank", place, rank
        for level_place, level in listed(rank, "level_list", place):
            yield "level", level_place, level
            for address_place, address in listed(level, "rank_addr_list", level_place):
                yield "address", address_place, address
