"""Finds the format of a rank table from its content, and files that only look like one."""

from __future__ import annotations

from hccl_tools.common.documents import JsonObject
from hccl_tools.common.language import marked, tr
from hccl_tools.common.problem import Problem
from hccl_tools.common.words import shown

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

# key of the table -> format, for tables whose version does not tell it
_BY_KEY = {"rank_list": "v2.0", "node_list": "v1.1", "super_pod_list": "v1.2", "cluster_list": "cross_cluster"}

_MINDIE = marked("a MindIE global rank table")
_DATADIST = marked("an llm-datadist rank table")
_LOOK_ALIKES = {
    "server_group_list": _MINDIE,
    "prefill_device_list": _DATADIST,
    "decode_device_list": _DATADIST,
}


def detect(table: object) -> tuple[str, Problem | None]:
    """(name of the format, None), or ("", the Problem that HCCL reads no such format).

    HCCL chooses by version (cann-hccl config.cc, CfgGetClusterInfo) and reads a table without version as
    the legacy kind.  A table whose version is missing or not a text gets the format of its shape, so
    that everything else about it can be judged.
    """
    if not isinstance(table, dict):
        return "v1.0", None
    for key, what in _LOOK_ALIKES.items():
        if key in table:
            text = tr('this is {what} (it has "{key}"), which HCCL itself cannot read', what=tr(what), key=key)
            return "", Problem("unsupported-format", "", text, tr("give it to the program that it is for"))
    version = table.get("version")
    if isinstance(version, str):
        return _of_version(table, version)
    if "version" not in table and "group_list" in table:
        return "legacy_lab" if "deploy_mode" in table else "legacy_cloud", None
    return _shape(table), None


def _of_version(table: JsonObject, version: str) -> tuple[str, Problem | None]:
    if version == "1.0" and "cluster_list" in table:
        return "cross_cluster", None
    if version in _BY_VERSION:
        return _BY_VERSION[version], None
    meant = {"cross_cluster": "1.0"}.get(_shape(table), _shape(table)[1:])
    text = tr("version {version} is not one that HCCL reads (1.0, 1.1, 1.2, 2.0)", version=shown(version))
    return "", Problem(
        "bad-version", "/version", text, tr('write "{meant}", which the rest of the table looks like', meant=meant)
    )


def _shape(table: JsonObject) -> str:
    return next((name for key, name in _BY_KEY.items() if key in table), "v1.0")
