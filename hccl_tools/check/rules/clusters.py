"""Rules of MindSpore's cross-cluster extension of version 1.0."""

from hccl_tools.check.rules.registry import rule
from hccl_tools.check.rules.repeated import repeated
from hccl_tools.common.words import shown
from hccl_tools.table.view import objects, text

_FORMAT = ("cross_cluster",)


def _members(view):
    """(pointer, server_id) of every server that a cluster lists."""
    return [
        (f"/cluster_list/{n}/server_list/{m}/server_id", text(entry, "server_id"))
        for n, cluster in objects(view.table, "cluster_list")
        for m, entry in objects(cluster, "server_list")
    ]


@rule("cluster-membership", _FORMAT)
def server_not_in_one_cluster(view):
    """A server is in no cluster, or in two.

    Why: MindSpore's manual: every server is in one cluster of cluster_list.
    Mend: list each server under its own cluster, once.
    """
    members = _members(view)
    names = [name for _, name in members]
    yield from repeated(names, lambda index: members[index][0], "server_id", "list each server under one cluster")
    listed = set(names)
    for server in view.servers:
        if server.name is not None and server.name not in listed:
            yield server.pointer, f"server {shown(server.name)} is in no cluster", "list it in cluster_list"


@rule("unknown-server", _FORMAT)
def cluster_has_unknown_server(view):
    """A cluster lists a server that is not in server_list.

    Why: MindSpore's manual: cluster_list groups the servers of server_list.
    Mend: write a server_id of server_list, or take the entry away.
    """
    known = {server.name for server in view.servers}
    for place, name in _members(view):
        if name is not None and name not in known:
            yield place, f"server {shown(name)} is not in server_list", "write a server_id of server_list"


@rule("duplicate-cluster", _FORMAT)
def cluster_listed_twice(view):
    """Two clusters have one cluster_id.

    Why: cluster_id names the cluster; two of one name are one cluster twice.
    Mend: list each cluster once, with all its servers.
    """
    clusters = objects(view.table, "cluster_list")
    names = [text(cluster, "cluster_id") for _, cluster in clusters]
    place = lambda index: f"/cluster_list/{clusters[index][0]}/cluster_id"  # noqa: E731
    yield from repeated(names, place, "cluster_id", "list each cluster once, with all its servers")
