"""Code that super pods and clusters share: both are lists of servers from server_list."""

from __future__ import annotations

from hccl_tools.check.rules.registry import Findings
from hccl_tools.check.rules.repeated import repeated
from hccl_tools.common.language import tr
from hccl_tools.common.words import shown
from hccl_tools.table.view import View, listed, text


def members(view: View, list_key: str) -> list[tuple[str, str | None, int]]:
    """(pointer, server_id, number of the group) of every server that a group of view.table[list_key] lists."""
    return [
        (f"{member}/server_id", text(entry, "server_id"), number)
        for number, (place, group) in enumerate(listed(view.table, list_key))
        for member, entry in listed(group, "server_list", place)
    ]


def not_in_one_group(view: View, list_key: str, noun: str) -> Findings:
    """What a rule yields for each server in two groups, and in none."""
    found = members(view, list_key)
    names = [name for _, name, _ in found]
    yield from repeated(names, lambda index: found[index][0], "server_id")
    known = set(names)
    for server in view.servers:
        if server.name is not None and server.name not in known:
            yield server.pointer, tr("server {name} is in no {noun}", name=shown(server.name), noun=noun)


def unknown_servers(view: View, list_key: str) -> Findings:
    """What a rule yields for each server that is in a group and not in server_list."""
    known = {server.name for server in view.servers}
    for place, name, _ in members(view, list_key):
        if name is not None and name not in known:
            yield place, tr("server {name} is not in server_list", name=shown(name))


def listed_twice(view: View, list_key: str, id_key: str) -> Findings:
    """What a rule yields for each group whose name another group has."""
    groups = listed(view.table, list_key)
    yield from repeated([text(group, id_key) for _, group in groups], lambda n: f"{groups[n][0]}/{id_key}", id_key)
