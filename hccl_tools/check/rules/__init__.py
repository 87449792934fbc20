"""The rules for what a schema cannot check in a rank table: one small function per rule.

The modules are grouped by subject.  Those that every table needs are imported here.  `broken` imports the others only
for a table of their format, because every import adds to the launch time.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from hccl_tools.check.rules import addresses, devices, generations, servers, table
from hccl_tools.check.rules.generations import group_problem_910a
from hccl_tools.check.rules.registry import GENERATIONS, Rule, registered
from hccl_tools.check.rules.registry import broken as _broken
from hccl_tools.common.problem import Problem
from hccl_tools.table.address import family
from hccl_tools.table.view import View

__all__ = ["GENERATIONS", "all_rules", "broken", "family", "group_problem_910a"]

COMMON = (addresses, devices, generations, servers, table)  # importing them registered their rules

# modules whose rules are for one format
_SPECIAL = {
    "v1.2": "super_pods",
    "v2.0": "rank_list",
    "cross_cluster": "super_pods",
    "legacy_lab": "legacy",
    "legacy_cloud": "legacy",
}


def broken(view: View, generation: str | None = None) -> Iterator[Problem]:
    """Every Problem of a view: the rules of its format, and of the generation if one is named."""
    if view.format in _SPECIAL:
        import_module(f"hccl_tools.check.rules.{_SPECIAL[view.format]}")
    return _broken(view, generation)


def all_rules() -> list[Rule]:
    """All rules, sorted by code."""
    for name in sorted(set(_SPECIAL.values())):
        import_module(f"hccl_tools.check.rules.{name}")
    return sorted(registered(), key=lambda rule: (rule.code, rule.find.__module__, rule.find.__name__))
