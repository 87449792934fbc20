"""Extracts a part of a rank table: some of its servers, with their ranks renumbered."""

from __future__ import annotations

from collections.abc import Collection

from hccl_tools.build import merging
from hccl_tools.check import verdict
from hccl_tools.common.documents import JsonObject
from hccl_tools.common.problem import errors
from hccl_tools.common.refusal import BAD


def only(table: JsonObject, server_ids: Collection[str], generation: str | None = None) -> JsonObject:
    """The table of the servers `server_ids` of a good `table`, in its order, with ranks from 0 on.

    generation: as for verdict.check.  Raises merging.Refused if the part is not good by itself.
    """
    kept = set(server_ids)
    part = {**table, "server_list": _of(table["server_list"], kept)}
    if "super_pod_list" in table:
        pods = [{**pod, "server_list": _of(pod["server_list"], kept)} for pod in table["super_pod_list"]]
        part["super_pod_list"] = [pod for pod in pods if pod["server_list"]]
    found = merging.combine([merging.Named(name="rank table", table=part)])
    lines = [problem.line("rank table") for problem in errors(verdict.check(found, generation))]
    if lines:
        raise merging.Refused(BAD, *lines)
    return found


def _of(servers: list[JsonObject], kept: Collection[str]) -> list[JsonObject]:
    return [server for server in servers if server["server_id"] in kept]
