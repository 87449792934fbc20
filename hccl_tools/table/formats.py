"""Detects the format of a rank table from its content, and files that only look like one."""

from __future__ import annotations

from hccl_tools.common.documents import JsonObject
from hccl_tools.common.language import marked, tr
from hccl_tools.common.problem import Problem
from hccl_tools.common.words import clauses, shown

# name -> words for a message; the schema of each is schemas/rank_table_<name>.schema.json
FORMATS = {
    "v1.0": marked("version 1.0"),
    "cross_cluster": marked("version 1.0 across clusters"),
    "v1.1": marked("version 1.1 (heterogeneous)"),
    "v1.2": marked("version 1.2 (A3 super pod)"),
    "v2.0": marked("version 2.0 (Ascend 950)"),
    "legacy_lab": marked("the legacy lab format"),
    "legacy_cloud": marked("the legacy cloud format"),
}

_BY_VERSION = {"1.0": "v1.0", "1.1": "v1.1", "1.2": "v1.2", "2.0": "v2.0"}

_USUAL = frozenset(("version", "status", "server_count", "server_list", "super_pod_list"))
_WITH_DEVICES = ("device", "ranks", "instance_list", "device_id")  # of an entry of such a list

# key of the table -> format, for tables whose version does not tell it
_BY_KEY = {"rank_list": "v2.0", "node_list": "v1.1", "super_pod_list": "v1.2", "cluster_list": "cross_cluster"}

# format -> the key of its servers or ranks
_LISTS = {
    "v1.0": "server_list",
    "cross_cluster": "server_list",
    "v1.1": "node_list",
    "v1.2": "server_list",
    "v2.0": "rank_list",
    "legacy_cloud": "group_list",
    "legacy_lab": "group_list",
}


def detect(table: object) -> tuple[str, Problem | None]:
    """(name of the format, None), or ("", the Problem that HCCL reads no such format).

    HCCL chooses by version (cann-hccl config.cc, CfgGetClusterInfo) and reads a table without version as
    the legacy kind.  A table whose version is missing or not a text gets the format of its shape, so
    that everything else about it can be judged.
    """
    if _may_be_another(table):
        from hccl_tools.table import look_alikes  # only another file needs it

        foreign = look_alikes.problem(table) or _not_filled_in(table)
        if foreign:
            return "", foreign
    if not isinstance(table, dict):
        return "v1.0", None
    version = table.get("version")
    if isinstance(version, str):
        return _of_version(table, version)
    if "version" not in table and "group_list" in table:
        return "legacy_lab" if "deploy_mode" in table else "legacy_cloud", None
    return _shape(table), None


def _of_version(table: JsonObject, version: str) -> tuple[str, Problem | None]:
    name = "cross_cluster" if version == "1.0" and "cluster_list" in table else _BY_VERSION.get(version, "")
    shape = _shape(table)
    wanted, found = _LISTS.get(name), _LISTS[shape]
    if name and (wanted in table or found == wanted or found not in table):
        return name, None
    if name:
        text = tr(
            "version is {version}, whose tables have {wanted}, but this one has {found}, as {shape} has",
            version=shown(version),
            wanted=wanted,
            found=found,
            shape=tr(FORMATS[shape]),
        )
    else:
        text = tr("version {version} is not one that HCCL reads (1.0, 1.1, 1.2, 2.0)", version=shown(version))
    return "", Problem("bad-version", "/version", text, _right_version(shape, name))


def untyped_version(table: JsonObject) -> Problem | None:
    """The Problem of a version that is not a text, such as 1.0 without quotes; None where it is one, or missing."""
    if isinstance(table.get("version", ""), str):
        return None
    text = tr("version {version} is not a text", version=shown(table["version"]))
    return Problem("wrong-type", "/version", text, _right_version(_shape(table), ""))


def _right_version(shape: str, name: str) -> str:
    """What to write for the version of a table of this shape; name: the format of what is written, "" for none."""
    if shape.startswith("legacy"):
        return tr("remove the version: the legacy formats have none")
    meant = {"cross_cluster": "1.0"}.get(shape, shape[1:])
    remedy = tr('write "{meant}", which the rest of the table looks like', meant=meant)
    if name == "v2.0":
        remedy = clauses(remedy, tr("an Atlas 950 reads version 2.0 only, a table with rank_list"))
    return remedy


def _shape(table: JsonObject) -> str:
    """The format that a table looks like, whatever its version is."""
    for key, name in _BY_KEY.items():
        if key in table:
            return name
    if "group_list" in table and "server_list" not in table:
        return "legacy_lab" if "deploy_mode" in table else "legacy_cloud"
    return "v1.0"


def _may_be_another(table: object) -> bool:
    """Whether a closer look is needed: the first rank of a table with the usual keys states that it is one."""
    if not isinstance(table, dict) or not _USUAL.issuperset(table):
        return True
    servers = table.get("server_list")
    first = servers[0] if isinstance(servers, list) and servers else None
    devices = first.get("device") if isinstance(first, dict) else None
    device = devices[0] if isinstance(devices, list) and devices else None
    return not (isinstance(device, dict) and "rank_id" in device)


def _not_filled_in(table: object) -> Problem | None:
    """The Problem of a table that an operator has begun: it has a status, and no devices yet."""
    if not isinstance(table, dict) or not isinstance(status := table.get("status"), str) or status == "completed":
        return None
    entries = [entry for key in _LISTS.values() if isinstance(listed := table.get(key), list) for entry in listed]
    if any(isinstance(entry, dict) and any(map(entry.get, _WITH_DEVICES)) for entry in entries):
        return None
    text = tr(
        "status is {status}: the operator has not filled in this table, which has no devices yet", status=shown(status)
    )
    remedy = tr('wait until status is "completed" (look at the job: kubectl get pods -o wide); run_pod.sh waits for it')
    return Problem("bad-status", "/status", text, remedy)
