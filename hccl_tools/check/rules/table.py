"""Rules for the whole table: its status and its counts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from hccl_tools.check.rules.registry import ALL, LISTED, Findings, rule
from hccl_tools.common.documents import JsonObject
from hccl_tools.common.language import tr
from hccl_tools.common.problem import WARNING, pointer
from hccl_tools.common.words import shown
from hccl_tools.table.view import View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


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
