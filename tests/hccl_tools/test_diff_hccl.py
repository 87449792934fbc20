"""The command diff_hccl.py: what differs between two rank tables."""

import copy
import io
import json
import sys
from types import SimpleNamespace

import good_tables
import pytest

from hccl_tools.check import schema_check
from hccl_tools.commands import diff
from hccl_tools.common import project
from hccl_tools.convert import reading
from hccl_tools.table import rank_table

SERVERS = "/server_list/"


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


@pytest.mark.slow
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
        (good_tables.hosts_of_950(0, 1), good_tables.hosts_of_950(2, 0)),
        (
            good_tables.hosts_of_950(0),
            good_tables.hosts_of_950(0, edits={"/rank_list/1/level_list/1/rank_addr_list/0/addr": "10.9.9.9"}),
        ),
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
