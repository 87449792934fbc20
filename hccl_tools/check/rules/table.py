"""Rules on the table as a whole: its status and its counts."""

from hccl_tools.check.rules.registry import ALL, LISTED, rule
from hccl_tools.common.words import shown


@rule("bad-status", ALL)
def status_not_completed(view):
    """status is anything but "completed".

    Why: HCCL reads a table with another status again every second for 1,800 s; users see a hang.
    Mend: write "completed" once all devices are listed.
    """
    status = view.table.get("status")
    if isinstance(status, str) and status != "completed":
        text = f"status is {shown(status)}; HCCL would wait half an hour for it to change"
        yield "/status", text, 'write "completed" once all devices are listed'


@rule("count-mismatch", LISTED)
def server_count_wrong(view):
    """server_count is not the number of entries in server_list.

    Why: HCCL's manual and parser (EI0014).
    Mend: write the number of servers, in quotes.
    """
    yield from count_problem(view.table, "server_count", "server_list", "")


def count_problem(parent, count_key, list_key, base):
    """What a rule yields when the text parent[count_key] is not the length of parent[list_key]."""
    count, listed = parent.get(count_key), parent.get(list_key)
    if isinstance(count, str) and isinstance(listed, list) and count != str(len(listed)):
        text = f"{count_key} is {shown(count)} but {list_key} has {len(listed)}"
        yield f"{base}/{count_key}", text, f'write "{len(listed)}"'
