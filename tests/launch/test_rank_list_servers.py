"""The servers of a rank table of version 2.0, which a list of hosts names; whole launches are in run_cluster.bats."""

import json

import good_tables
import pytest
from launching import request

from hccl_tools.build import merging
from hccl_tools.check import verdict
from hccl_tools.common.refusal import REFUSED, USAGE, Refusal
from hccl_tools.table import rank_table
from tools.launch.hosts import all_servers, rank_list_servers, table_servers


def table(*sizes):
    named = [merging.Named(name=str(n), table=good_tables.host_of_950(n, size)) for n, size in enumerate(sizes)]
    return merging.merge(named)


def places(servers):
    return [(server.server_id, [(device.rank_id, device.device_id) for device in server.devices]) for server in servers]


def test_the_hosts_take_the_ranks_in_the_order_of_both():
    listed = table(2, 1)
    listed["rank_list"].reverse()
    found = rank_list_servers.of(listed, [("me@node1", 2), ("node2", 1)], "t.json")
    assert places(found) == [("node1", [("0", "0"), ("1", "1")]), ("node2", [("2", "0")])]
    assert [server.names for server in found] == [["node1"], ["node2"]]
    assert [device.pointer for device in found[0].devices] == ["/rank_list/2", "/rank_list/1"]


@pytest.mark.parametrize(
    ("hosts", "said"),
    [
        ([("a", 2)], "t.json has 4 ranks, the hosts have room for 2; name the hosts of this table"),
        ([("a", 2), ("b", None)], "the number of ranks on b is missing; write node1:8, or slots=8 in a hostfile"),
        ([("a", 3), ("b", 1)], "with t.json, host a would have ranks 0 to 2, and use device 0 twice; write how many"),
        ([("a", 4)], "with t.json, host a would have ranks 0 to 3, and use devices 0,1 twice; write how many"),
    ],
)
def test_where_the_ranks_are_is_never_guessed(hosts, said):
    with pytest.raises(Refusal) as refusal:
        rank_list_servers.of(table(2, 2), hosts, "t.json")
    assert refusal.value.status == REFUSED and said in refusal.value.lines[0]
    assert refusal.value.lines[0].startswith("--table_hosts: ")


def test_the_option_takes_hosts_or_a_file_of_them(world):
    (world / "hosts").write_text("me@node1 slots=2\nnode2 slots=1\n")
    assert rank_list_servers.given("hosts") == [("node1", 2), ("node2", 1)]
    assert rank_list_servers.given("node1:2,node2:1") == [("node1", 2), ("node2", 1)]
    assert rank_list_servers.given("node[1-2]:8") == [("node1", 8), ("node2", 8)]
    (world / "spare").write_text("node1 slots=2\nnode2 slots=1 spare\n")
    for text, said in (
        ("spare", "each host of a table has ranks; leave out the spare hosts: node2"),
        ("-oProxyCommand=x:2", "is neither a host's name nor an IPv4 address"),
        ("", "there is no host in it"),
        ("node1:x", "has no number of ranks"),
    ):
        with pytest.raises(Refusal) as refusal:
            rank_list_servers.given(text)
        assert refusal.value.status == USAGE
        assert refusal.value.lines[0].startswith("--table_hosts: ") and said in refusal.value.lines[0]


def test_a_table_of_another_version_has_its_servers(world):
    (world / "t.json").write_text(json.dumps(good_tables.servers(2)))
    with pytest.raises(Refusal, match="--table_hosts: t.json says on which hosts its ranks are; leave the option out"):
        table_servers.read_table("t.json", None, [("a", 2)])
    read = table_servers.read_table("t.json", None, [("a", 2)], "--hostfile")  # which names the hosts of all tables
    assert [server.name for server in read.servers] == ["10.0.0.1"]


def test_the_table_is_the_same_file_on_every_host(world):
    text = rank_table.dump(table(2, 2))
    (world / "t.json").write_text(text)
    read = table_servers.read_table("t.json", "950", [("a", 2), ("b", 2)])
    assert read.data == text.encode() and not read.is_rewritten
    assert [(server.name, server.ranks) for server in read.servers] == [
        ("a", [(0, 0), (1, 1)]),
        ("b", [(2, 0), (3, 1)]),
    ]


def servers(whole, hosts):
    return [table_servers.Server(each) for each in rank_list_servers.of(whole, hosts, "t.json")]


def test_a_host_that_is_lost_leaves_a_part_with_ranks_from_0():
    whole = table(2, 2, 2)
    found = servers(whole, [("a", 2), ("b", 2), ("c", 2)])
    part = all_servers.part_of(whole, [found[0], found[2]], "950")
    assert verdict.check(part, "950") == [] and part["rank_count"] == 4
    networks = [rank["level_list"][0]["net_instance_id"] for rank in part["rank_list"]]
    assert networks == ["srv0", "srv0", "srv2", "srv2"]


def test_a_spare_host_stands_by_with_the_whole_table_kept(world):
    whole = table(2, 2, 2)
    found = servers(whole, [("a", 2), ("b", 2), ("c", 2)])
    data = rank_table.dump(whole).encode()
    wanted = request(script="run_cluster.sh", engine="mpirun", hostfile="hosts")
    made = {}

    def placed(_request, active, standing_by):
        made.update(active=[each.name for each in active], spare=list(standing_by))
        return "placement"

    before, all_servers.placed = all_servers.placed, placed
    try:
        placement, written = all_servers.with_part(wanted, data, found, ["c"], str(world))
    finally:
        all_servers.placed = before
    assert (placement, made) == ("placement", {"active": ["a", "b"], "spare": ["c"]})
    assert written.path == f"{world}/hccl_4p.json" and json.loads(written.text)["rank_count"] == 4
    assert written.whole == (f"{world}/hccl_with_spares.json", data.decode())


def test_hosts_without_slots_were_all_asked_for_the_same_devices():
    found = all_servers.servers_of(table(2, 2), [("a", None), ("b", None)])
    assert [(server.name, len(server.ranks)) for server in found] == [("a", 2), ("b", 2)]
