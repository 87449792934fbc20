"""Rules on the table as a whole: its status and its counts."""

from __future__ import annotations

from hccl_tools.check.rules.registry import ALL, LISTED, Findings, rule
from hccl_tools.common.documents import JsonObject
from hccl_tools.common.words import shown
from hccl_tools.table.view import View


@rule("bad-status", ALL)
def status_not_completed(view: View) -> Findings:
    """status is not "completed".

    Why: HCCL reads a table with another status again every second for 1,800 s; users see a hang.
    Remedy: write "completed" once all devices are listed.
    """
    status = view.table.get("status")
    if isinstance(status, str) and status != "completed":
        yield "/status", f"status is {shown(status)}; HCCL would wait half an hour for it to change"


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
        text = f"{count_key} is {shown(count)} but {list_key} has {len(listed)}"
        yield f"{base}/{count_key}", text, f'write "{len(listed)}"'
