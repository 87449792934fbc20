"""The command diff_hccl.py, where a table has no servers (version 2.0), or is a list of hosts."""

import json

import good_tables
import pytest
from good_tables import hosts_of_950

from hccl_tools.check import schema_check
from hccl_tools.commands import diff

# ---- version 2.0, by networks ----------------------------------------------------------------------


def test_two_tables_of_ranks_are_compared_by_network(differences):
    assert differences(hosts_of_950(0, 1, 2), hosts_of_950(1, 2)) == [
        "network srv0 was removed; it had ranks 0-3",
        "renumbered: ranks 4-11 on 2 networks, srv1 to srv2, now 0-7",
    ]
    assert differences(hosts_of_950(1), hosts_of_950(1, 0)) == ["network srv0 was added, with ranks 4-7"]
    assert differences(hosts_of_950(0, 1), hosts_of_950(1, 0)) == [
        "renumbered: ranks 0-3 on network srv0, now 4-7",
        "renumbered: ranks 4-7 on network srv1, now 0-3",
    ]
    assert differences(hosts_of_950(0, 1), hosts_of_950(0, 2)) == [
        "network srv1 was removed; it had ranks 4-7",
        "network srv2 was added, with ranks 4-7",
        "moved: ranks 4-7 from network srv1 to network srv2",
    ]
    fewer = hosts_of_950(0, 1)
    fewer["rank_list"] = fewer["rank_list"][:6]
    fewer["rank_count"] = 6
    assert differences(hosts_of_950(0, 1), fewer) == ["network srv1: removed ranks 6,7"]
    assert differences(fewer, hosts_of_950(0, 1)) == ["network srv1: added ranks 6,7"]
    other = hosts_of_950(0, edits={f"/rank_list/{n}/local_id": n + 8 for n in (2, 3)})
    assert differences(hosts_of_950(0), other) == ["moved: ranks 2,3 on network srv0 to other places of it"]


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ({"level_list/1/rank_addr_list/0/addr": "10.9.9.9"}, 'net_layer 2 addr: "10.78.0.2" -> "10.9.9.9"'),
        ({"level_list/0/rank_addr_list/0/ports": ["0/9"]}, 'net_layer 0 ports: ["0/0"] -> ["0/9"]'),
        ({"level_list/1/net_type": "A3_SERVER"}, 'net_layer 2 net_type: "CLOS" -> "A3_SERVER"'),
        ({"level_list/1/net_attr": "x"}, 'net_layer 2 net_attr: "" -> "x"'),
        ({"level_list/1/rank_addr_list": []}, 'net_layer 2 addr: "10.78.0.2" -> []'),
        ({"device_id": 7}, 'device_id: "1" -> "7"'),
        ({"device_port": 16666}, 'device_port: missing -> "16666"'),
    ],
    ids=lambda value: "" if isinstance(value, str) else next(iter(value)),
)  # fmt: skip
def test_what_changed_of_a_rank_is_named_with_its_layer(differences, edit, said):
    edits = {f"/rank_list/1/{key}": value for key, value in edit.items()}
    assert f"network srv0: rank 1: {said}" in differences(hosts_of_950(0), hosts_of_950(0, edits=edits))


def test_a_key_for_which_the_format_has_no_place_is_not_compared(compared):
    other = hosts_of_950(0, edits={"/rank_list/1/slot": 3})
    status, out, _ = compared(hosts_of_950(0), other)
    assert status == 0 and "not compared, because one of the formats has no place for it: slot" in out


def test_what_is_left_out_means_the_usual(compared):
    other = hosts_of_950(0)
    for rank in other["rank_list"]:
        for level in rank["level_list"]:
            del level["net_attr"]
    assert compared(hosts_of_950(0), other)[0] == 0


def test_a_spare_shares_the_place_of_another_so_ranks_are_compared_by_number(differences):
    spares = {"/rank_list/2/local_id": 64, "/rank_list/3/local_id": 64}
    replaced = {f"/rank_list/{n}/replaced_local_id": n for n in (2, 3)}
    a, b = (
        hosts_of_950(0, edits={**spares, **replaced}),
        hosts_of_950(0, edits={**spares, **replaced, "/rank_list/3/device_id": 9}),
    )
    assert differences(a, b) == ['rank 3: device_id: "3" -> "9"']


# ---- lists of hosts --------------------------------------------------------------------------------


@pytest.fixture
def with_hosts(world, in_process):
    """with_hosts(table or text, table or text, "--facts", "hosts", hosts=text): as `compared`."""

    def start(a, b, *words, hosts=""):
        for name, each in {"a": a, "b": b, "hosts": hosts}.items():
            (world / name).write_text(each if isinstance(each, str) else json.dumps(each))
        return in_process(diff.main, "a", "b", *words)

    return start


def test_two_lists_of_hosts_are_compared_by_their_ranks(with_hosts):
    status, out, err = with_hosts(
        "10.0.0.1 slots=4\n10.0.0.2 slots=4\n", "10.0.0.2 slots=4\n10.0.0.3 slots=6\nn9 slots=1 spare\n"
    )
    assert (status, err) == (1, "diff_hccl.py: b: not compared: the spare hosts (1 host)\n")
    assert out.splitlines() == [
        "a: a: the list of hosts, servers: 2, ranks: 8",
        "b: b: the list of hosts, servers: 2, ranks: 10",
        "server 10.0.0.1 was removed; it had ranks 0-3",
        "server 10.0.0.3 was added, with ranks 4-9",
        "renumbered: ranks 4-7 on server 10.0.0.2, now 0-3",
        "3 differences",
    ]
    assert with_hosts("n1:8,n2:8\n", "n1 slots=8\nn2 slots=8\n")[0] == 0


def test_a_list_of_hosts_knows_a_server_by_its_address(with_hosts):
    hosts = "172.16.0.1 slots=2\n172.16.0.2 slots=3\n172.16.0.3 slots=2\n"
    status, out, _ = with_hosts(good_tables.super_pods(), hosts)
    assert status == 1 and out.splitlines()[2:] == [
        "format: version 1.2 (A3 super pod) -> the list of hosts",
        "renumbered: ranks 4,5 on server 172.16.0.3, now 5,6",
        "server 172.16.0.2: added rank 4",
        "not compared, because one of the formats has no place for it: super_pod_list, device_id, super_device_id, "
        "device_ip, device_port, backup_device_ip, backup_device_port, host_port, server_id",
        "3 differences",
    ]
    found = json.loads(with_hosts(good_tables.super_pods(), hosts, "--json")[1])
    assert (found["compared_by"], found["b"]["format"], found["b"]["servers"]) == ("hosts", "hosts", 3)
    assert not schema_check.problems_by_name(found, "rank_table_difference")


def test_facts_say_where_the_ranks_of_version_2_0_are(with_hosts):
    hosts = "10.0.0.1 slots=2\n10.0.0.2 slots=2\n"
    older, newer = good_tables.servers(2, 2), hosts_of_950(0, 1, size=2)
    newer["rank_list"] = [{**rank, "rank_id": 3 - rank["rank_id"]} for rank in newer["rank_list"]]
    status, out, err = with_hosts(older, newer, "--facts", "hosts", hosts=hosts)
    assert (status, err) == (1, "") and out.splitlines()[3:] == [
        "renumbered: rank 0 on server 10.0.0.1, now 1",
        "renumbered: rank 1 on server 10.0.0.1, now 0",
        "renumbered: rank 2 on server 10.0.0.2, now 3",
        "renumbered: rank 3 on server 10.0.0.2, now 2",
        "not compared, because one of the formats has no place for it: device_ip, local_id, level_list",
        "5 differences",
    ]
    assert json.loads(with_hosts(older, newer, "--json")[1])["compared_by"] == "ranks"
    status, out, err = with_hosts(older, newer, "--facts", "hosts", hosts="10.0.0.1 slots=9\n")
    assert (status, out) == (2, "")
    assert err.startswith("diff_hccl.py: b: hosts has places for 9 ranks, but the table has 4 ranks; give one about")
