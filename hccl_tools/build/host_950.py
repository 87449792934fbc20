"""Builds the version 2.0 rank table of a 950 host, whose own description lists the networks of its devices."""

from __future__ import annotations

from collections.abc import Sequence

from hccl_tools.build import rank_lists
from hccl_tools.check import verdict
from hccl_tools.common.documents import JsonObject
from hccl_tools.common.problem import Problem
from hccl_tools.machine import root_info

CHIP = "950"


def table(devices: Sequence[int], described: root_info.RootInfo) -> tuple[JsonObject, list[Problem]]:
    """(the table of these devices, rank 0 first; what validate_hccl.py reports about it).  Raises Refusal."""
    ranks = [{"rank_id": rank, **entry} for rank, entry in enumerate(described.of(devices))]
    found = rank_lists.of_ranks(ranks, {"version": "2.0", "status": "completed"})
    return found, verdict.check(found, CHIP)


def file_name(found: JsonObject) -> str:
    """``hccl_4p_4567.json``: there is no server's name in such a table."""
    ranks = rank_lists.in_order(found)
    return f"hccl_{len(ranks)}p_{''.join(str(rank['device_id']) for rank in ranks)}.json"
