"""Rank tables of the legacy formats, written as version 1.0."""

import json

import good_tables
import pytest

from hccl_tools.build import from_legacy
from hccl_tools.check import verdict
from hccl_tools.commands import merge, show
from hccl_tools.common.problem import errors
from hccl_tools.hosts import cards_collect


def ranks(table):
    """[(server_id, device_id, rank_id)] of a table of version 1.0, in its order."""
    return [
        (server["server_id"], device["device_id"], device["rank_id"])
        for server in table["server_list"]
        for device in server["device"]
    ]


def cloud(*instances):
    """A table as ModelArts and Volcano write it: (server_id, device ids) of each instance."""
    listed = [
        {
            "pod_name": f"job-{number}",
            "server_id": server_id,
            "devices": [{"device_id": str(n), "device_ip": f"192.168.{number}.{n + 1}"} for n in ids],
        }
        for number, (server_id, ids) in enumerate(instances)
    ]
    count = str(sum(len(ids) for _, ids in instances))
    group = {"group_name": "job", "device_count": count, "instance_count": str(len(listed)), "instance_list": listed}
    return {"status": "completed", "group_count": "1", "group_list": [group]}


def test_a_lab_table_keeps_its_ranks():
    table = from_legacy.converted(good_tables.lab())
    assert ranks(table) == [("10.0.0.1", "0", "0"), ("10.0.0.1", "1", "1")]
    assert (table["version"], table["server_count"], table["status"]) == ("1.0", "1", "completed")
    assert table["server_list"][0]["device"][0]["device_ip"] == "192.168.100.101"
    assert not errors(verdict.check(table))


def test_the_ranks_of_a_lab_table_are_in_their_order_whatever_its_own_is():
    document = good_tables.lab()
    document["group_list"][0]["instance_list"].reverse()
    assert ranks(from_legacy.converted(document)) == [("10.0.0.1", "0", "0"), ("10.0.0.1", "1", "1")]


def test_a_cloud_table_gets_the_ranks_that_hccl_gives_it():
    # by the text of server_id: 10.0.0.10 is before 10.0.0.9; then by the number of the device
    table = from_legacy.converted(cloud(("10.0.0.9", [1, 0]), ("10.0.0.10", [0, 1])))
    assert ranks(table) == [
        ("10.0.0.10", "0", "0"),
        ("10.0.0.10", "1", "1"),
        ("10.0.0.9", "0", "2"),
        ("10.0.0.9", "1", "3"),
    ]
    assert not verdict.check(table)


@pytest.mark.parametrize(
    "document",
    [good_tables.servers(1), good_tables.rank_list(), cloud(("10.*.*.*", [0])), cloud(), None, [], {"group_list": 3}],
)
def test_other_tables_and_bad_ones_are_not_converted(document):
    assert from_legacy.converted(document) is None


def test_show_merge_and_check_network_read_them(world, in_process):
    (world / "jobstart_hccl.json").write_text(json.dumps(cloud(("10.0.0.2", [0, 1]))))
    (world / "more.json").write_text(json.dumps(cloud(("10.0.0.1", [4]))))
    (world / "more.json").write_text((world / "more.json").read_text().replace("192.168.0.", "192.168.9."))
    status, printed, _ = in_process(show.main, "jobstart_hccl.json")
    assert status == 0 and "servers: 1, ranks: 2" in printed
    status, printed, said = in_process(merge.main, "jobstart_hccl.json", "more.json", "--stdout")
    assert status == 0 and "jobstart_hccl.json is of a legacy format; read as version 1.0" in said
    assert ranks(json.loads(printed)) == [("10.0.0.1", "4", "0"), ("10.0.0.2", "0", "1"), ("10.0.0.2", "1", "2")]
    assert [server.server_id for server in cards_collect.read_servers("jobstart_hccl.json")] == ["10.0.0.2"]
