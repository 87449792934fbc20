"""The view of a version 2.0 table in show_hccl.py: it lists ranks, so inner networks replace the servers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from hccl_tools.common.documents import JsonObject
from hccl_tools.common.record import Row
from hccl_tools.common.words import clauses, listed, one_line
from hccl_tools.table.view import objects

_NONE = "-"


class Level(Row):
    """A network of a rank: its layer and its name as texts, and (kind, address) of the rank there."""

    layer: str
    name: str
    addresses: Sequence[tuple[str, str]]

    def words(self) -> str:
        """The layer, and the address there: of several only how many of which kind."""
        if len(self.addresses) == 1:
            return f"{self.layer}: {self.addresses[0][1]}"
        kinds = dict.fromkeys(kind for kind, _ in self.addresses)
        counted = (f"{sum(kind == each for each, _ in self.addresses)} {kind}" for kind in kinds)
        return f"{self.layer}: {listed(counted) or _NONE}"


def levels(rank: JsonObject) -> list[Level]:
    """The networks of an entry of rank_list, in their order."""
    return [
        Level(
            text_of(level, "net_layer"),
            text_of(level, "net_instance_id"),
            [(text_of(each, "addr_type"), text_of(each, "addr")) for _, each in objects(level, "rank_addr_list")],
        )
        for _, level in objects(rank, "level_list")
    ]


def inner(found: Sequence[Level]) -> str:
    """The name of the innermost network, which is the first."""
    return found[0].name if found else _NONE


def words(found: Iterable[Level]) -> str:
    """The addresses on all layers, in few words."""
    return clauses(*(level.words() for level in found)) or _NONE


def documents(table: object) -> Iterator[JsonObject]:
    """The ranks of the table for --json, in their order; None is what an entry has not."""
    entries = sorted((entry for _, entry in objects(table, "rank_list")), key=_rank)
    for entry in entries:
        networks = [
            {
                "net_layer": level.get("net_layer"),
                "net_instance_id": level.get("net_instance_id"),
                "addresses": [each.get("addr") for _, each in objects(level, "rank_addr_list")],
            }
            for _, level in objects(entry, "level_list")
        ]
        yield {**{key: entry.get(key) for key in ("rank_id", "device_id", "local_id")}, "networks": networks}


def _rank(entry: JsonObject) -> int:
    number = entry.get("rank_id")
    return number if isinstance(number, int) else 0


def text_of(entry: object, key: str) -> str:
    """entry[key] as a text that a terminal may get; "-" where there is none."""
    value = entry.get(key) if isinstance(entry, dict) else None
    return _NONE if value is None else one_line(value)
