"""Tables of version 2.0: merged, cut to a part, and shown."""

import functools
import json

import good_tables
import json_pages
import pytest

pytest.importorskip("hypothesis", reason="needs hypothesis")
from hypothesis import given, settings
from hypothesis import strategies as st

from hccl_tools.build import merging, rank_lists
from hccl_tools.check import verdict
from hccl_tools.commands import merge as merge_hccl
from hccl_tools.commands import show as show_hccl
from hccl_tools.show import overview
from hccl_tools.table import rank_table


def addresses(table):
    """The inner addresses in the order of the ranks, which tell the devices."""
    ranks = rank_lists.in_order(table)
    return [rank["level_list"][0]["rank_addr_list"][0]["addr"] for rank in ranks]


@pytest.fixture
def merge(world, in_process):
    """merge("h0.json", "h1.json"): the command; these files are there, of one host each."""
    for host in range(3):
        (world / f"h{host}.json").write_text(rank_table.dump(good_tables.host_of_950(host, 2)))
    (world / "v1.json").write_text(rank_table.dump(good_tables.servers(2)))
    return functools.partial(in_process, merge_hccl.main)


# ---- merged ----------------------------------------------------------------------------------------


def test_the_order_of_the_files_is_that_of_the_ranks(merge, world):
    status, out, err = merge("h2.json", "h0.json")
    assert (status, out) == (0, f"{world}/hccl_4p.json\n"), err
    assert err == (
        "merge_hccl.py: tables: 2 in the order given, from h2.json to h0.json, ranks: 4"
        " (rules common to all generations)\n"
    )
    table = json.loads((world / "hccl_4p.json").read_text())
    assert verdict.check(table, "950") == []
    assert addresses(table) == [*addresses(good_tables.host_of_950(2, 2)), *addresses(good_tables.host_of_950(0, 2))]
    assert merge("h0.json", "h2.json")[2].endswith("merge_hccl.py: hccl_4p.json held another table; it is replaced\n")


def test_json_says_that_nobody_knows_the_servers(merge):
    made = json.loads(merge("h0.json", "h1.json", "--json")[1])
    json_pages.check("merge_hccl.py", made)
    assert (made["table_format"], made["servers"], made["ranks"]) == ("v2.0", None, 4)


@pytest.mark.parametrize("files", [["h0.json", "h1.json", "h0.json"], ["hccl_4p.json", "h0.json"]], ids=str)
def test_a_host_that_is_given_twice_is_told_by_its_addresses(merge, files):
    assert merge("h0.json", "h1.json")[0] == 0
    status, out, err = merge(*files, "--output", "t.json")
    assert (status, out) == (1, "")
    first, second = err.splitlines()
    assert first == (
        f'merge_hccl.py: h0.json: address "{good_tables.eid(0, 0)}" of rank 0 on net_layer 0 also belongs to rank 0 in'
        f" {files[0]}; list each host once"
    )
    assert second == "merge_hccl.py: no table was written (1 problem)"


@pytest.mark.parametrize("files", [["v1.json", "h0.json"], ["h0.json", "v1.json"]], ids=str)
def test_tables_of_two_versions_are_not_merged(merge, files):
    status, out, err = merge(*files)
    assert (status, out) == (1, "") and "merge only tables that agree on it" in err


def test_a_spare_has_the_addresses_of_the_device_that_it_replaces():
    spare = good_tables.host_of_950(0, 1)
    spare["rank_list"][0].update(local_id=64, replaced_local_id=1)
    tables = [("a", good_tables.host_of_950(0, 2)), ("b", spare)]
    assert list(rank_lists.repeated_addresses(tables)) == []
    spare["rank_list"][0].update(local_id=1)
    assert len(list(rank_lists.repeated_addresses(tables))) == 1


@pytest.mark.slow
@settings(max_examples=25, deadline=None, database=None)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_in_steps_or_at_once_is_the_same_whatever_the_order_in_the_files(sizes, random):
    tables = [good_tables.host_of_950(number, size) for number, size in enumerate(sizes)]
    whole = [address for table in tables for address in addresses(table)]
    for table in tables:
        random.shuffle(table["rank_list"])
    named = [merging.Named(name=str(number), table=table) for number, table in enumerate(tables)]
    at_once = merging.merge(named, "950")
    in_steps = functools.reduce(
        lambda one, other: merging.Named(name="part", table=merging.merge([one, other], "950")), named
    )
    assert at_once == (in_steps.table if len(sizes) > 1 else at_once)
    assert addresses(at_once) == whole and at_once["rank_count"] == sum(sizes)
    assert [rank["rank_id"] for rank in at_once["rank_list"]] == list(range(sum(sizes)))


def test_a_part_has_its_own_ranks_from_0():
    table = merging.merge([merging.Named(name=str(n), table=good_tables.host_of_950(n, 2)) for n in range(3)])
    part = rank_lists.only(table, [0, 1, 4, 5])
    assert addresses(part) == [*addresses(table)[:2], *addresses(table)[4:]]
    assert verdict.check(part, "950") == []


# ---- shown -----------------------------------------------------------------------------------------


@pytest.fixture
def show(world, in_process, monkeypatch):
    """show(table, "--json"): the command."""
    monkeypatch.delenv("COLUMNS", raising=False)

    def run_main(table, *words):
        (world / "t.json").write_text(json.dumps(table))
        return in_process(show_hccl.main, "t.json", *words)

    return run_main


def test_a_small_table_has_a_line_a_rank_with_its_networks(show):
    pytest.importorskip("rich", reason="needs rich")
    table = good_tables.host_of_950(0, 2)
    table["rank_list"][1]["level_list"][0]["rank_addr_list"] *= 7
    status, out, err = show(table)
    assert (status, err) == (0, "")
    assert out.startswith("version 2.0, inner networks: 1, ranks: 2\n")
    rows = [[cell.strip() for cell in line.split("│")] for line in out.splitlines() if "│" in line]
    assert rows == [
        ["srv0", "0", "0", "0", f"0: {good_tables.eid(0, 0)}; 2: 10.78.0.1"],
        ["", "1", "1", "1", "0: 7 EID; 2: 10.78.0.2"],
    ]


def test_a_large_table_has_a_line_for_networks_that_are_alike(show):
    pytest.importorskip("rich", reason="needs rich")
    tables = [merging.Named(name=str(n), table=good_tables.host_of_950(n, 8)) for n in range(20)]
    out = show(merging.merge(tables))[1]
    (row,) = [[cell.strip() for cell in line.split("│")] for line in out.splitlines() if "│" in line]
    assert row[:4] == ["srv0 - srv19", "20", "0-159", "0-7"]
    svg = show(merging.merge(tables), "--svg")[1]
    assert "20 networks, ranks 0-159" in svg


def test_json_has_every_rank_with_its_networks(show):
    document = json.loads(show(good_tables.host_of_950(1, 2), "--json")[1])
    assert (document["servers"], document["ranks"], document["server_list"]) == (None, 2, [])
    assert document["rank_list"][1] == {
        "rank_id": 1,
        "device_id": 1,
        "local_id": 1,
        "networks": [
            {"net_layer": 0, "net_instance_id": "srv1", "addresses": [good_tables.eid(1, 1)]},
            {"net_layer": 2, "net_instance_id": "cluster", "addresses": ["10.78.1.2"]},
        ],
    }


def test_a_heterogeneous_table_is_shown_by_its_nodes(show):
    document = json.loads(show(good_tables.heterogeneous(), "--json")[1])
    assert [server["server_id"] for server in document["server_list"]] == ["10.0.0.1", "10.0.0.2"]
    assert document["server_list"][1]["devices"][0]["device_ip"] == "192.168.1.2"


@pytest.mark.parametrize("edit", [{"/rank_list/0/level_list": 3}, {"/rank_list/0/rank_id": "x"}, {"/rank_count": 9}])
def test_a_bad_table_is_shown_with_a_warning(show, edit):
    status, out, err = show(good_tables.edited(good_tables.host_of_950(0, 2), edit), "--json")
    assert status == 0 and json.loads(out)["warnings"] and "problem" in err


def test_what_a_table_says_commands_no_terminal():
    table = good_tables.edited(good_tables.host_of_950(0, 1), {"/rank_list/0/level_list/0/net_instance_id": "\x1b[2J"})
    assert overview.of(table).servers[0].name == "\\x1b[2J"
