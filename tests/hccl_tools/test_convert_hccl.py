"""The command convert_hccl.py: rank tables in other formats, what they leave out, and what is missing."""

import io
import json
import os
import sys
from types import SimpleNamespace

import good_tables
import pytest
from suite.cases import for_each

from hccl_tools.check import verdict
from hccl_tools.commands import convert
from hccl_tools.common import project
from hccl_tools.common.problem import errors
from hccl_tools.convert import writing

HOSTS = "10.0.0.1 slots=1\n10.0.0.2 slots=1\n"


@pytest.fixture
def converted(world, in_process):
    """converted(document or text, "--to", "1.0", more={name: document}): (exit code, result, stderr)."""

    def start(document, *words, more=None):
        for name, each in {"t.json": document, **(more or {})}.items():
            (world / name).write_text(each if isinstance(each, str) else json.dumps(each))
        status, out, err = in_process(convert.main, "t.json", *words)
        return status, (json.loads(out) if out.startswith("{") else out), err

    return start


def ranks(table):
    """{rank: (server, device, address)} of a table of version 1.0 or 1.2."""
    return {
        device["rank_id"]: (server["server_id"], device["device_id"], device.get("device_ip"))
        for server in table["server_list"]
        for device in server["device"]
    }


# ---- what is left out ------------------------------------------------------------------------------


def test_a_super_pod_as_version_1_0_says_what_it_loses(converted):
    status, table, err = converted(good_tables.super_pods(), "--to", "1.0")
    assert (status, table["version"], ranks(table)) == (0, "1.0", ranks(good_tables.super_pods()))
    assert err == (
        "convert_hccl.py: left out, because version 1.0 has no place for it: super_pod_list, "
        "super_device_id (6 devices), backup_device_ip (6 devices), backup_device_port (6 devices)\n"
    )
    assert table["server_list"][0]["host_ip"] == "172.16.0.1" and "super_pod_list" not in table
    assert set(table["server_list"][0]["device"][0]) == {
        "device_id",
        "device_ip",
        "rank_id",
        "device_port",
        "host_port",
    }


def test_what_no_format_has_stays_among_those_that_take_any_key(converted, table):
    document = table(1, edits={"/server_list/0/rack": "r7", "/server_list/0/device/0/slot": "3", "/owner": "me"})
    status, result, err = converted(document, "--to", "1.2")
    assert status == 0 and "left out" not in err
    assert (result["owner"], result["server_list"][0]["rack"]) == ("me", "r7")
    assert result["server_list"][0]["device"][0]["slot"] == "3"
    assert "rack (1 server), slot (1 device)" in converted(document, "--to", "lab")[2]


def test_a_table_can_lose_any_number_of_keys_in_one_line(converted, table):
    edits = {f"/server_list/0/device/0/key{number}": "x" for number in range(500)}
    _, _, err = converted(table(1, edits=edits), "--to", "lab")
    assert err.count("\n") == 1 and len(err) < 1000 and "and 481 more" in err


def test_a_list_of_hosts_is_in_the_order_of_the_ranks(converted, table):
    document = table(2, 4)
    document["server_list"].reverse()
    assert converted(document, "--to", "hosts")[:2] == (0, "10.0.0.1 slots=2\n10.0.0.2 slots=4\n")


def test_a_list_of_hosts_has_the_addresses_of_the_hosts_and_says_which_names_it_loses(converted):
    status, out, err = converted(good_tables.super_pods(), "--to", "hosts")
    assert (status, out) == (0, "172.16.0.1 slots=2\n172.16.0.2 slots=2\n172.16.0.3 slots=2\n")
    assert "server_id (3 servers)" in err and "device_id (6 devices)" in err and "host_ip" not in err


def test_a_list_of_hosts_says_that_spares_and_users_are_not_in_a_table(converted, table):
    hosts = "root@10.0.0.1 slots=2\n10.0.0.3 slots=2 spare\n"
    status, result, err = converted(hosts, "--to", "1.0", "--devices", "[4,6)")
    assert (status, ranks(result)) == (0, {"0": ("10.0.0.1", "4", None), "1": ("10.0.0.1", "5", None)})
    assert "the spare hosts (1 host), the users before @ (1 host)" in err
    assert "device_ip is missing, which HCCL takes on A2 and A3 only; --facts FILE can give it" in err


# ---- what is missing -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "target", "said"),
    [
        (good_tables.servers(2), "1.1", "needs collective_id, a name of the job; give it: --job NAME"),
        (good_tables.servers(2), "2.0", "needs level_list, which is missing for every rank; give a version 2.0 table"),
        (good_tables.servers(2), "cloud", "needs the pod_name of server 10.0.0.1; give the job's name"),
        (good_tables.rank_list(), "1.0", "needs the servers of the ranks, which version 2.0 does not have; give"),
        (good_tables.rank_list(), "hosts", "the list of hosts needs the servers of the ranks"),
        (HOSTS, "1.0", "needs device_id, which is missing for every rank; name the devices of each host: --devices"),
        (HOSTS, "2.0", "needs device_id, which is missing for every rank"),
        ("10.0.0.1\n", "1.0", "t.json: 10.0.0.1 has no number of ranks; write 10.0.0.1 slots=N"),
        (
            good_tables.edited(good_tables.super_pods(), {"/super_pod_list": ..., "/version": "1.0"}),
            "1.2",
            "super_device_id of version 1.2 needs super_pod_list; give a file about the same job",
        ),
        (
            good_tables.edited(good_tables.heterogeneous(), {"/node_list/1/ranks/0/device_id": "-1"}),
            "1.0",
            "cannot have ranks on processors, but the table has them: device -1 of server 10.0.0.2",
        ),
        (
            good_tables.edited(good_tables.super_pods(), {f"/server_list/{n}/host_ip": ... for n in (1, 2)}),
            "1.1 --job x",
            "needs the address of each server, but the table has only the name of node_1, node_2; give a table",
        ),
        (
            good_tables.edited(good_tables.servers(1), {"/server_list/0/device/0/device_ip": ...}),
            "lab",
            "needs device_ip, which is missing for device 0 of server 10.0.0.1; give a file about the same job",
        ),
        (
            good_tables.edited(good_tables.servers(1), {"/server_list/0/host_ip": "fd00::1"}),
            "hosts",
            "fd00::1 is an IPv6 address, which Open MPI does not accept in a list of hosts",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and "\n" not in value and len(value) < 12 else "",
)  # fmt: skip
def test_what_is_missing_is_never_guessed(converted, document, target, said):
    status, out, err = converted(document, "--to", *target.split())
    assert (status, out) == (1, "") and said in err, err
    assert err.endswith("convert_hccl.py: no table was written\n")


def test_several_servers_need_addresses_and_the_message_says_who_has_them(converted):
    facts = ["--facts", "hosts"]
    status, _, err = converted(good_tables.rank_list(), "--to", "1.0", *facts, more={"hosts": HOSTS})
    assert status == 1 and "version 1.0 of several servers needs device_ip" in err and err.count("--layer N") == 1
    status, _, err = converted(HOSTS, "--to", "1.0", "--devices", "0")
    assert status == 1 and f"or ask the hosts: python {project.ROOT}/hccl_tools/hccl_tools.py --hostfile HOSTS" in err


def test_ranks_that_the_cloud_format_would_number_in_another_way_are_refused(converted, table):
    document = table(2, edits={"/server_list/0/device/0/rank_id": "1", "/server_list/0/device/1/rank_id": "0"})
    status, _, err = converted(document, "--to", "cloud", "--job", "x")
    assert status == 1
    assert "HCCL would make device 0 of server 10.0.0.1 rank 0, but it is rank 1 in the table" in err


def test_a_table_outside_of_super_pods_says_so(converted, table):
    assert (
        "no super_pod_list and no super_device_id: HCCL uses the network only" in converted(table(2), "--to", "1.2")[2]
    )


# ---- facts -----------------------------------------------------------------------------------------


def test_super_pods_come_from_another_table_and_only_for_the_servers_that_are_there(converted):
    plain = converted(good_tables.super_pods(), "--to", "1.0")[1]
    del plain["server_list"][2]
    plain["server_count"] = "2"
    status, table, err = converted(
        plain, "--to", "1.2", "--facts", "a3.json", more={"a3.json": good_tables.super_pods()}
    )
    assert (status, err) == (0, "")
    assert [pod["super_pod_id"] for pod in table["super_pod_list"]] == ["a"]
    assert [device["super_device_id"] for each in table["server_list"] for device in each["device"]] == [*"0123"]


def test_what_the_table_says_itself_stays(converted, table):
    facts = table(2, edits={"/server_list/0/device/0/device_ip": "10.9.9.9", "/server_list/0/host_ip": "10.0.0.1"})
    status, result, _ = converted(table(2), "--to", "1.0", "--facts", "f.json", more={"f.json": facts})
    assert (status, ranks(result)) == (0, ranks(table(2)))
    assert result["server_list"][0]["host_ip"] == "10.0.0.1"


def test_a_list_of_ranks_gets_servers_from_hosts_and_addresses_from_a_layer(converted):
    words = ["--to", "1.0", "--facts", "hosts", "--layer", "1"]
    status, table, err = converted(good_tables.rank_list(), *words, more={"hosts": HOSTS})
    assert ranks(table) == {"0": ("10.0.0.1", "0", "192.168.1.1"), "1": ("10.0.0.2", "1", "192.168.1.2")}
    assert status == 0 and "local_id (2 devices), level_list (2 devices)" in err
    assert table["server_list"][0]["device"][0]["device_port"] == "16666"
    back = converted(table, "--to", "2.0", "--facts", "a950.json", more={"a950.json": good_tables.rank_list()})[1]
    assert back == good_tables.rank_list()


def test_several_addresses_of_a_layer_are_a_list_and_one_with_none_is_named(converted):
    document = good_tables.rank_list()
    layer = document["rank_list"][0]["level_list"][1]["rank_addr_list"]
    layer += [{**layer[0], "addr": "192.168.5.5"}, {**layer[0], "addr_type": "EID", "addr": "0" * 32}]
    words = ["--to", "1.0", "--facts", "hosts", "--layer"]
    table = converted(document, *words, "1", more={"hosts": HOSTS})[1]
    assert ranks(table)["0"] == ("10.0.0.1", "0", "192.168.1.1,192.168.5.5")
    document["rank_list"][1]["level_list"][1]["rank_addr_list"][0].update(addr_type="EID", addr="0" * 32)
    status, _, err = converted(document, *words, "1")
    assert status == 1 and "net_layer 1 has no IPv4 or IPv6 address of device 1 of server 10.0.0.2" in err
    assert "net_layer 3 has no IPv4 or IPv6 address of every rank" in converted(document, *words, "3")[2]


def test_a_list_of_hosts_gets_devices_and_addresses_from_a_table(converted, table):
    hosts = converted(table(2, 4), "--to", "hosts")[1]
    status, result, err = converted(hosts, "--to", "1.0", "--facts", "f.json", more={"f.json": table(2, 4)})
    assert (status, ranks(result), err) == (0, ranks(table(2, 4)), "")


@pytest.mark.parametrize(
    ("document", "name", "facts", "said"),
    [
        (good_tables.rank_list(), "hosts", "10.0.0.1 slots=8\n", "hosts has places for 8 ranks, but the table has 2"),
        (good_tables.rank_list(), "f.json", good_tables.servers(1, 1), "rank 1 is on device 1, but on device 0 in"),
        (HOSTS, "f.json", good_tables.servers(2, 1), "f.json has another number of devices on 10.0.0.1; give"),
        (HOSTS, "f.json", "{", "f.json: line 1, column 2: "),
    ],
    ids=str,
)  # fmt: skip
def test_facts_about_another_job_are_refused(converted, document, name, facts, said):
    status, _, err = converted(document, "--to", "1.0", "--facts", name, more={name: facts})
    assert status == 1 and said in err, err


def test_the_jobs_name_is_where_a_format_has_it(converted, table):
    assert converted(table(1), "--to", "1.1", "--job", "x")[1]["collective_id"] == "x"
    (group,) = converted(table(1), "--to", "cloud", "--job", "x")[1]["group_list"]
    assert (group["group_name"], group["instance_list"][0]["pod_name"]) == ("x", "x-0")


# ---- the result ------------------------------------------------------------------------------------

MAKERS = (good_tables.servers, *good_tables.FORMATS)


@for_each("target", writing.TARGETS)
@for_each("make", MAKERS, ids=lambda make: make.__name__)
def test_a_result_passes_our_checks_or_there_is_none(converted, make, target):
    words = ["--job", "x"] if target in ("1.1", "lab", "cloud") else []
    status, result, err = converted(make(), "--to", target, *words)
    if status:
        assert (status, result) == (1, "") and "needs" in err
    elif target == "hosts":
        assert result.count(" slots=") == result.count("\n") > 0
    else:
        assert errors(verdict.check(result)) == []


def test_a_result_that_is_not_good_is_not_written(converted, table):
    document = table(1, edits={"/server_list/0/device/0/device_id": "9"})
    status, out, err = converted(document, "--to", "lab")
    assert (status, out) == (1, "") and "the legacy lab format: /group_list/0/" in err and "[bad-value]" in err
    status, out, err = converted(table(1), "--to", "1.2", "--generation", "910A")
    assert (status, out) == (1, "") and "[wrong-version]" in err


def test_a_bad_table_is_not_converted(converted, table):
    status, out, err = converted(table(1, edits={"/status": "x"}), "--to", "1.2")
    assert (status, out) == (1, "") and "[bad-status]" in err and err.endswith("no table was written\n")


# ---- files -----------------------------------------------------------------------------------------


def test_the_result_goes_where_output_says_and_its_path_is_printed(converted, table, world):
    status, out, err = converted(table(2), "--to", "1.0", "--output", "new.json")
    assert (status, out, err) == (0, f"{world}/new.json\n", "")
    assert ranks(json.loads((world / "new.json").read_text())) == ranks(table(2))
    assert converted(table(2), "--to", "1.0", "--output", "new.json")[0] == 0  # the same text again
    assert ".json exactly once" in converted(table(2), "--to", "1.0", "--output", "new.txt")[2].replace('"', "")


@pytest.mark.parametrize("name", ["t.json", "notes.txt", "."])
def test_nothing_is_overwritten_without_force(converted, table, world, name):
    (world / "notes.txt").write_text("mine")
    status, out, err = converted(table(2), "--to", "1.2", "--output", name)
    assert (status, out) == (2, "") and f"{name} " in err
    assert (world / "notes.txt").read_text() == "mine"
    assert json.loads((world / "t.json").read_text()) == table(2)
    if name != ".":
        assert converted(table(2), "--to", "1.2", "--output", name, "--force")[0] == 0
        assert json.loads((world / name).read_text())["version"] == "1.2"
    assert sorted(os.listdir(world)) == ["notes.txt", "t.json"]


def test_a_dash_is_standard_input(world, in_process, monkeypatch, table):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(json.dumps(table(2)).encode())))
    assert in_process(convert.main, "-", "--to", "hosts")[:2] == (0, "10.0.0.1 slots=2\n")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"{")))
    status, out, err = in_process(convert.main, "-", "--to", "hosts")
    assert (status, out) == (1, "") and err.startswith("convert_hccl.py: standard input: line 1, column 2: ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["none.json", "--to", "1.0"], "none.json cannot be read: No such file or directory"),
        (["t.json"], "--to"),
        (["t.json", "--to", "1.3"], "invalid choice: '1.3'"),
        (["t.json", "--to", "1.0", "--layer", "8"], "--layer 8 is not a number from 0 to 7"),
        (["-", "--to", "1.0", "--facts", "-"], "standard input can be read once"),
        (["t.json", "--to", "1.0", "--output", ""], "--output is empty"),
        (["t.json", "--to", "1.0", "--job", "x"], "--job is for 1.1, lab and cloud"),
        (["t.json", "--to", "1.0", "--devices", "0"], "--devices is for a list of hosts"),
        (["hosts", "--to", "1.0", "--devices", "0-"], "neither a range nor a list of devices"),
        (["wrong", "--to", "1.0"], "wrong:1: 10.0.0.1:x has no number of ranks"),
    ],
)
def test_what_cannot_be_used_is_exit_2(world, in_process, table, words, said):
    (world / "t.json").write_text(json.dumps(table(1)))
    (world / "hosts").write_text(HOSTS)
    (world / "wrong").write_text("10.0.0.1:x # slots\n")
    status, out, err = in_process(convert.main, *words)
    assert (status, out) == (2, "") and said in err, err


def test_every_host_has_as_many_devices_as_slots(converted):
    status, _, err = converted(HOSTS, "--to", "1.0", "--devices", "[0,8)")
    assert status == 1 and "10.0.0.1 has 1 slot, and --devices names 8 devices" in err


def test_servers_that_share_a_range_of_ranks_are_no_list_of_hosts(converted):
    ranks = [{"rank_id": str(n), "device_id": str(n), "rank_ip": f"192.168.1.{n + 1}"} for n in range(3)]
    document = good_tables.heterogeneous()
    document["node_list"][0]["ranks"], document["node_list"][1]["ranks"] = ranks[::2], ranks[1:2]
    status, out, err = converted(document, "--to", "hosts")
    assert (status, out) == (1, "") and "gives each host consecutive ranks" in err


def test_ranks_of_version_2_0_are_in_their_order_whatever_its_own_is(converted):
    document = good_tables.rank_list()
    document["rank_list"].reverse()
    words = ["--to", "1.0", "--facts", "hosts", "--layer", "0"]
    table = converted(document, *words, more={"hosts": "10.0.0.1 slots=2\n"})[1]
    assert [device["rank_id"] for device in table["server_list"][0]["device"]] == ["0", "1"]


def test_a_name_that_could_command_a_terminal_is_refused(converted, table):
    status, out, err = converted(table(1), "--to", "1.1", "--job", "\x1b[2J")
    assert (status, out) == (1, "") and "[unprintable-text]" in err and "\x1b" not in err
