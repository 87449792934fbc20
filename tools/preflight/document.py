"""The result as JSON, for programs; schemas/preflight.schema.json describes it."""

from __future__ import annotations

from hccl_tools.common.refusal import REFUSED
from tools.preflight.trial import report
from tools.preflight.words import Found

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hccl_tools.common.documents import JsonObject
    from tools.preflight.difference import Difference, Group

GOOD, DIFFERS, STOPS = "good", "differs", "blocks"
STATUS = {GOOD: 0, DIFFERS: 1, STOPS: REFUSED}  # exit codes


def verdict(found: Found) -> str:
    """The verdict, which the exit code also states."""
    return STOPS if found.blocks else DIFFERS if found.differences else GOOD


def document(found: Found, made: str) -> JsonObject:
    """All findings. made: when."""
    return {
        "made": made,
        "verdict": verdict(found),
        "hosts": len(found.hosts),
        "silent": list(found.silent),
        "reasons": list(found.lines),
        "differences": [_difference(each) for each in found.differences],
        **({"trial": report.document(found.trial)} if found.trial else {}),
    }


def _difference(each: Difference) -> JsonObject:
    others = each.others
    return {
        "fact": each.key,
        "level": each.level,
        "groups": [{"hosts": list(group.hosts), **_of_group(group)} for group in each.groups],
        "others": {"hosts": len(others.hosts), **_of_group(others)} if others else None,
        "remedy": each.remedy,
    }


def _of_group(group: Group) -> JsonObject:
    values = {key: list(value) if isinstance(value, tuple) else value for key, value in group.values.items()}
    return {"text": group.text, "values": values}
