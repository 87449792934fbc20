"""Finds the differences between two rank tables, as data, and the lists that differ only in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from hccl_tools.common.documents import JsonObject
from hccl_tools.common.grouping import grouped
from hccl_tools.common.record import Record, Row
from hccl_tools.compare import side
from hccl_tools.compare.side import GROUPS, Places, Side
from hccl_tools.convert.job import holds
from hccl_tools.table.address import packed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PREFIX = "net_layer "  # of the keys below
_USUAL = {"plane_id": "0", "net_attr": ""}  # what a key means that is left out


class Change(Row):
    """One difference; only commands print.

    kind: format, field, server-added, server-removed, server-renamed, server-field, devices-added, devices-removed,
          ranks-renumbered, ranks-moved or device-field.
    data: what is known of it, under the names that the JSON output has; a and b are the two tables.
    """

    kind: str
    data: JsonObject


class Comparison(Record):
    """The differences in meaning, the lists in another order, and the keys that one of the formats cannot express.

    by: what a rank's place was compared by, see side.py.
    """

    changes: list[Change]
    order: list[str]
    not_compared: list[str]
    by: str


def compare(a: Side, b: Side) -> Comparison:
    """Finds all differences between two tables."""
    left_out: list[str] = []
    here, there, names, by = side.places_of(a, b)
    if a.table == b.table:
        return Comparison(changes=[], order=[], not_compared=[], by=by)
    changes = [
        *_formats(a, b),
        *_fields(a, b, left_out),
        *(Change("server-renamed", {"a": old, "b": new}) for old, new in names.items() if by == side.SERVERS),
        *_servers(here, there),
        *_server_fields(a, b, here, there, left_out),
        *_ranks(here, there),
        *_device_fields(a, b, here, there, left_out),
    ]
    if a.has_servers != b.has_servers or by == side.BY_HOSTS and names:
        left_out.append("server_id")
    order = [] if changes else list(_order(here, there, a, b))
    return Comparison(changes=changes, order=order, not_compared=left_out, by=by)


def _formats(a: Side, b: Side) -> Iterator[Change]:
    if a.job.source != b.job.source:
        yield Change("format", {"a": a.job.source, "b": b.job.source})


def _compared(key: str, part: str, a: Side, b: Side, in_a: bool, in_b: bool, left_out: list[str]) -> bool:
    """Whether a key can be compared: not if one table lacks it, and its format has no place for it."""
    lacking = b if not in_b else a if not in_a else None
    for group, name_key in GROUPS.items():  # a server is in one by the list in the head
        if key == name_key:
            key, part = group, "head"
    if lacking is None or key == "status" or holds(lacking.job.source, part, key):
        return True
    if key not in left_out:
        left_out.append(key)
    return False


def _fields(a: Side, b: Side, left_out: list[str]) -> Iterator[Change]:
    for key in {**a.head, **b.head}:
        one, other = _in_both(key, a.head.get(key), b.head.get(key))
        if one == other or not _compared(key, "head", a, b, key in a.head, key in b.head, left_out):
            continue
        if key == "status" and None in (one, other):  # 2.0 need not have one
            continue
        yield Change("field", {"key": key, "a": one, "b": other})


def _in_both(key: str, one: Any, other: Any) -> tuple[Any, Any]:
    """The two values; of groups of servers those that are in both: the servers of the others have changed, too."""
    if key not in GROUPS or one is None or other is None:
        return one, other
    return {name: one[name] for name in one if name in other}, {name: other[name] for name in one if name in other}


# ---- servers ---------------------------------------------------------------------------------------


def _servers(here: Places, there: Places) -> Iterator[Change]:
    for kind, mine, others in (("server-removed", here, there), ("server-added", there, here)):
        for name in mine.servers:
            if name not in others.servers:
                positions = mine.servers[name]
                yield Change(kind, {"server": name, **_of_positions(mine, positions)})


def _of_positions(side: Places, positions: Iterable[int]) -> JsonObject:
    listed = list(positions)
    return {"devices": [side.devices[n] for n in listed], "ranks": [side.ranks[n] for n in listed]}


def _server_fields(a: Side, b: Side, here: Places, there: Places, left_out: list[str]) -> Iterator[Change]:
    common = [(name, entry, there.entries[name]) for name, entry in here.entries.items() if name in there.entries]
    keys = {key: True for _, one, other in common for key in (*one, *other) if key != "server_id"}
    for key in keys:
        rows = [(name, *_values(key, one, other)) for name, one, other in common]
        different = [row for row in rows if not same(row[1], row[2])]
        in_a, in_b = (any(row[side] is not None for row in rows) for side in (1, 2))
        if different and _compared(key, "server", a, b, in_a, in_b, left_out):
            for name, one, other in different:
                yield Change("server-field", {"server": name, "key": key, "a": one, "b": other})


def _values(key: str, one: JsonObject, other: JsonObject) -> tuple[Any, Any]:
    """The two values of a key.  A server without an address in addition to its name has its name for one."""
    values = one.get(key), other.get(key)
    if key not in ("host_ip", "server_ip") or (values[0] is None) == (values[1] is None):
        return values
    names = [each["server_id"] if packed(each["server_id"]) else None for each in (one, other)]
    return (names[0], values[1]) if values[0] is None else (values[0], names[1])


# ---- ranks and devices -----------------------------------------------------------------------------


def _ranks(here: Places, there: Places) -> Iterator[Change]:
    yield from _renumbered(here, there)
    moved = list(side.moved(here, there))
    for from_, to, ranks in side.runs_of_moves(here, there, moved):
        yield Change(
            "ranks-moved",
            {
                "ranks": ranks,
                "a": {"server": from_, "devices": [here.device_of_rank(rank) for rank in ranks]},
                "b": {"server": to, "devices": [there.device_of_rank(rank) for rank in ranks]},
            },
        )
    gone = set(moved)
    for kind, mine, others in (("devices-removed", here, there), ("devices-added", there, here)):
        for name, positions in mine.servers.items():
            if name not in others.servers:
                continue
            alone = [n for n in positions if mine.keys[n] not in others.index and mine.ranks[n] not in gone]
            if alone:
                yield Change(kind, {"server": name, **_of_positions(mine, alone)})


def _renumbered(here: Places, there: Places) -> Iterator[Change]:
    """Devices that are in both tables under other ranks: consecutive ranks with the same step are one change."""
    rows = [(here.ranks[n], there.ranks[there.index[key]], here.names[n]) for n, key in side.common(here, there)]
    if all(one == other for one, other, _ in rows):
        return
    run: list[tuple[int, int, str]] = []
    for row in sorted(row for row in rows if row[0] != row[1]):
        if run and (row[0] != run[-1][0] + 1 or row[1] != run[-1][1] + 1):
            yield _of_run(run)
            run = []
        run.append(row)
    yield _of_run(run)


def _of_run(run: Sequence[tuple[int, int, str]]) -> Change:
    names = list(dict.fromkeys(name for _, _, name in run))
    servers = {"number": len(names), "first": names[0], "last": names[-1]}
    ranks = {"a": [before for before, _, _ in run], "b": [after for _, after, _ in run]}
    return Change("ranks-renumbered", {**ranks, "servers": servers})


def _device_fields(a: Side, b: Side, here: Places, there: Places, left_out: list[str]) -> Iterator[Change]:
    both = side.common(here, there)
    one = [here.entries_of_devices[n] for n, _ in both]
    other = [there.entries_of_devices[there.index[key]] for _, key in both]
    layered = all(side.job.source == "v2.0" for side in (a, b))
    if layered:
        one, other = list(map(flat, one)), list(map(flat, other))
    for key in {key: True for entry in (*one, *other) for key in entry if key not in here.identity}:
        values = [entry.get(key) for entry in one], [entry.get(key) for entry in other]
        if values[0] == values[1]:
            continue
        different = [n for n, pair in enumerate(zip(*values)) if not same(*pair)]
        in_a, in_b = (any(value is not None for value in column) for column in values)
        held = layered and key.startswith(PREFIX)
        if not different or not held and not _compared(key, "device", a, b, in_a, in_b, left_out):
            continue
        by_server = grouped((here.names[both[n][0]], n) for n in different)
        for name, rows in by_server.items():
            positions = [both[n][0] for n in rows]
            pairs = [{"a": values[0][n], "b": values[1][n]} for n in rows]
            yield Change(
                "device-field", {"server": name, "key": key, **_of_positions(here, positions), "values": pairs}
            )


def same(one: Any, other: Any) -> bool:
    """Whether two values mean the same: two spellings of an address do, also in a list with commas."""
    if one == other and type(one) is type(other):
        return True
    if not isinstance(one, str) or not isinstance(other, str):
        return False
    first, second = ([packed(each) for each in text.split(",")] for text in (one, other))
    return all(first) and first == second


def _order(here: Places, there: Places, a: Side, b: Side) -> Iterator[str]:
    """The lists that have the same entries in another order."""
    if list(here.servers) != list(there.servers):
        yield "servers"
    mine = [[here.keys[n] for n in here.servers[name]] for name in sorted(here.servers)]
    if mine != [[there.keys[n] for n in there.servers[name]] for name in sorted(there.servers)]:
        yield "devices"
    for key in GROUPS:
        if key in a.head and a.table[key] != b.table[key]:
            yield key


def flat(device: JsonObject) -> JsonObject:
    """The entry with keys such as "net_layer 2 addr" in the place of its level_list."""
    found = {key: value for key, value in device.items() if key != "level_list"}
    for level in device.get("level_list", ()):
        layer = f"{PREFIX}{int(level['net_layer'])}"
        entries = level["rank_addr_list"]
        rest = {"net_attr": _USUAL["net_attr"], **level}
        found.update({f"{layer} {key}": rest[key] for key in rest if key not in ("net_layer", "rank_addr_list")})
        keys = dict.fromkeys(key for entry in entries for key in ("plane_id", *entry))
        found.update({f"{layer} {key}": _column(entries, key) for key in keys})
        if not entries:
            found[f"{layer} addr"] = []
    return found


def _column(entries: Sequence[JsonObject], key: str) -> Any:
    """The values of a key in all entries; of a single entry its value."""
    values = [entry.get(key, _USUAL.get(key)) for entry in entries]
    return values[0] if len(values) == 1 else values
