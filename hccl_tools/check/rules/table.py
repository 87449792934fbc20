"""Rules for the whole table: its status and its counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain

from hccl_tools.check.rules.registry import ALL, LISTED, Findings, rule
from hccl_tools.common.documents import JsonObject
from hccl_tools.common.language import tr
from hccl_tools.common.problem import WARNING, pointer
from hccl_tools.common.words import shown
from hccl_tools.table.view import View, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

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


@rule("bad-status", ALL)
def status_not_completed(view: View) -> Findings:
    """status is not "completed".

    Why: HCCL reads a table with another status again every second for 1,800 s; users see a hang.
    Remedy: write "completed" once all devices are listed.
    """
    status = view.table.get("status")
    if isinstance(status, str) and status != "completed":
        yield "/status", tr("status is {status}; HCCL would wait half an hour for it to change", status=shown(status))


@rule("wrong-version", ("v1.0",), WARNING)
def super_pods_in_version_1_0(view: View) -> Findings:
    """A table of version 1.0 has super_pod_list.

    Why: HCCL reads super pods in version 1.2 only (GetSuperPodList); in 1.0 only the network joins the servers.
    Remedy: write "1.2" if the servers are in A3 super pods, else remove super_pod_list.
    """
    if "super_pod_list" in view.table:
        yield "/version", tr("version is 1.0, in which HCCL does not read super_pod_list")


@rule("unprintable-text", ALL)
def text_does_not_print(view: View) -> Findings:
    """A text has an unprintable character: a control character, a line break, or a change of the text direction.

    Why: such a text looks different from its content, and can control the terminal that shows it. HCCL reads it only up
    to NUL.
    Remedy: write printable characters, without escapes such as \\u0000.
    """
    if not _all_print(view.table):
        for place, text in _texts(view.table):
            strange = next((c for c in text if not c.isprintable()), None)
            if strange:
                yield place, tr("{text} has the character U+{number:04X}", text=shown(text), number=ord(strange))


def _all_print(table: object) -> bool:
    """Whether all texts print.  It takes all values of one depth at once, which Python's built-in functions process."""
    values: list[Any] = [table]
    while values:
        kinds = {kind: values for kind in set(map(type, values))}
        if len(kinds) > 1:
            kinds = {kind: [value for value in values if type(value) is kind] for kind in kinds}
        if not "".join(kinds.get(str, [])).isprintable():
            return False
        values = [
            *chain.from_iterable(map(dict.values, kinds.get(dict, []))),
            *chain.from_iterable(kinds.get(list, [])),
        ]
    return True


def _texts(value: object, place: str = "") -> Iterator[tuple[str, str]]:
    """(JSON pointer, text) of every text in `value`."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, (dict, list)):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _texts(each, place + pointer(key))


@rule("count-mismatch", LISTED)
def server_count_wrong(view: View) -> Findings:
    """server_count is not the number of entries in server_list.

    Why: HCCL's manual and parser (EI0014).
    Remedy: write the number of servers, in quotes.
    """
    yield from wrong_count(view.table, "server_count", "server_list")


def wrong_count(parent: JsonObject, count_key: str, list_key: str, base: str = "") -> Findings:
    """What a rule yields when the text parent[count_key] is not the length of parent[list_key]."""
    count, listed = parent.get(count_key), parent.get(list_key)
    if isinstance(count, str) and isinstance(listed, list) and count != str(len(listed)):
        text = tr(
            "{count_key} is {count} but {list_key} has {listed}",
            count_key=count_key,
            count=shown(count),
            list_key=list_key,
            listed=len(listed),
        )
        yield f"{base}/{count_key}", text, f'write "{len(listed)}"'


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
