"""Several rank tables become one: the table of a cluster from those of its servers.

The result does not depend on the order of the inputs, and merging in steps gives the same as merging
at once.  Servers stand in the order that MindSpore requires: the dictionary order of server_id, by
code points.  Nothing is guessed: whatever two inputs disagree on is a refusal that names both.
"""

import json
from collections import defaultdict, namedtuple

from hccl_tools.check import verdict
from hccl_tools.common.problem import errors
from hccl_tools.common.words import one_line, shown
from hccl_tools.table.address import packed

VERSIONS = ("1.0", "1.2")  # the formats whose servers are a plain list
_COMPUTED = frozenset(["server_count", "server_list", "super_pod_list"])
_ORDER = ("version", "server_count", "server_list", "super_pod_list", "status")

Named = namedtuple("Named", "name table")  # name: what the user calls the table, usually its path


class Refused(Exception):
    """These tables do not make one; `lines` says why, a line a problem."""

    def __init__(self, lines):
        super().__init__("\n".join(lines))
        self.lines = lines


def merge(inputs, generation=None):
    """The one table of all `inputs` (Named), checked before and after.  Raises Refused.

    generation: as for check.check; its rules look at the result.
    """
    inputs = list(inputs)
    lines = [line for item in inputs for line in faults(item)]
    if lines:
        raise Refused(lines)
    table = combine(inputs)
    lines = _faults_of_result(table, inputs, generation)
    if lines:
        raise Refused(lines)
    return table


def faults(item):
    """What keeps one input from being merged at all, a line a problem."""
    lines = [problem.line(one_line(item.name)) for problem in errors(verdict.check(item.table))]
    if not lines and item.table.get("version") not in VERSIONS:
        found = f"version {shown(item.table['version'])}" if "version" in item.table else "without a version"
        lines = [f"{one_line(item.name)}: a table {found}; only tables of version 1.0 and of version 1.2 can be merged"]
    return lines


def combine(inputs):
    """The one table of `inputs`, each of which is good by itself.  Raises Refused."""
    lines = [*_differences(inputs), *_repeated_servers(inputs)]
    if not lines:
        lines = list(_repeated_addresses(inputs))
    if lines:
        raise Refused(lines)
    entries = sorted((server for item in inputs for server in item.table["server_list"]), key=_server_id)
    pods = _join_pods(inputs)
    _refuse_interleaved(entries, pods)
    merged = {key: value for key, value in inputs[0].table.items() if key not in _COMPUTED}
    merged["server_count"] = str(len(entries))
    merged["server_list"] = _renumbered(entries)
    if pods:
        merged["super_pod_list"] = pods
    known = [key for key in _ORDER if key in merged]
    return {key: merged[key] for key in [*known, *sorted(set(merged) - set(known))]}


def file_name(table):
    """The name that MindSpore's merge_hccl.py gives a merged table: ``hccl_2s_16p.json``."""
    servers = table["server_list"]
    return f"hccl_{len(servers)}s_{sum(len(server['device']) for server in servers)}p.json"


# ---- servers and ranks ---------------------------------------------------------------------------


def _renumbered(entries):
    """The servers with ranks 0..N-1 in their order; the order inside a server stays as it is."""
    first, renumbered = 0, []
    for server in entries:
        ranks = sorted(int(device["rank_id"]) for device in server["device"])
        place = {rank: str(first + position) for position, rank in enumerate(ranks)}
        devices = [{**device, "rank_id": place[int(device["rank_id"])]} for device in server["device"]]
        renumbered.append({**server, "device": devices})
        first += len(ranks)
    return renumbered


def _server_id(server):
    return server["server_id"]


def _ids(item):
    return {server["server_id"] for server in item.table["server_list"]}


# ---- super pods ----------------------------------------------------------------------------------


def _join_pods(inputs):
    """super_pod_list of the result: pods of one super_pod_id become one, all sorted by their ids."""
    pods, origin, lines = {}, {}, []
    for item in inputs:
        for pod in item.table.get("super_pod_list", ()):
            name = pod["super_pod_id"]
            if name not in pods:
                pods[name], origin[name] = {**pod, "server_list": list(pod["server_list"])}, item
                continue
            pods[name]["server_list"] += pod["server_list"]
            for key in _unequal(_without_servers(pods[name]), _without_servers(pod)):
                where = f"{one_line(item.name)}: /super_pod_list: {shown(key)} of super pod {shown(name)}"
                lines.append(f"{where} is not what it is in {one_line(origin[name].name)}; make them equal")
    if lines:
        raise Refused(lines)
    for pod in pods.values():
        pod["server_list"].sort(key=_server_id)
    return [pods[name] for name in sorted(pods)]


def _without_servers(pod):
    return {key: value for key, value in pod.items() if key != "server_list"}


def _refuse_interleaved(entries, pods):
    """HCCL's manual: the servers of one super pod stand next to one another."""
    pod_of = {server["server_id"]: pod["super_pod_id"] for pod in pods for server in pod["server_list"]}
    ended, current, lines = set(), None, []
    for server in entries:
        pod = pod_of.get(server["server_id"])
        if pod != current:
            ended.add(current)
            current = pod
            if pod in ended:
                lines.append(
                    f"server {shown(server['server_id'])} of super pod {shown(pod)}: by server_id it comes after "
                    "servers of another pod, but HCCL wants a pod's servers together; choose server_ids that sort so"
                )
    if lines:
        raise Refused(lines)


# ---- what inputs must agree on -------------------------------------------------------------------


def _differences(inputs):
    """A line for each top-level key on which an input and the first one disagree."""
    first = inputs[0]
    for item in inputs[1:]:
        for key in _unequal(_head(first.table), _head(item.table)):
            if key == "super_pod_list":
                lacking = item if key not in item.table else first
                yield (
                    f"{one_line(lacking.name)}: no super_pod_list, but others have one; build all tables in one way: "
                    "with --generation A3 on hosts of a super pod, without it elsewhere"
                )
            else:
                values = [shown(table[key]) if key in table else "missing" for table in (item.table, first.table)]
                yield (
                    f"{one_line(item.name)}: {shown(key)} is {values[0]}, but {values[1]} in {one_line(first.name)}; "
                    "merge only tables that agree on it"
                )


def _head(table):
    """What all inputs must have in common; of the super pods only whether there are any."""
    head = {key: value for key, value in table.items() if key not in _COMPUTED}
    if "super_pod_list" in table:
        head["super_pod_list"] = None
    return head


def _unequal(one, other):
    """The keys on which two objects differ, sorted; for JSON 1, 1.0 and true are three values."""
    return sorted(
        key for key in {**one, **other} if key not in one or key not in other or _text(one[key]) != _text(other[key])
    )


def _text(value):
    return value if isinstance(value, str) else [json.dumps(value, sort_keys=True)]


# ---- what inputs must not have in common ---------------------------------------------------------


def _repeated_servers(inputs):
    """A line for each input that is an earlier result, and for each two that share a server."""
    holders = defaultdict(list)
    for number, item in enumerate(inputs):
        for server_id in _ids(item):
            holders[server_id].append(number)
    shared = {server_id: numbers for server_id, numbers in holders.items() if len(numbers) > 1}
    whole = _earlier_results(inputs, shared)
    for number, others in sorted(whole.items()):
        yield (
            f"{one_line(inputs[number].name)}: already holds the servers of {_listed(inputs, others)} "
            "(an earlier result of merging?); leave it out, or leave those out"
        )
    pairs = defaultdict(list)
    for server_id, numbers in shared.items():
        first, *later = [number for number in numbers if number not in whole] or [None]
        for number in later:
            pairs[number, first].append(server_id)
    for (number, first), server_ids in sorted(pairs.items()):
        more = f" and {len(server_ids) - 1} more" if len(server_ids) > 1 else ""
        yield (
            f"{one_line(inputs[number].name)}: server_id {shown(min(server_ids))}{more} stands in "
            f"{one_line(inputs[first].name)} too; give each server once, under its own address"
        )


def _earlier_results(inputs, shared):
    """{number of an input that has all servers of smaller ones, and more: the smaller ones}."""
    touching = defaultdict(set)
    for numbers in shared.values():
        for number in numbers:
            touching[number].update(numbers)
    found = {}
    for number, others in touching.items():
        mine = _ids(inputs[number])
        others = sorted(others - {number})
        if all(_ids(inputs[other]) < mine for other in others):
            found[number] = others
    return found


def _listed(inputs, numbers):
    names = ", ".join(one_line(inputs[number].name) for number in numbers[:3])
    return f"{names} and {len(numbers) - 3} more" if len(numbers) > 3 else names


def _repeated_addresses(inputs):
    """HCCL: "The IP is used repeatedly."  A line for each address that two inputs give to a device."""
    first = {}
    for item in inputs:
        for server in item.table["server_list"]:
            for device in server["device"]:
                for address in device.get("device_ip", "").split(","):
                    before, owner = first.setdefault(packed(address) or address, (item, server["server_id"]))
                    if address and before is not item:
                        yield (
                            f"{one_line(item.name)}: device_ip {shown(address)} of server {shown(server['server_id'])} "
                            f"belongs to server {shown(owner)} in {one_line(before.name)}; give each device its own "
                            "(hccn_tool -ip -s)"
                        )


# ---- the result ----------------------------------------------------------------------------------


def _faults_of_result(table, inputs, generation):
    """What the check has to say about the result, each line under the input that the server is from."""
    problems = errors(verdict.check(table, generation))
    origin = {server_id: item.name for item in inputs for server_id in _ids(item)} if problems else {}
    lines = []
    for problem in problems:
        parts = problem.pointer.split("/")
        where = "merged"
        if len(parts) > 2 and parts[1] == "server_list":
            server_id = table["server_list"][int(parts[2])]["server_id"]
            where = f"{one_line(origin[server_id])}: server {shown(server_id)}, once merged"
            problem = problem._replace(pointer="".join("/" + part for part in parts[3:]))
        lines.append(problem.line(where))
    return lines
