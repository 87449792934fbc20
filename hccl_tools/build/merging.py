"""Merges the rank tables of single servers into the table of their cluster.

Merging in steps gives the same result as merging at once.  Servers are sorted by server_id, by code points, as
MindSpore requires.  Ranks of version 2.0 keep the order of the inputs.  If two tables disagree, both are named.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter

from hccl_tools.build import rank_lists
from hccl_tools.check import verdict
from hccl_tools.common.documents import JsonObject
from hccl_tools.common.language import tr
from hccl_tools.common.problem import errors
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import BAD, Refusal
from hccl_tools.common.words import shown, some
from hccl_tools.table.address import packed

VERSIONS = ("1.0", "1.2", "2.0")  # the formats whose servers, or ranks, are a plain list
_COMPUTED = frozenset(["server_count", "server_list", "super_pod_list", *rank_lists.COMPUTED])
_ORDER = ("version", "server_count", "server_list", "super_pod_list", "status")
_server_id = itemgetter("server_id")


class Named(Record):
    """A table, and what the user calls it: usually its path."""

    name: str
    table: JsonObject


class Refused(Refusal):
    """These tables cannot be merged; one line per problem."""


def merge(inputs: Iterable[Named], generation: str | None = None) -> JsonObject:
    """The merged table of all `inputs`, which are checked before and after.  Raises Refused.

    generation: as for verdict.check; its rules look at the result.
    """
    inputs = list(inputs)
    _refuse(line for item in inputs for line in faults(item))
    table = combine(inputs)
    _refuse(_faults_of_result(table, inputs, generation))
    return table


def _refuse(lines: Iterable[str]) -> None:
    """Raises Refused if there are `lines`."""
    lines = list(lines)
    if lines:
        raise Refused(BAD, *lines)


def faults(item: Named) -> list[str]:
    """The reasons why one input cannot be merged at all, one line per problem."""
    lines = [problem.line(item.name) for problem in errors(verdict.check(item.table))]
    if not lines and item.table.get("version") not in VERSIONS:
        found = (
            tr("of version {version}", version=shown(item.table["version"]))
            if "version" in item.table
            else tr("without a version")
        )
        lines = [
            tr(
                "{name}: a table {found}; only tables of versions 1.0, 1.2 and 2.0 can be merged",
                name=item.name,
                found=found,
            )
        ]
    return lines


def combine(inputs: Sequence[Named]) -> JsonObject:
    """The merged table of `inputs`, each of which is valid by itself.  Raises Refused."""
    if any("rank_list" in item.table for item in inputs):
        _refuse(_differences(inputs))  # where only some have one, the versions are two
        _refuse(rank_lists.repeated_addresses((item.name, item.table) for item in inputs))
        return rank_lists.joined([item.table for item in inputs])
    _refuse([*_differences(inputs), *_repeated_servers(inputs)])
    _refuse(_repeated_addresses(inputs))
    entries = sorted((server for item in inputs for server in item.table["server_list"]), key=_server_id)
    pods = _join_pods(inputs)
    _refuse(_interleaved(entries, pods))
    merged = _without(inputs[0].table, _COMPUTED)
    merged["server_count"] = str(len(entries))
    merged["server_list"] = _renumbered(entries)
    if pods:
        merged["super_pod_list"] = pods
    known = [key for key in _ORDER if key in merged]
    return {key: merged[key] for key in [*known, *sorted(merged.keys() - known)]}


def _without(entry: JsonObject, keys: Iterable[str]) -> JsonObject:
    return {key: value for key, value in entry.items() if key not in keys}


def file_name(table: JsonObject) -> str:
    """The name that MindSpore's merge_hccl.py gives a merged table: ``hccl_2s_16p.json``; 2.0: ``hccl_16p.json``."""
    if "rank_list" in table:
        return f"hccl_{len(table['rank_list'])}p.json"
    servers = table["server_list"]
    return f"hccl_{len(servers)}s_{sum(len(server['device']) for server in servers)}p.json"


def _renumbered(entries: Iterable[JsonObject]) -> list[JsonObject]:
    """The servers with ranks 0..N-1 in their order; the order inside a server stays as it is."""
    first, renumbered = 0, []
    for server in entries:
        ranks = sorted(int(device["rank_id"]) for device in server["device"])
        place = {rank: str(first + position) for position, rank in enumerate(ranks)}
        devices = [{**device, "rank_id": place[int(device["rank_id"])]} for device in server["device"]]
        renumbered.append({**server, "device": devices})
        first += len(ranks)
    return renumbered


def _ids(item: Named) -> set[str]:
    return set(map(_server_id, item.table["server_list"]))


def _join_pods(inputs: Iterable[Named]) -> list[JsonObject]:
    """super_pod_list of the result: pods of one super_pod_id become one, all sorted by their ids."""
    joined: dict[
        str, tuple[JsonObject, list[JsonObject], Named]
    ] = {}  # {id: the first such pod, all its servers, its table}
    lines = []
    for item in inputs:
        for pod in item.table.get("super_pod_list", ()):
            name = pod["super_pod_id"]
            first, members, owner = joined.setdefault(name, (pod, [], item))
            members += pod["server_list"]
            for key in _unequal(_without(first, ["server_list"]), _without(pod, ["server_list"])):
                where = tr(
                    "{name}: /super_pod_list: {key} of super pod {pod}",
                    name=item.name,
                    key=shown(key),
                    pod=shown(name),
                )
                lines.append(
                    tr("{where} differs from the one in {name}; make them equal", where=where, name=owner.name)
                )
    _refuse(lines)
    return [{**pod, "server_list": sorted(members, key=_server_id)} for _, (pod, members, _) in sorted(joined.items())]


def _interleaved(entries: Iterable[JsonObject], pods: Iterable[JsonObject]) -> Iterator[str]:
    """One line for each server that is apart from the others of its super pod; HCCL's manual forbids that."""
    pod_of = {server["server_id"]: pod["super_pod_id"] for pod in pods for server in pod["server_list"]}
    current: str | None = None
    ended = {current}
    for server in entries:
        pod = pod_of.get(server["server_id"])
        if pod != current:
            ended.add(current)
            current = pod
            if pod in ended:
                yield tr(
                    "server {server} of super pod {pod}: its server_id sorts after servers of another pod, but "
                    "HCCL needs the servers of a pod next to each other; choose other server_ids",
                    server=shown(server["server_id"]),
                    pod=shown(pod),
                )


def _differences(inputs: Sequence[Named]) -> Iterator[str]:
    """A line for each top-level key on which an input and the first one disagree."""
    first = inputs[0]
    for item in inputs[1:]:
        for key in _unequal(_head(first.table), _head(item.table)):
            if key == "super_pod_list":
                lacking = item if key not in item.table else first
                yield tr(
                    "{name}: no super_pod_list, but others have one; build all tables in one "
                    "way: with --generation A3 on hosts of a super pod, without it elsewhere",
                    name=lacking.name,
                )
            else:
                values = [shown(table[key]) if key in table else "missing" for table in (item.table, first.table)]
                yield tr(
                    "{name}: {key} is {value}, but {other} in {file}; merge only tables that agree on it",
                    name=item.name,
                    key=shown(key),
                    value=values[0],
                    other=values[1],
                    file=first.name,
                )


def _head(table: JsonObject) -> JsonObject:
    """What all inputs must have in common; of the super pods only whether there are any."""
    head = _without(table, _COMPUTED)
    if "super_pod_list" in table:
        head["super_pod_list"] = None
    return head


def _unequal(one: JsonObject, other: JsonObject) -> list[str]:
    """The keys on which two objects differ, sorted; for JSON 1, 1.0 and true are three values."""
    return sorted(key for key in {**one, **other} if _text(one, key) != _text(other, key))


def _text(entry: JsonObject, key: str) -> str | None:
    return json.dumps(entry[key], sort_keys=True) if key in entry else None


def _repeated_servers(inputs: Sequence[Named]) -> Iterator[str]:
    """One line for each input that is an earlier result, and for each two inputs that share a server."""
    holders: dict[str, list[int]] = defaultdict(list)  # {server_id: numbers of the inputs with it}
    for number, item in enumerate(inputs):
        for server_id in _ids(item):
            holders[server_id].append(number)
    shared = {server_id: numbers for server_id, numbers in holders.items() if len(numbers) > 1}
    whole = _earlier_results(inputs, shared.values())
    for number, others in sorted(whole.items()):
        yield tr(
            "{name}: already contains the servers of {names} (the result of an earlier merge?); leave out this "
            "table, or the tables of those servers",
            name=inputs[number].name,
            names=some([inputs[number].name for number in others], 3),
        )
    pairs: dict[tuple[int, int], list[str]] = defaultdict(list)
    for server_id, numbers in shared.items():
        parts = [number for number in numbers if number not in whole]
        for number in parts[1:]:
            pairs[number, parts[0]].append(server_id)
    for (number, first), server_ids in sorted(pairs.items()):
        more = tr(" and {number} more", number=len(server_ids) - 1) if len(server_ids) > 1 else ""
        yield tr(
            "{name}: server_id {server_id}{more} is in {file} too; give each server once, under its own address",
            name=inputs[number].name,
            server_id=shown(min(server_ids)),
            more=more,
            file=inputs[first].name,
        )


def _earlier_results(inputs: Sequence[Named], shared: Iterable[list[int]]) -> dict[int, list[int]]:
    """{input that has all servers of smaller inputs, and more: those smaller inputs}, all as numbers."""
    touching: dict[int, set[int]] = defaultdict(set)
    for numbers in shared:
        for number in numbers:
            touching[number].update(set(numbers) - {number})
    found = {}
    for number, others in touching.items():
        mine = _ids(inputs[number])
        if all(_ids(inputs[other]) < mine for other in others):
            found[number] = sorted(others)
    return found


def _repeated_addresses(inputs: Iterable[Named]) -> Iterator[str]:
    """HCCL: "The IP is used repeatedly."  A line for each address that two inputs give to a device."""
    first: dict[bytes | str, tuple[Named, str]] = {}
    for item in inputs:
        for server_id, address in _addresses(item):
            before, owner = first.setdefault(packed(address) or address, (item, server_id))
            if before is not item:
                yield tr(
                    "{name}: device_ip {address} of server {server_id} belongs to server {owner} "
                    "in {file}; give each device its own (hccn_tool -ip -s)",
                    name=item.name,
                    address=shown(address),
                    server_id=shown(server_id),
                    owner=shown(owner),
                    file=before.name,
                )


def _addresses(item: Named) -> Iterator[tuple[str, str]]:
    """(server_id, address) of every address of a device."""
    for server in item.table["server_list"]:
        for device in server["device"]:
            for address in filter(None, device.get("device_ip", "").split(",")):
                yield server["server_id"], address


def _faults_of_result(table: JsonObject, inputs: Sequence[Named], generation: str | None) -> Iterator[str]:
    """What the check finds in the result, each line with the input that the server is from."""
    problems = errors(verdict.check(table, generation))
    origin = {name: item.name for item in inputs if "server_list" in item.table for name in _ids(item)}
    for problem in problems:
        _, *parts = problem.pointer.split("/")
        where = "merged"
        if len(parts) > 1 and parts[0] == "server_list":
            server_id = table["server_list"][int(parts[1])]["server_id"]
            where = tr("{name}: server {server_id}, once merged", name=origin[server_id], server_id=shown(server_id))
            problem = problem._replace(pointer="".join("/" + part for part in parts[2:]))
        yield problem.line(where)
