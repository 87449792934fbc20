"""Builds, joins and cuts tables of version 2.0, which list ranks and have no servers.

Such a table does not state which host a rank is on, or which of two tables comes first.  So the order of the tables is
the order of their ranks.  The addresses of the devices show whether a host was given twice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from hccl_tools.check import verdict
from hccl_tools.common.documents import JsonObject
from hccl_tools.common.language import tr
from hccl_tools.common.problem import Problem
from hccl_tools.common.words import shown
from hccl_tools.table.address import packed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hccl_tools.machine.root_info import RootInfo

COMPUTED = ("rank_count", "rank_list")
_SPARE = 64  # local_id of a spare, which has the addresses of the device that it replaces
CHIP = "950"


def joined(tables: Sequence[JsonObject]) -> JsonObject:
    """The table of all ranks of these good tables, whose other keys are the same; the ranks are numbered again."""
    ranks: list[JsonObject] = []
    for table in tables:
        first = len(ranks)
        ranks += ({**rank, "rank_id": first + place} for place, rank in enumerate(in_order(table)))
    rest = {key: value for key, value in tables[0].items() if key not in COMPUTED}
    return of_ranks(ranks, rest)


def of_ranks(ranks: Sequence[JsonObject], rest: JsonObject) -> JsonObject:
    """The table with these entries, and the other keys of its head."""
    head: JsonObject = {key: rest[key] for key in ("version", "status") if key in rest}
    return {**head, "rank_count": len(ranks), "rank_list": list(ranks), **rest}


def in_order(table: JsonObject) -> list[JsonObject]:
    """The entries of a good table in the order of their ranks."""
    return sorted(table["rank_list"], key=lambda rank: int(rank["rank_id"]))


def only(table: JsonObject, kept: Collection[int]) -> JsonObject:
    """The table of these ranks of a good table, in its order, numbered from 0 on."""
    part = [rank for rank in in_order(table) if rank["rank_id"] in kept]
    return joined([{**table, "rank_list": part}])


def repeated_addresses(tables: Iterable[tuple[str, JsonObject]]) -> Iterator[str]:
    """A line for each two tables, given with their names, that have an address of one layer: one host, given twice."""
    first: dict[tuple[int, bytes | str], tuple[int, str, int]] = {}
    told: set[tuple[int, int]] = set()
    for number, (name, table) in enumerate(tables):
        for rank, layer, address in _addresses(table):
            earlier, file, owner = first.setdefault((layer, packed(address) or address.lower()), (number, name, rank))
            if earlier != number and (number, earlier) not in told:
                told.add((number, earlier))
                yield tr(
                    "{name}: address {address} of rank {rank} on net_layer {layer} also belongs to rank {owner} "
                    "in {file}; list each host once",
                    name=name,
                    address=shown(address),
                    rank=rank,
                    layer=layer,
                    owner=owner,
                    file=file,
                )


def _addresses(table: JsonObject) -> Iterator[tuple[int, int, str]]:
    """(rank, layer, address) of every address, but for those of spares."""
    for rank in table["rank_list"]:
        for level in rank["level_list"] if rank["local_id"] != _SPARE else ():
            for entry in level["rank_addr_list"]:
                yield rank["rank_id"], level["net_layer"], entry["addr"]


def of_950(devices: Sequence[int], described: RootInfo) -> tuple[JsonObject, list[Problem]]:
    """(the table of these devices, rank 0 first; what validate_hccl.py reports about it).  Raises Refusal."""
    ranks = [{"rank_id": rank, **entry} for rank, entry in enumerate(described.of(devices))]
    found = of_ranks(ranks, {"version": "2.0", "status": "completed"})
    return found, verdict.check(found, CHIP)


def file_name_of_950(found: JsonObject) -> str:
    """``hccl_4p_4567.json``: there is no server's name in such a table."""
    ranks = in_order(found)
    return f"hccl_{len(ranks)}p_{''.join(str(rank['device_id']) for rank in ranks)}.json"
