"""Rules for MindSpore's cross-cluster extension of version 1.0."""

from __future__ import annotations

from hccl_tools.check.rules import server_groups
from hccl_tools.check.rules.registry import Findings, rule
from hccl_tools.common.language import tr
from hccl_tools.table.view import View

_FORMAT = ("cross_cluster",)


@rule("cluster-membership", _FORMAT)
def server_not_in_one_cluster(view: View) -> Findings:
    """A server is in no cluster, or in two.

    Why: MindSpore's manual: every server is in one cluster of cluster_list.
    Remedy: list each server under its own cluster, once.
    """
    yield from server_groups.not_in_one_group(view, "cluster_list", tr("cluster"))


@rule("unknown-server", _FORMAT)
def cluster_has_unknown_server(view: View) -> Findings:
    """A cluster lists a server that is not in server_list.

    Why: MindSpore's manual: cluster_list groups the servers of server_list.
    Remedy: write a server_id from server_list, or remove the entry.
    """
    yield from server_groups.unknown_servers(view, "cluster_list")


@rule("duplicate-cluster", _FORMAT)
def cluster_listed_twice(view: View) -> Findings:
    """Two clusters have the same cluster_id.

    Why: cluster_id names the cluster; two entries with the same name are the same cluster twice.
    Remedy: list each cluster once, with all its servers.
    """
    yield from server_groups.listed_twice(view, "cluster_list", "cluster_id")
