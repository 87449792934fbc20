"""One side of a comparison: the job that a rank table or a list of hosts describes, in any format."""

from __future__ import annotations

from collections.abc import Sequence

from hccl_tools.check import schema_check, verdict
from hccl_tools.common.documents import JsonObject
from hccl_tools.common.language import tr
from hccl_tools.common.problem import errors
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import USAGE, Refusal
from hccl_tools.common.words import one_line, some
from hccl_tools.convert import filling, reading
from hccl_tools.convert.job import HOSTS, NO_SERVER, Job
from hccl_tools.table import formats

GROUPS = {"super_pod_list": "super_pod_id", "cluster_list": "cluster_id"}  # of servers, and what names one
_UNREAD = ("host_nic_ip",)  # HCCL never reads it, and tools write it or do not


class Side(Record):
    """A table to compare.

    name:    its file, as messages name it.
    table:   the document.
    job:     what it states; its servers have super_pod_id and cluster_id, too.
    head:    the values of the table itself, with its groups of servers as {id: what else is known of it}.
    warning: a line about what is wrong with it, or empty.
    """

    name: str
    table: JsonObject
    job: Job
    head: JsonObject
    warning: str

    @property
    def has_servers(self) -> bool:
        """Whether the table states on which server each rank is."""
        return NO_SERVER not in self.job.owners


def of(data: bytes, name: str) -> Side:
    """The Side of a table's bytes.  A bad table is taken if its ranks and devices are clear.  Raises Refusal."""
    if reading.is_list_of_hosts(data):
        return _of_hosts(data, name)
    table, problems = verdict.check_bytes(data)
    if table is None or (bad := errors(problems)) and not _has_form(table):
        raise reading.refusal(USAGE, errors(problems), name)
    form, _ = formats.detect(table)
    if bad and form.startswith("legacy"):  # HCCL numbers its ranks by all that is in it
        raise reading.refusal(USAGE, errors(problems), name)
    job = reading.of_table(table)
    if bad and not _is_clear(job):
        raise reading.refusal(USAGE, errors(problems), name)
    head = {key: value for key, value in job.head.items() if key not in GROUPS}
    if "status" in table:
        head["status"] = table["status"]
    servers = [{key: value for key, value in server.items() if key not in _UNREAD} for server in job.servers]
    for key, name_key in GROUPS.items():
        if key in job.head:
            head[key] = _described(job.head[key], name_key)
            servers = _members(servers, job.head[key], name_key)
    job = job.replace(servers=servers)
    return Side(name=name, table=table, job=job, head=head, warning=verdict.advice(bad) if bad else "")


def _of_hosts(data: bytes, name: str) -> Side:
    try:
        job, lost = reading.read(data, name)
    except Refusal as refusal:
        raise Refusal(USAGE, *refusal.lines) from refusal
    hosts = [(server["server_id"], len(devices)) for server, devices in job.groups()]
    warning = tr("not compared: {keys}", keys=some(lost, len(lost))) if lost else ""
    return Side(name=name, table={HOSTS: hosts}, job=job, head={}, warning=warning)


def with_places(side: Side, facts: filling.Facts) -> Side:
    """The side, whose ranks get the servers and devices that they lack from the facts.  Raises Refusal."""
    try:
        return side.replace(job=filling.placed(side.job, facts))
    except Refusal as refusal:
        raise Refusal(USAGE, *(f"{one_line(side.name)}: {line}" for line in refusal.lines)) from refusal


def _has_form(table: object) -> bool:
    form, foreign = formats.detect(table)
    return not foreign and not schema_check.problems_by_name(table, "rank_table_" + form)


def _is_clear(job: Job) -> bool:
    """Whether each rank is on one device, and each server and device is there once."""
    places = {(owner, device["device_id"]) for owner, device in zip(job.owners, job.devices)}
    processors = any(device["device_id"] == "-1" for device in job.devices)
    ranks = {device["rank_id"] for device in job.devices}
    names = {server["server_id"] for server in job.servers}
    one_place_each = len(places) == len(job.devices) or NO_SERVER in job.owners or processors
    return one_place_each and len(ranks) == len(job.devices) and len(names) == len(job.servers)


def _described(groups: Sequence[JsonObject], name_key: str) -> JsonObject:
    """{id: its keys but the id and the servers}"""
    return {
        group[name_key]: {key: value for key, value in group.items() if key not in (name_key, "server_list")}
        for group in groups
    }


def _members(servers: Sequence[JsonObject], groups: Sequence[JsonObject], name_key: str) -> list[JsonObject]:
    """The servers with the group that each is in."""
    group_of = {each["server_id"]: group[name_key] for group in groups for each in group["server_list"]}
    return [
        {**server, name_key: group_of[server["server_id"]]} if server["server_id"] in group_of else server
        for server in servers
    ]
