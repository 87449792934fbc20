"""Reads a rank table in any format, or a list of hosts, as a Job."""

from __future__ import annotations

from collections.abc import Sequence

from hccl_tools.build import from_legacy
from hccl_tools.check import verdict
from hccl_tools.common.documents import JsonObject
from hccl_tools.common.language import tr
from hccl_tools.common.problem import Problem, errors
from hccl_tools.common.refusal import BAD, Refusal, faulty
from hccl_tools.common.words import count, one_line
from hccl_tools.convert.job import HOSTS, NO_SERVER, Job
from hccl_tools.hosts import hostfile
from hccl_tools.table import formats, rank_table
from hccl_tools.table.view import View

MOST_PROBLEMS = 20  # of a table that is not to be corrected here; validate_hccl.py lists all
_COMPUTED = frozenset(["version", "status", "server_count", "rank_count", "group_count", "deploy_mode"])
_LISTS = frozenset(["server_list", "rank_list", "node_list", "group_list"])

_NUMBERS = ("rank_id", "device_id", "device_port", "host_port")  # of version 2.0, which are texts in the others


def read(data: bytes, name: str) -> tuple[Job, list[str]]:
    """The Job from the bytes of a file that messages call `name`, and the content that a Job lacks.  Raises Refusal."""
    if is_list_of_hosts(data):
        return _of_hosts(hostfile.parse(data, one_line(name)), name)
    table, problems = verdict.check_bytes(data)
    if errors(problems):
        raise refusal(BAD, errors(problems), name)
    return of_table(table), []


def refusal(status: int, problems: Sequence[Problem], where: str) -> Refusal:
    """The Refusal of a table with these problems: the first of them, and how many more there are."""
    lines = [problem.line(where) for problem in problems[:MOST_PROBLEMS]]
    if more := len(problems) - len(lines):
        lines.append(tr("{where}: and {number} that are not listed", where=where, number=count(more, "problem")))
    return Refusal(status, *lines)


def is_list_of_hosts(data: bytes) -> bool:
    """Whether these bytes are meant as a list of hosts.  Anything else that is not JSON is a bad table."""
    start = data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if start in (b"{", b"[", b'"', b""):
        return False
    try:
        hostfile.parse(data, "")
    except hostfile.HostfileError:
        return b"slots" in data and rank_table.parse(data)[0] is None
    return rank_table.parse(data)[0] is None


def of_table(table: JsonObject) -> Job:
    """The Job of a table without errors."""
    name, _ = formats.detect(table)
    if name == "v2.0":
        return _of_ranks(table)
    view = View(table, name)
    if name in from_legacy.LEGACY:
        return _of_legacy(table, view)
    renamed = {view.ip_key: "device_ip"}
    servers, devices, owners = [], [], []
    for number, server in enumerate(view.servers):
        rest = {key: value for key, value in server.entry.items() if key not in (view.name_key, view.device_key)}
        servers.append({"server_id": server.name, **rest})
        for position in server.devices:
            entry = {renamed.get(key, key): value for key, value in view.devices[position].items()}
            devices.append({key: value for key, value in entry.items() if key != "device_ip" or value})
            owners.append(number)
    return Job(source=name, head=_head(table), servers=servers, devices=devices, owners=owners)


def _head(table: JsonObject) -> JsonObject:
    return {key: value for key, value in table.items() if key not in _COMPUTED and key not in _LISTS}


def _of_ranks(table: JsonObject) -> Job:
    ranks = sorted(table["rank_list"], key=lambda rank: int(rank["rank_id"]))
    devices = [{key: str(int(value)) if key in _NUMBERS else value for key, value in rank.items()} for rank in ranks]
    return Job(source="v2.0", head=_head(table), servers=[], devices=devices, owners=[NO_SERVER] * len(devices))


def _of_legacy(table: JsonObject, view: View) -> Job:
    """The Job of a legacy table: its version 1.0, and the names of its pods and group."""
    plain = from_legacy.converted(table)
    if plain is None:  # it has no errors, so it can be converted
        raise ValueError("not a good table of a legacy format")
    job = of_table(plain)
    pods = {server.name: server.entry["pod_name"] for server in view.servers if "pod_name" in server.entry}
    servers = [
        {**server, "pod_name": pods[server["server_id"]]} if server["server_id"] in pods else server
        for server in ({k: v for k, v in server.items() if k != "host_nic_ip"} for server in job.servers)
    ]
    names = [group["group_name"] for group in table["group_list"] if group.get("group_name")]
    group = {"group_name": names[0]} if names else {}
    return job.replace(source=view.format, head={**_head(table), **group}, servers=servers)


def _of_hosts(found: hostfile.Hosts, name: str) -> tuple[Job, list[str]]:
    hosts = [host for host in found.hosts if not host.spare]
    lost = []
    if spare := len(found.hosts) - len(hosts):
        lost.append(tr("the spare hosts ({number})", number=count(spare, "host")))
    if users := sum(host.login != host.name for host in hosts):
        lost.append(tr("the users before @ ({number})", number=count(users, "host")))
    for host in hosts:
        if host.slots is None:
            raise faulty(
                "{file}: {host} has no number of ranks; write {host} slots=N", file=one_line(name), host=host.name
            )
    owners = [number for number, host in enumerate(hosts) for _ in range(host.slots or 0)]
    return (
        Job(
            source=HOSTS,
            head={},
            servers=[{"server_id": host.name} for host in hosts],
            devices=[{"rank_id": str(rank)} for rank in range(len(owners))],
            owners=owners,
        ),
        lost,
    )
