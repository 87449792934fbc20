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
from hccl_tools.common.refusal import BAD, Refusal, faulty
from hccl_tools.common.words import clauses, named, one_line, shown, some
from hccl_tools.table import rank_table
from hccl_tools.table.address import packed
from hccl_tools.table.view import objects

COMPUTED = ("rank_count", "rank_list")
_SPARE = 64  # local_id of a spare, which has the addresses of the device that it replaces
CHIP = "950"
ROOT_INFO = "/etc/hccl_rootinfo.json"
_KEPT = ("local_id", "device_id", "level_list", "control_plane", "device_port", "host_port", "replaced_local_id")


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


class RootInfo:
    """A 950 host's description of its own devices: the entry of each by its physical number, in the file's order.

    HCCL reads the file, too.  It has entries of a version 2.0 table, for all devices of the host and without ranks:
    {"version": "2.0", "topo_file_path": "...", "rank_count": 8, "rank_list": [{"device_id": 0, "local_id": 0, ...}]}
    """

    def __init__(self, path: str, entries: dict[int, JsonObject]) -> None:
        self.path = path
        self.entries = entries

    def of(self, devices: Sequence[int]) -> list[JsonObject]:
        """The entries of these devices, in this order, as a rank table has them.  Raises Refusal."""
        if missing := [device for device in devices if device not in self.entries]:
            raise faulty(
                "{path} does not describe {devices}, only {others}; choose from those with --devices",
                path=one_line(self.path),
                devices=named("device", missing),
                others=named("device", self.entries),
            )
        return [{key: entry[key] for key in _KEPT if key in entry} for entry in map(self.entries.__getitem__, devices)]


def read_root_info(path: str) -> RootInfo:
    """The devices that the file describes.  Raises Refusal."""
    shown = one_line(path)
    try:
        document, problems = rank_table.read(path)
    except rank_table.NotReadable as error:
        text = tr("{error}: it describes the devices of a 950 host, and the table is made of it", error=error)
        remedy = tr("mount it into the container, or name such a file: --root_info FILE")
        raise Refusal(BAD, clauses(text, remedy)) from error
    if problems:
        raise Refusal(BAD, *(problem.line(shown) for problem in problems))
    entries: dict[int, JsonObject] = {}
    for place, entry in objects(document, "rank_list"):
        number = entry.get("device_id")
        if type(number) is not int or number in entries:
            text = tr("device_id is not a number, or repeats that of another entry")
            raise Refusal(BAD, f"{shown}: /rank_list/{place}: {text}")
        entries[number] = entry
    if not entries:
        keys = some([one_line(key) for key in document], 4) if isinstance(document, dict) else "-"
        text = tr("{path} has no rank_list with the devices of this host, only: {keys}", path=shown, keys=keys)
        raise Refusal(
            BAD, clauses(text, tr("let the driver or MindCluster write it again, or name another: --root_info FILE"))
        )
    return RootInfo(path, entries)
