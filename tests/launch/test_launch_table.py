"""Which rank table a launch takes; whole launches are in tests/scripts."""

import json
import os

import good_tables
import pytest
from launching import request

from hccl_tools.build import rank_lists
from hccl_tools.common.refusal import Refusal
from hccl_tools.machine import host
from hccl_tools.table import rank_table
from tools.launch.tables import launch_table, table_fit


@pytest.fixture
def faults(world, table, monkeypatch):
    """faults("t.json", "910A"): why the launcher does not take the table for devices 0 and 1 of server 10.0.0.1."""
    monkeypatch.setattr(host, "owns", lambda name: name == "10.0.0.1")
    (world / "t.json").write_text(rank_table.dump(table(2)))
    return lambda path, generation="910A": table_fit.examine(path, [0, 1], generation).faults


def test_a_table_for_this_host_and_these_devices_is_taken(faults):
    assert faults("t.json") == []


def test_a_table_that_can_be_read_only_once_is_refused_before_it_is_read(faults):
    os.mkfifo("pipe.json")  # nobody writes: to read from it would never end
    assert faults("pipe.json") == [
        "pipe.json is not a regular file; every rank reads the table, so give it one that stays"
    ]


def test_a_table_of_ranks_is_taken_where_it_is_named_as_nothing_says_whose_it_is(faults, world):
    (world / "v2.json").write_text(json.dumps(good_tables.rank_list()))
    fit = table_fit.examine("v2.json", [0, 1], "950", is_named=True)
    assert (fit.faults, fit.ranks) == ([], [(0, 0), (1, 1)])
    assert fit.remark.startswith("note: the rank table does not say where its ranks are")
    assert table_fit.examine("v2.json", [0, 1], "950").faults  # one that lies about is not
    assert "is for devices 0,1, this launch is on device 0" in table_fit.examine("v2.json", [0], "950", True).faults[0]


def test_a_table_without_servers_is_named_by_its_format(faults, world):
    (world / "v11.json").write_text(json.dumps(good_tables.heterogeneous()))
    (found,) = faults("v11.json", None)
    assert "v11.json is a table of version 1.1 (heterogeneous); these scripts start ranks from" in found


def test_a_name_that_hccl_cannot_read_is_refused(faults, world):
    os.rename("t.json", "t.json.old")
    assert 'HCCL reads a table only if its path has ".json" exactly once, at the end' in faults("t.json.old")[0]


def test_a_warning_is_no_reason_to_refuse(faults, world, table):
    (world / "w.json").write_text(rank_table.dump(table(2, edits={"/extra": "x"})))
    assert faults("w.json") == []


def test_a_legacy_table_is_written_as_version_1_0_into_the_runs_folder(faults, world):
    (world / "jobstart_hccl.json").write_text(json.dumps(good_tables.lab()))
    found = launch_table.choose(request(rank_table="jobstart_hccl.json"), [0, 1], "/run")
    assert found.path == "/run/hccl_of_legacy.json" and found.ranks == [(0, 0), (1, 1)]
    assert json.loads(found.text)["version"] == "1.0"
    assert (
        "jobstart_hccl.json is of a legacy format; written as version 1.0 to /run/hccl_of_legacy.json" in found.remarks
    )
    assert found.setup[-3:] == ("jobstart_hccl.json", "--output", "/run/hccl_of_legacy.json")
    assert sorted(os.listdir(world)) == ["jobstart_hccl.json", "t.json"]


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ({"/server_list/0/server_id": "job-1"}, "note: server job-1 of the rank table is not an address"),
        ({"/server_list/0/server_id": "job-1", "/server_list/0/host_ip": "10.0.0.1"}, ""),
        ({"/server_list/0/host_ip": "203.0.113.7"}, ""),  # its server_id is ours
    ],
)
def test_a_named_table_is_taken_by_any_address_of_its_server_or_by_none(world, table, faults, edit, said):
    (world / "t.json").write_text(rank_table.dump(table(2, edits=edit)))
    fit = table_fit.examine("t.json", [0, 1], None, is_named=True)
    assert fit.faults == [] and fit.ranks == [(0, 0), (1, 1)]
    assert fit.remark.startswith(said) if said else fit.remark == ""


def test_a_table_that_lies_about_is_not_taken_where_nothing_says_whose_it_is(world, table, faults):
    (world / "t.json").write_text(rank_table.dump(table(2, edits={"/server_list/0/server_id": "job-1"})))
    assert "is for server job-1" in table_fit.examine("t.json", [0, 1], None).faults[0]


# ---- a 950 host -----------------------------------------------------------------------------------------


def test_on_a_950_the_table_is_made_of_the_hosts_own_description(world, monkeypatch):
    (world / "root.json").write_text(json.dumps(good_tables.host_of_950()))
    monkeypatch.setattr(rank_lists, "ROOT_INFO", str(world / "root.json"))
    wanted = request(generation="950").replace(chip="950")
    found = launch_table.choose(wanted, [4, 5], "/run")
    assert (found.path, found.ranks) == ("/run/hccl_2p_45.json", [(0, 4), (1, 5)])
    table = json.loads(found.text)
    assert [rank["device_id"] for rank in table["rank_list"]] == [4, 5]
    assert found.setup[2:] == ("--devices", "4,5", "--generation", "950", "--output", found.path)
    assert found.remarks == (f"rank table: built for devices 4,5, networks from {world}/root.json",)
    with pytest.raises(Refusal, match="no rank table could be built: .* does not describe device 9"):
        launch_table.choose(wanted, [9], "/run")
    (world / "root.json").unlink()
    with pytest.raises(Refusal, match="no rank table could be built: .* cannot be read"):
        launch_table.choose(wanted, [4], "/run")
