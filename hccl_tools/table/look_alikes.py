"""Identifies other JSON files that people pass instead of a rank table, and names what each one is."""

from __future__ import annotations

from hccl_tools.common.documents import JsonObject
from hccl_tools.common.language import marked, tr
from hccl_tools.common.problem import Problem
from hccl_tools.common.words import shown, some

# keys of a rank table at its top, of any format
KNOWN = frozenset(
    ["version", "status", "server_count", "server_list", "super_pod_list", "cluster_list", "rank_count", "rank_list",
     "node_list", "collective_id", "group_count", "group_list", "board_id", "chip_info", "deploy_mode"]
)  # fmt: skip
_RANKS = frozenset(["server_list", "rank_list", "node_list", "group_list"])  # those that list ranks

_MINDIE = marked("a MindIE global rank table")
_DATADIST = marked("an llm-datadist rank table")
_TOPOLOGY = marked("the topology of an Atlas 950 host")
_GIVE = marked("give it to the program that it is for")
FROM_CONFIGMAP = marked(
    "write the table in it into a file: kubectl get configmap NAME -o jsonpath='{.data.hccl\\.json}' >hccl.json"
)
_PART = marked("write that part alone into a file")
BUILD = marked("build the table with hccl_tools/hccl_tools.py")

# A key that tells -> what the file is, and what to do.
_BY_KEY = {
    "server_group_list": (_MINDIE, _GIVE),
    "prefill_device_list": (_DATADIST, _GIVE),
    "decode_device_list": (_DATADIST, _GIVE),
    "edge_list": (_TOPOLOGY, BUILD),
    "peer_list": (_TOPOLOGY, BUILD),
    "zero_optimization": (marked("a DeepSpeed config"), _GIVE),
    "model_type": (marked("the config of a Hugging Face model"), _GIVE),
    "architectures": (marked("the config of a Hugging Face model"), _GIVE),
    "BackendConfig": (marked("the config of a MindIE service"), _GIVE),
    "outcome": (marked("the launch.json of a run"), marked('name the file that its "rank_table" has')),
}

# The same for keys that a table may have in addition to its own: only a file without rank ids is such a one.
_WITHOUT_RANKS = {
    "tor_ip": (
        marked("Volcano's ranktable_tor.json: the switch of each device"),
        marked("the rank table is jobstart_hccl.json or hccl.json, in the same folder"),
    ),
    "topo_file_path": (
        marked("hccl_rootinfo.json: an Atlas 950 host's own description"),
        marked("make the rank table of it: python hccl_tools/hccl_tools.py --generation 950 --root_info FILE"),
    ),
}


def problem(table: object) -> Problem | None:
    """The Problem of a document that is something else than a rank table; None for one that may be one."""
    if not isinstance(table, dict):
        return _of_no_object(table)
    if "apiVersion" in table and "kind" in table:
        return _named(
            tr("an object of Kubernetes ({kind})", kind=shown(table["kind"])), "apiVersion", tr(FROM_CONFIGMAP)
        )
    for key, (what, remedy) in _BY_KEY.items():
        if key in table and _RANKS.isdisjoint(table):
            return _named(tr(what), key, tr(remedy))
    for key, (what, remedy) in _WITHOUT_RANKS.items():
        if _tells(table, key) and not _has_ranks(table):
            return _named(tr(what), key, tr(remedy))
    if set(table) == {"host_ip", "device_ip"}:
        return _named(tr("a whitelist of HCCL"), "device_ip", tr("HCCL_WHITELIST_FILE names it"))
    if table and KNOWN.isdisjoint(table):
        return _of_strangers(table)
    return None


def _of_no_object(table: object) -> Problem | None:
    """For a text or a list that has a rank table in it."""
    if isinstance(table, str) and "{" in table:
        text = tr("this is a text, which may have a rank table in it, and not the table itself")
        return _foreign(text, tr("write the text without its quotes and backslashes into a file"))
    if isinstance(table, list) and table and isinstance(table[0], dict) and not KNOWN.isdisjoint(table[0]):
        return _foreign(tr("the rank table is inside of a list"), tr(_PART))
    return None


def _named(what: str, key: str, remedy: str) -> Problem:
    text = tr('this is {what} (it has "{key}"), which HCCL itself cannot read', what=what, key=key)
    return _foreign(text, remedy)


def _of_strangers(table: JsonObject) -> Problem:
    """For an object without any key of a rank table: its keys, or the one that has the table."""
    for key, value in table.items():
        if (
            isinstance(value, dict)
            and not KNOWN.isdisjoint(value)
            or isinstance(value, str)
            and '"server_list"' in value
        ):
            text = tr("the rank table is inside of {key}", key=shown(key))
            return _foreign(text, tr(_PART))
    keys = some([shown(key) for key in table], 4)
    text = tr("this is JSON, but no rank table: it has {keys}, and no version, status or server_list", keys=keys)
    return _foreign(text, tr("name the file of the rank table, or build it with hccl_tools/hccl_tools.py"))


def _foreign(text: str, remedy: str) -> Problem:
    return Problem("unsupported-format", "", text, remedy)


def _tells(table: JsonObject, key: str) -> bool:
    """Whether the table has the key, or the first entry of one of its lists, or of a list in such an entry."""
    values = [table]
    for _ in range(2):
        lists = (value for entry in values for value in entry.values() if isinstance(value, list))
        values += [each[0] for each in lists if each and isinstance(each[0], dict)]
    return any(key in entry for entry in values)


def _has_ranks(table: JsonObject) -> bool:
    """Whether a device has a rank_id."""
    lists = [value for value in table.values() if isinstance(value, list)]
    entries = [entry for each in lists for entry in each if isinstance(entry, dict)]
    inside = (value for entry in entries for value in entry.values() if isinstance(value, list))
    return any("rank_id" in entry for entry in entries) or any(
        isinstance(entry, dict) and "rank_id" in entry for each in inside for entry in each
    )
