"""Formats the differences between two rank tables: lines for people, JSON for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from hccl_tools.common.documents import JsonObject
from hccl_tools.common.language import marked, tr
from hccl_tools.common.words import count, listed, named, one_line, ranges, short, shown, some
from hccl_tools.compare import side
from hccl_tools.compare.changes import Change, Comparison
from hccl_tools.compare.side import Side
from hccl_tools.convert.job import words

MOST = 10  # lines of one kind, unless all are asked for
_SAME_FILE = marked("give every host the same file: HCCL compares the tables of all ranks (EI0005)")
_ORDERS = {
    "servers": marked("the servers are in another order"),
    "devices": marked("the devices of a server are in another order"),
    "super_pod_list": marked("super_pod_list is in another order"),
    "cluster_list": marked("cluster_list is in another order"),
}


def lines(a: Side, b: Side, found: Comparison, everything: bool) -> Iterator[str]:
    """What the command prints: both tables, the differences, what could not be compared, and the verdict."""
    yield about("a", a)
    yield about("b", b)
    most = len(found.changes) if everything else MOST
    for _, group in groupby(found.changes, key=lambda change: change.kind):
        alike = list(group)
        yield from (line(change, found.by) for change in alike[:most])
        if len(alike) > most:
            yield tr("... and {number} more like it; --all lists them", number=len(alike) - most)
    if found.not_compared:
        keys = some([short(key) for key in found.not_compared], MOST)
        yield tr("not compared, because one of the formats has no place for it: {keys}", keys=keys)
    yield verdict(a, b, found)


def about(letter: str, side: Side) -> str:
    """Describes one table in a line."""
    job = side.job
    servers = len(job.servers) if side.has_servers else "-"
    what = words(job.source)
    text = tr("{what}, servers: {servers}, ranks: {ranks}", what=what, servers=servers, ranks=len(job.devices))
    return f"{letter}: {one_line(side.name)}: {text}"


def verdict(a: Side, b: Side, found: Comparison) -> str:
    """The last line: how many differences, or that the tables mean the same."""
    if found.changes:
        return count(len(found.changes), "difference")
    if a.table == b.table:
        return tr("the tables are the same")
    how = listed(tr(_ORDERS[each]) for each in found.order) or tr("they are written in another way")
    return tr("the tables mean the same; {how}; {advice}", how=how, advice=tr(_SAME_FILE))


def line(change: Change, by: str) -> str:
    """One difference, as a person reads it; by: what the places of ranks were compared by."""
    if by in _WHAT and change.kind in _WITHOUT_DEVICES:
        return _WITHOUT_DEVICES[change.kind](tr(_WHAT[by]), change.data)
    return _WORDS[change.kind](change.data)


def document(a: Side, b: Side, found: Comparison) -> JsonObject:
    """The JSON output; schemas/rank_table_difference.schema.json describes it."""
    sides = {
        letter: {
            "file": side.name,
            "format": side.job.source,
            "servers": len(side.job.servers) if side.has_servers else None,
            "ranks": len(side.job.devices),
        }
        for letter, side in (("a", a), ("b", b))
    }
    return {
        **sides,
        "same_meaning": not found.changes,
        "identical": a.table == b.table,
        "compared_by": found.by,
        "order": found.order,
        "not_compared": found.not_compared,
        "changes": [{"kind": change.kind, **_compact(change.kind, change.data)} for change in found.changes],
    }


def _compact(kind: str, data: JsonObject) -> JsonObject:
    """The same with numbers as ranges: 65,536 ranks are a few characters."""
    keys = ("a", "b") if kind == "ranks-renumbered" else ("devices", "ranks")
    found = {key: _numbers(value) if key in keys else value for key, value in data.items()}
    if kind == "ranks-moved":
        found.update((side, {**data[side], "devices": _numbers(data[side]["devices"])}) for side in ("a", "b"))
    return found


def _numbers(numbers: Sequence[int]) -> str:
    return ranges(numbers) if list(numbers) == sorted(numbers) else ",".join(map(str, numbers))


_ADDED, _REMOVED = marked("added: {ranks}"), marked("removed: {ranks}")


# ---- one kind each ---------------------------------------------------------------------------------


def _format(data: JsonObject) -> str:
    return tr("format: {a} -> {b}", a=words(data["a"]), b=words(data["b"]))


def _field(data: JsonObject) -> str:
    return f"{short(data['key'])}: {_pair(data)}"


def _pair(data: JsonObject) -> str:
    return f"{_value(data['a'])} -> {_value(data['b'])}"


def _value(value: object) -> str:
    return tr("missing") if value is None else shown(value)


def _server(text: str, without_servers: str = "") -> Callable[[JsonObject], str]:
    def words(data: JsonObject) -> str:
        if not data["server"]:
            return tr(without_servers, ranks=_ranks(data["ranks"]))
        return tr(text, server=one_line(data["server"]), devices=_devices(data["devices"]), ranks=_ranks(data["ranks"]))

    return words


def _devices(numbers: Iterable[int]) -> str:
    found = [number for number in numbers if number >= 0]
    return named("device", found) if found else tr("processors")


def _ranks(numbers: Iterable[int]) -> str:
    return named("rank", numbers)


def _renamed(data: JsonObject) -> str:
    return tr("server {a} is now {b}, with the same devices", a=one_line(data["a"]), b=one_line(data["b"]))


def _server_field(data: JsonObject) -> str:
    server = tr("server {server}", server=one_line(data["server"]))
    return f"{server}: {short(data['key'])}: {_pair(data)}"


def _renumbered(data: JsonObject) -> str:
    servers = data["servers"]
    text = (
        tr("renumbered: {ranks} on server {first}, now {now}")
        if servers["number"] == 1
        else tr("renumbered: {ranks} on {number} servers, {first} to {last}, now {now}")
    )
    names = {"first": one_line(servers["first"]), "last": one_line(servers["last"]), "number": servers["number"]}
    return text.format(ranks=_ranks(data["a"]), now=ranges(data["b"]), **names)


def _moved(data: JsonObject) -> str:
    before, after = data["a"], data["b"]
    values = {
        "ranks": _ranks(data["ranks"]),
        "a": one_line(before["server"]),
        "devices": _devices(before["devices"]),
        "b": one_line(after["server"]),
        "others": _devices(after["devices"]),
    }
    if before["server"] == after["server"]:
        return tr("moved: {ranks} on server {a} from {devices} to {others}", **values)
    return tr("moved: {ranks} from server {a}, {devices}, to server {b}, {others}", **values)


def _device_field(data: JsonObject) -> str:
    """A key of devices of one server; of ranks, where a table has no servers."""
    server = data["server"]
    place = _devices(data["devices"]) if server else _ranks(data["devices"])
    where = tr("server {server}", server=one_line(server)) + ": " if server else ""
    return f"{where}{place}: {_values(data)}"


def _values(data: JsonObject) -> str:
    more = len(data["values"]) - 1
    ending = tr(" for the first, and {number} more", number=more) if more else ""
    return f"{short(data['key'])}: {_pair(data['values'][0])}{ending}"


_WORDS: dict[str, Callable[[JsonObject], str]] = {
    "format": _format,
    "field": _field,
    "server-added": _server(marked("server {server} was added, with {ranks} on {devices}")),
    "server-removed": _server(marked("server {server} was removed; it had {ranks} on {devices}")),
    "server-renamed": _renamed,
    "server-field": _server_field,
    "devices-added": _server(marked("server {server}: added {devices}, with {ranks}"), _ADDED),
    "devices-removed": _server(marked("server {server}: removed {devices}, which had {ranks}"), _REMOVED),
    "ranks-renumbered": _renumbered,
    "ranks-moved": _moved,
    "device-field": _device_field,
}


# ---- by networks, and by hosts without the numbers of devices ----------------------------------------------

_WHAT = {side.NETWORKS: marked("network"), side.BY_HOSTS: marked("server")}


def _of_ranks(text: str) -> Callable[[str, JsonObject], str]:
    def words_of(what: str, data: JsonObject) -> str:
        return tr(text, what=what, server=one_line(data["server"]), ranks=_ranks(data["ranks"]))

    return words_of


def _renumbered_there(what: str, data: JsonObject) -> str:
    servers = data["servers"]
    values = {"ranks": _ranks(data["a"]), "now": ranges(data["b"]), "what": what}
    first, last = one_line(servers["first"]), one_line(servers["last"])
    if servers["number"] == 1:
        return tr("renumbered: {ranks} on {what} {first}, now {now}", first=first, **values)
    number = count(servers["number"], "network" if what == tr(_WHAT[side.NETWORKS]) else "server")
    return tr(
        "renumbered: {ranks} on {number}, {first} to {last}, now {now}", number=number, first=first, last=last, **values
    )


def _moved_there(what: str, data: JsonObject) -> str:
    a, b = one_line(data["a"]["server"]), one_line(data["b"]["server"])
    if a == b:
        return tr("moved: {ranks} on {what} {a} to other places of it", ranks=_ranks(data["ranks"]), what=what, a=a)
    return tr("moved: {ranks} from {what} {a} to {what} {b}", ranks=_ranks(data["ranks"]), what=what, a=a, b=b)


def _field_there(what: str, data: JsonObject) -> str:
    where = tr("{what} {server}: {ranks}", what=what, server=one_line(data["server"]), ranks=_ranks(data["ranks"]))
    return f"{where}: {_values(data)}"


_WITHOUT_DEVICES: dict[str, Callable[[str, JsonObject], str]] = {
    "server-added": _of_ranks(marked("{what} {server} was added, with {ranks}")),
    "server-removed": _of_ranks(marked("{what} {server} was removed; it had {ranks}")),
    "devices-added": _of_ranks(marked("{what} {server}: added {ranks}")),
    "devices-removed": _of_ranks(marked("{what} {server}: removed {ranks}")),
    "ranks-renumbered": _renumbered_there,
    "ranks-moved": _moved_there,
    "device-field": _field_there,
}
