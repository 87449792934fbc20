"""The command diff_hccl.py: what differs between two rank tables."""

import copy
import io
import json
import sys
from types import SimpleNamespace

import good_tables
import pytest

from hccl_tools.build import merging
from hccl_tools.check import schema_check
from hccl_tools.commands import diff
from hccl_tools.common import project
from hccl_tools.convert import reading
from hccl_tools.table import rank_table

SERVERS = "/server_list/"


@pytest.fixture
def compared(world, in_process):
    """compared(a, b, "--json"): (exit code, stdout, stderr) of the command for two documents."""

    def start(a, b, *words):
        (world / "a.json").write_text(json.dumps(a))
        (world / "b.json").write_text(json.dumps(b))
        return in_process(diff.main, "a.json", "b.json", *words)

    return start


@pytest.fixture
def differences(compared):
    """differences(a, b): the lines between those about the tables and the number of differences."""

    def start(a, b):
        status, out, err = compared(a, b)
        lines = out.splitlines()
        assert (status, err) == (1, ""), out
        assert lines[0].startswith("a: a.json: ") and lines[1].startswith("b: b.json: ")
        assert lines[-1].endswith(" difference" if lines[-1].startswith("1 ") else " differences")
        return lines[2:-1]

    return start


def renumbered(table):
    """The table with the ranks 0 to N-1 in its order."""
    rank = 0
    for server in table["server_list"]:
        for device in server["device"]:
            device["rank_id"] = str(rank)
            rank += 1
    return {**table, "server_count": str(len(table["server_list"]))}


def without(table, number):
    del table["server_list"][number]
    return renumbered(table)


# ---- alike -----------------------------------------------------------------------------------------


def test_a_table_is_the_same_as_itself(compared, table):
    status, out, err = compared(table(2, 4), table(2, 4))
    assert (status, err) == (0, "")
    assert out == (
        "a: a.json: version 1.0, servers: 2, ranks: 6\n"
        "b: b.json: version 1.0, servers: 2, ranks: 6\n"
        "the tables are the same\n"
    )


@pytest.mark.parametrize("make", (good_tables.servers, *good_tables.FORMATS), ids=lambda make: make.__name__)
def test_every_format_can_be_compared_with_itself(compared, make):
    document = make()
    assert compared(document, {**document, "x": None} if "version" in document else document)[0] in (0, 1)
    assert compared(document, document)[1].endswith("the tables are the same\n")


def test_another_order_is_the_same_meaning_and_the_hosts_need_one_file_all_the_same(compared, table):
    other = table(2, 4)
    other["server_list"].reverse()
    status, out, _ = compared(table(2, 4), other)
    assert status == 0 and out.splitlines()[-1] == (
        "the tables mean the same; the servers are in another order; "
        "give every host the same file: HCCL compares the tables of all ranks (EI0005)"
    )
    other["server_list"][0]["device"].reverse()
    assert (
        "the servers are in another order, the devices of a server are in another order"
        in compared(table(2, 4), other)[1]
    )
    pods = good_tables.super_pods()
    pods["super_pod_list"].reverse()
    status, out, _ = compared(good_tables.super_pods(), pods)
    assert status == 0 and "super_pod_list is in another order" in out


@pytest.mark.parametrize(
    ("edits", "others"),
    [
        ({"/server_list/0/device/0/device_ip": "fd00::1"}, {"/server_list/0/device/0/device_ip": "fd00:0::1"}),
        ({"/server_list/0/device/0/device_ip": ""}, {"/server_list/0/device/0/device_ip": ...}),
        ({"/server_list/0/host_nic_ip": ...}, {}),
        ({"/server_list/0/server_id": "node_0 "}, {"/server_list/0/server_id": "node_0"}),
    ],
)
def test_what_hccl_reads_alike_is_the_same_meaning(compared, table, edits, others):
    status, out, _ = compared(table(1, edits=edits), table(1, edits=others))
    assert status == 0 and "the tables mean the same; they are written in another way; " in out


# ---- what differs ----------------------------------------------------------------------------------


def test_a_server_that_went_moves_the_numbers_of_those_after_it(differences, table):
    assert differences(table(2, 2, 4), without(table(2, 2, 4), 0)) == [
        "server 10.0.0.1 was removed; it had ranks 0,1 on devices 0,1",
        "renumbered: ranks 2-7 on 2 servers, 10.0.0.2 to 10.0.0.3, now 0-5",
    ]
    assert differences(without(table(2, 2), 0), table(2, 2)) == [
        "server 10.0.0.1 was added, with ranks 0,1 on devices 0,1",
        "renumbered: ranks 0,1 on server 10.0.0.2, now 2,3",
    ]


def test_servers_that_change_places_have_other_numbers(differences, table):
    other = table(2, 2)
    other["server_list"].reverse()
    assert differences(table(2, 2), renumbered(other)) == [
        "renumbered: ranks 0,1 on server 10.0.0.1, now 2,3",
        "renumbered: ranks 2,3 on server 10.0.0.2, now 0,1",
    ]


def test_ranks_on_a_server_in_the_place_of_another_moved(differences, table):
    other = good_tables.servers(4, 4, 4)
    del other["server_list"][1]
    a, b = without(table(4, 4, 4), 2), renumbered(other)
    assert differences(a, b) == [
        "server 10.0.0.2 was removed; it had ranks 4-7 on devices 0-3",
        "server 10.0.0.3 was added, with ranks 4-7 on devices 0-3",
        "moved: ranks 4-7 from server 10.0.0.2, devices 0-3, to server 10.0.0.3, devices 0-3",
    ]


def test_ranks_on_other_devices_of_their_server_moved(differences, table):
    edits = {f"/server_list/1/device/{n}/device_id": str(n + 4) for n in range(2)}
    assert differences(table(2, 2), table(2, 2, edits=edits)) == [
        "moved: ranks 2,3 on server 10.0.0.2 from devices 0,1 to devices 4,5",
    ]


def test_devices_that_a_server_has_more_or_fewer(differences, table):
    assert differences(table(4), table(2)) == ["server 10.0.0.1: removed devices 2,3, which had ranks 2,3"]
    assert differences(table(2), table(4)) == ["server 10.0.0.1: added devices 2,3, with ranks 2,3"]


def test_a_server_with_another_name_and_the_same_cards_was_renamed(differences, table):
    other = table(2, 2, edits={"/server_list/1/server_id": "node_1", "/server_list/1/host_ip": "10.0.0.2"})
    assert differences(table(2, 2), other) == [
        "server 10.0.0.2 is now node_1, with the same devices",
    ]
    other["server_list"][1]["host_ip"] = "10.0.0.7"
    assert differences(table(2, 2), other)[1:] == ['server node_1: host_ip: "10.0.0.2" -> "10.0.0.7"']
    nowhere = {f"/server_list/0/device/{n}/device_ip": ... for n in range(2)}
    other = table(2, edits={**nowhere, "/server_list/0/server_id": "x"})
    assert (
        differences(table(2, edits=nowhere), other)[0] == "server 10.0.0.1 was removed; it had ranks 0,1 on devices 0,1"
    )


def test_an_address_that_changed_is_named_with_its_device(differences, table):
    edits = {"/server_list/0/device/1/device_ip": "10.1.1.1"}
    assert differences(table(2), table(2, edits=edits)) == [
        'server 10.0.0.1: device 1: device_ip: "192.168.100.2" -> "10.1.1.1"'
    ]
    edits["/server_list/0/device/0/device_ip"] = ...
    assert differences(table(2), table(2, edits=edits)) == [
        'server 10.0.0.1: devices 0,1: device_ip: "192.168.100.1" -> missing for the first, and 1 more'
    ]


def test_super_pods_and_clusters_are_compared_by_server(differences):
    edits = {"/super_pod_list/1/super_pod_id": "c", "/server_list/2/device/0/super_device_id": "9"}
    assert differences(good_tables.super_pods(), good_tables.edited(good_tables.super_pods(), edits)) == [
        'server node_2: super_pod_id: "b" -> "c"',
        'server node_2: device 0: super_device_id: "4" -> "9"',
    ]
    found = differences(
        good_tables.clusters(), good_tables.edited(good_tables.clusters(), {"/cluster_list/0/network_type": "x"})
    )
    assert len(found) == 1 and found[0].startswith("cluster_list: ")


def test_another_format_is_a_difference_and_what_it_cannot_say_is_named(compared):
    a = good_tables.super_pods()
    b = {**copy.deepcopy(a), "version": "1.0"}
    del b["super_pod_list"]
    for server in b["server_list"]:
        for device in server["device"]:
            del device["super_device_id"], device["backup_device_ip"], device["backup_device_port"]
    status, out, _ = compared(a, b)
    assert status == 1 and out.splitlines()[2:] == [
        "format: version 1.2 (A3 super pod) -> version 1.0",
        "not compared, because one of the formats has no place for it: "
        "super_pod_list, super_device_id, backup_device_ip, backup_device_port",
        "1 difference",
    ]


def test_a_table_without_servers_and_another_one_are_compared_by_rank(differences, table):
    assert differences(good_tables.rank_list(), table(3)) == [
        "format: version 2.0 (Ascend 950) -> version 1.0",
        "added: rank 2",
        'ranks 0,1: device_port: "16666" -> missing for the first, and 1 more',
        "not compared, because one of the formats has no place for it: local_id, level_list, device_ip, server_id",
    ]


# ---- version 2.0, by networks ----------------------------------------------------------------------


def of_950(*hosts, size=4, edits=None):
    """The table of these 950 hosts, in this order."""
    named = [merging.Named(name=str(n), table=good_tables.host_of_950(host, size)) for n, host in enumerate(hosts)]
    return good_tables.edited(merging.merge(named), edits or {})


def test_two_tables_of_ranks_are_compared_by_network(differences):
    assert differences(of_950(0, 1, 2), of_950(1, 2)) == [
        "network srv0 was removed; it had ranks 0-3",
        "renumbered: ranks 4-11 on 2 networks, srv1 to srv2, now 0-7",
    ]
    assert differences(of_950(1), of_950(1, 0)) == ["network srv0 was added, with ranks 4-7"]
    assert differences(of_950(0, 1), of_950(1, 0)) == [
        "renumbered: ranks 0-3 on network srv0, now 4-7",
        "renumbered: ranks 4-7 on network srv1, now 0-3",
    ]
    assert differences(of_950(0, 1), of_950(0, 2)) == [
        "network srv1 was removed; it had ranks 4-7",
        "network srv2 was added, with ranks 4-7",
        "moved: ranks 4-7 from network srv1 to network srv2",
    ]
    fewer = of_950(0, 1)
    fewer["rank_list"] = fewer["rank_list"][:6]
    fewer["rank_count"] = 6
    assert differences(of_950(0, 1), fewer) == ["network srv1: removed ranks 6,7"]
    assert differences(fewer, of_950(0, 1)) == ["network srv1: added ranks 6,7"]
    other = of_950(0, edits={f"/rank_list/{n}/local_id": n + 8 for n in (2, 3)})
    assert differences(of_950(0), other) == ["moved: ranks 2,3 on network srv0 to other places of it"]


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
    assert f"network srv0: rank 1: {said}" in differences(of_950(0), of_950(0, edits=edits))


def test_what_is_left_out_means_the_usual(compared):
    other = of_950(0)
    for rank in other["rank_list"]:
        for level in rank["level_list"]:
            del level["net_attr"]
    assert compared(of_950(0), other)[0] == 0


def test_a_spare_shares_the_place_of_another_so_ranks_are_compared_by_number(differences):
    spares = {"/rank_list/2/local_id": 64, "/rank_list/3/local_id": 64}
    replaced = {f"/rank_list/{n}/replaced_local_id": n for n in (2, 3)}
    a, b = of_950(0, edits={**spares, **replaced}), of_950(0, edits={**spares, **replaced, "/rank_list/3/device_id": 9})
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
    older, newer = good_tables.servers(2, 2), of_950(0, 1, size=2)
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


def test_a_legacy_table_means_what_its_version_1_0_means(differences):
    found = differences(good_tables.cloud(), good_tables.servers(1, 1))
    assert found[0] == "format: the legacy cloud format -> version 1.0"
    assert any("device_ip" in line for line in found[1:])


def test_ranks_on_processors_are_told_by_their_numbers(differences):
    a = good_tables.heterogeneous()
    a["node_list"][0]["ranks"] = [
        {"rank_id": str(n), "device_id": "-1", "rank_ip": f"10.0.1.{n + 1}"} for n in range(2)
    ]
    a["node_list"][1]["ranks"][0]["rank_id"] = "2"
    b = good_tables.edited(copy.deepcopy(a), {"/node_list/0/ranks/1/rank_ip": "10.0.1.9"})
    assert differences(a, b) == ['server 10.0.0.1: processors: device_ip: "10.0.1.2" -> "10.0.1.9"']


# ---- output ----------------------------------------------------------------------------------------


def many(servers, last=1):
    """A table of servers with eight devices each."""
    listed, rank = [], 0
    for number in range(servers):
        ids = range(8)
        devices = [
            {
                "device_id": str(n),
                "device_ip": f"10.{number >> 8}.{number & 255}.{n * 2 + last}",
                "rank_id": str(rank + n),
            }
            for n in ids
        ]
        rank += 8
        listed.append({"server_id": f"node_{number:05d}", "device": devices})
    return {"version": "1.0", "server_count": str(servers), "server_list": listed, "status": "completed"}


def test_a_change_of_all_servers_is_a_few_lines_until_all_are_asked_for(compared):
    status, out, _ = compared(many(300), many(300, 2))
    lines = out.splitlines()
    assert status == 1 and len(lines) == 14
    assert lines[-2:] == ["... and 290 more like it; --all lists them", "300 differences"]
    assert len(compared(many(300), many(300, 2), "--all")[1].splitlines()) == 303


def test_a_server_that_went_from_many_is_two_lines(differences):
    found = differences(many(300), without(many(300), 0))
    assert found[1:] == ["renumbered: ranks 8-2399 on 299 servers, node_00001 to node_00299, now 0-2391"]


def document_of(compared, a, b):
    status, out, err = compared(a, b, "--json")
    found = json.loads(out)
    assert schema_check.problems(found, schema_check.load_schema("rank_table_difference")) == [] and err == ""
    assert status == (0 if found["same_meaning"] else 1)
    return found


def test_json_has_the_same_with_ranges_of_numbers(compared, table):
    a, other = without(table(4, 4, 4), 2), good_tables.servers(4, 4, 4)
    del other["server_list"][1]
    other["server_list"][0]["device"][0]["device_ip"] = "10.1.1.1"
    found = document_of(compared, a, renumbered(other))
    assert found["a"] == {"file": "a.json", "format": "v1.0", "servers": 2, "ranks": 8}
    assert (found["same_meaning"], found["identical"], found["order"]) == (False, False, [])
    assert found["changes"] == [
        {"kind": "server-removed", "server": "10.0.0.2", "devices": "0-3", "ranks": "4-7"},
        {"kind": "server-added", "server": "10.0.0.3", "devices": "0-3", "ranks": "4-7"},
        {
            "kind": "ranks-moved",
            "ranks": "4-7",
            "a": {"server": "10.0.0.2", "devices": "0-3"},
            "b": {"server": "10.0.0.3", "devices": "0-3"},
        },
        {
            "kind": "device-field",
            "server": "10.0.0.1",
            "key": "device_ip",
            "devices": "0",
            "ranks": "0",
            "values": [{"a": "192.168.100.1", "b": "10.1.1.1"}],
        },
    ]


def test_every_kind_of_json_fits_the_schema(compared, table):
    kinds = set()
    pairs = [
        (table(2, 2), without(table(2, 2), 0)),
        (table(2), table(4)),
        (table(4), table(2)),
        (table(2), table(2, edits={"/server_list/0/server_id": "x", "/server_list/0/rack": {"a": [1, 2]}})),
        (table(2), table(2, edits={"/server_list/0/device/1/device_id": "7", "/x": [1, 2]})),
        (without(table(2, 2), 0), table(2, 2)),
        (good_tables.rank_list(), table(2)),
        (of_950(0, 1), of_950(2, 0)),
        (of_950(0), of_950(0, edits={"/rank_list/1/level_list/1/rank_addr_list/0/addr": "10.9.9.9"})),
    ]
    for a, b in pairs:
        found = document_of(compared, a, b)
        kinds |= {change["kind"] for change in found["changes"]}
        for change in found["changes"]:
            if change.get("key") == "x":
                assert change["b"] == [1, 2]
    schema = schema_check.load_schema("rank_table_difference")
    assert kinds == set(schema["$defs"]["change"]["properties"]["kind"]["enum"])
    same = document_of(compared, table(2), table(2))
    assert (same["identical"], same["changes"]) == (True, [])


def test_a_value_cannot_command_the_terminal(compared, table):
    a = table(2, edits={"/server_list/0/host_ip": "\x1b[2J", "/\x1b[2J": "1"})
    status, out, err = compared(a, table(2))
    assert status == 1 and "\x1b" not in out + err and err.startswith("diff_hccl.py: a.json: ")


# ---- input -----------------------------------------------------------------------------------------


def test_a_table_that_is_bad_elsewhere_is_compared_with_a_warning(compared, table):
    status, out, err = compared(table(2), table(2, edits={"/status": "initializing"}))
    assert status == 1 and 'status: "completed" -> "initializing"' in out
    assert err == f"diff_hccl.py: b.json: 1 problem; see `python {project.ROOT}/hccl_tools/validate_hccl.py FILE`\n"


@pytest.mark.parametrize(
    ("edits", "code"),
    [
        ({"/server_list/0/device/1/rank_id": "0"}, "duplicate-rank"),
        ({"/server_list/0/device/1/device_id": "0"}, "duplicate-device"),
        ({"/server_list/0/device/1/rank_id": ...}, "missing-field"),
        ({"/version": "3.0"}, "bad-version"),
    ],
)
def test_a_table_whose_ranks_are_not_clear_is_exit_2(compared, table, edits, code):
    status, out, err = compared(table(2), table(2, edits=edits))
    assert (status, out) == (2, "") and f"[{code}]" in err and "b.json:1: " in err


def test_what_is_no_table_is_exit_2(world, in_process, table):
    (world / "a.json").write_text(json.dumps(table(1)))
    (world / "hosts").write_text("10.0.0.1:x slots=1\n")
    for name, said in (("hosts", "hosts:1: "), ("none.json", "none.json cannot be read: ")):
        status, out, err = in_process(diff.main, "a.json", name)
        assert (status, out) == (2, "") and said in err
    assert in_process(diff.main, "-", "-")[0] == 2


def test_a_dash_is_standard_input(world, in_process, monkeypatch, table):
    (world / "a.json").write_text(rank_table.dump(table(1)))
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(rank_table.dump(table(1)).encode())))
    status, out, _ = in_process(diff.main, "a.json", "-")
    assert status == 0 and "\nb: standard input: version 1.0" in out


def test_a_job_of_a_table_has_every_rank_once():
    for make in (good_tables.servers, *good_tables.FORMATS):
        job = reading.of_table(make())
        assert sorted(int(device["rank_id"]) for device in job.devices) == list(range(len(job.devices)))


@pytest.mark.parametrize("make", [good_tables.lab, good_tables.cloud], ids=lambda make: make.__name__)
def test_a_bad_legacy_table_is_exit_2_because_its_ranks_are_those_of_all_its_servers(compared, make):
    bad = good_tables.edited(make(), {"/group_list/0/instance_list/0/devices/0/device_id": "9"})
    status, out, err = compared(make(), bad)
    assert (status, out) == (2, "") and "[bad-value]" in err


def test_ranks_with_a_rank_between_that_stays_are_lines_of_their_own(differences, table):
    edits = {f"/server_list/0/device/{n}/rank_id": rank for n, rank in enumerate("2130")}
    assert differences(table(4), table(4, edits=edits)) == [
        f"renumbered: rank {a} on server 10.0.0.1, now {b}" for a, b in ((0, 2), (2, 3), (3, 0))
    ]
    edits = {f"/server_list/0/device/{n}/device_id": str(n + 4) for n in (0, 2)}
    assert differences(table(4), table(4, edits=edits)) == [
        f"moved: rank {n} on server 10.0.0.1 from device {n} to device {n + 4}" for n in (0, 2)
    ]


def test_version_2_0_need_not_have_a_status(compared):
    a = good_tables.rank_list()
    b = good_tables.edited(good_tables.rank_list(), {"/status": ...})
    assert compared(a, b)[0] == compared(b, a)[0] == 0
    assert compared(a, good_tables.edited(b, {"/status": "initializing"}))[0] == 1


def test_a_number_with_a_fraction_is_that_number(compared):
    edits = {"/rank_list/1/rank_id": 1.0, "/rank_list/1/device_port": 16666.0}
    status, _, err = compared(good_tables.rank_list(), good_tables.edited(good_tables.rank_list(), edits))
    assert (status, err) == (
        0,
        f"diff_hccl.py: b.json: 2 problems; see `python {project.ROOT}/hccl_tools/validate_hccl.py FILE`\n",
    )
