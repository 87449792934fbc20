"""Which of the rank tables that lie about a launch takes, and what it says of the others."""

import os

import pytest
from launching import request

from hccl_tools.common.refusal import Refusal
from hccl_tools.machine import hccn, host
from hccl_tools.table import rank_table
from tools.launch.tables import launch_table, table_fit

CONF = "".join(f"address_{device}=192.168.100.{device + 1}\n" for device in range(8))


@pytest.fixture
def write(world, table, monkeypatch):
    """write("t.json", 2): a good table of 2 devices for this host, server 10.0.0.1; several sizes: several servers."""
    monkeypatch.setattr(host, "owns", lambda name: name == "10.0.0.1")
    (world / "hccn.conf").write_text(CONF)

    def made(name, *sizes, **edits):
        path = world / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(rank_table.dump(table(*sizes, **edits)))

    return made


def chosen(beside=None, target="Ascend", size=2, conf="hccn.conf"):
    """(name of the table that a launch of `size` ranks takes, what it says)."""
    asked = request(device_target=target, hccn_conf=conf)
    found = launch_table.choose(asked, list(range(size)), "run", beside)
    return os.path.basename(found.path), list(found.remarks)


def test_a_table_is_found_under_any_name(write):
    write("cards of this host.json", 2)
    assert chosen() == ("cards of this host.json", ["rank table: cards of this host.json, found in this folder"])


def test_it_is_found_beside_the_program(write):
    write("examples/rank_table_2pcs.json", 2)
    found = chosen("examples/net.py")
    assert found == (
        "rank_table_2pcs.json",
        ["rank table: examples/rank_table_2pcs.json, found next to the program"],
    )
    assert chosen("net.py")[0] == "hccl_2p_01_127.0.0.1.json"  # built


def test_of_several_that_fit_that_of_hccl_tools_and_of_this_folder_comes_first(write):
    for name in ("a.json", "hccl_z.json", "rank_table_2pcs.json", "there/hccl_a.json"):
        write(name, 2)
    name, remarks = chosen("there/net.py")
    assert name == "hccl_z.json"
    assert remarks == [
        "rank tables not used: rank_table_2pcs.json (also fits), a.json (also fits), there/hccl_a.json (also fits); "
        "--rank_table FILE selects one, or reports what is wrong with it",
        "rank table: hccl_z.json, found in this folder",
    ]


def test_one_line_says_why_none_was_taken_and_one_is_built(write, world):
    write("rank_table_8pcs.json", 8)
    write("rank_table_16pcs.json", 8, 8)
    write("other_host.json", 2, edits={"/server_list/0/server_id": "10.9.9.9"})
    write("spoilt.json", 2, edits={"/server_list/0/device/1/device_ip": "192.168.100.1"})
    (world / "hccl_torn.json").write_text(rank_table.dump({"version": "1.0", "server_list": []})[:30])
    name, (others, built) = chosen()
    assert name == "hccl_2p_01_127.0.0.1.json" and built.startswith("rank table: built for devices 0,1, addresses from")
    assert others.startswith(
        "rank tables not used: hccl_torn.json (not JSON), rank_table_16pcs.json (2 servers), rank_table_8pcs.json "
        "(devices 0-7), other_host.json (server 10.9.9.9), spoilt.json (1 mistake); --rank_table"
    )


def test_that_none_was_taken_is_also_said_where_none_can_be_built(write):
    write("rank_table_8pcs.json", 8)
    with pytest.raises(Refusal) as refused:
        chosen(conf="no.conf")
    assert refused.value.lines[0].startswith("rank tables not used: rank_table_8pcs.json (devices 0-7);")
    assert refused.value.lines[1].startswith("no rank table could be built")


def test_other_documents_are_not_mentioned(write, world):
    (world / "package.json").write_text('{"name": "x"}')
    (world / "torn.json").write_text('{"name": ')
    (world / "loop.json").symlink_to("loop.json")
    (world / "folder.json").mkdir()
    os.mkfifo(world / "pipe.json")  # nobody writes: to read from it would never end
    assert len(chosen()[1]) == 1


def test_what_is_named_as_a_table_and_cannot_be_read_is(write, world):
    (world / "hccl_loop.json").symlink_to("hccl_loop.json")
    os.mkfifo(world / "rank_table_pipe.json")
    others, _ = chosen()[1]
    assert "hccl_loop.json (cannot be read), rank_table_pipe.json (no regular file);" in others


def test_of_many_tables_some_are_named(write):
    for number in range(8):
        write(f"rank_table_{number}.json", 1)
    others, _ = chosen()[1]
    assert "rank_table_4.json (device 0) and 3 more; --rank_table" in others and "rank_table_5" not in others


def test_the_example_of_a_document_is_not_taken_for_the_cards_that_are_here(write, world):
    write("rank_table_2pcs.json", 2)
    (world / "hccn.conf").write_text(CONF.replace("100.2\n", "100.77\n"))
    name, (others, _) = chosen()
    assert name == "hccl_2p_01_127.0.0.1.json"
    assert "rank_table_2pcs.json (device 1 has 192.168.100.77, not 192.168.100.2);" in others
    assert chosen(target="CPU")[0] == "rank_table_2pcs.json"  # CPU ranks do not use them


def test_without_the_addresses_of_the_cards_it_is_taken(write):
    write("rank_table_2pcs.json", 2)
    assert chosen(conf="no.conf")[0] == "rank_table_2pcs.json"


def test_the_cards_are_asked_once_and_only_where_a_table_fits(write, monkeypatch):
    asked = []
    real = hccn.addresses
    monkeypatch.setattr(hccn, "addresses", lambda *words: (asked.append(words), real(*words))[1])
    for name in ("a.json", "b.json", "c.json"):
        write(name, 2)
    chosen()
    assert len(asked) == 1
    asked.clear()
    chosen(size=4)
    assert len(asked) == 1  # to build one


@pytest.mark.slow
def test_a_table_of_65536_ranks_is_not_checked_for_a_launch_of_two(write, monkeypatch):
    write("rank_table_large.json", *[8] * 8192)
    examined = []
    monkeypatch.setattr(table_fit, "examine", lambda path, *_: examined.append(path))
    others, _ = chosen()[1]
    assert "rank_table_large.json (more than 73728 bytes);" in others and examined == []


def test_a_folder_with_data_in_it_is_not_read_through(write, world, monkeypatch):
    for number in range(300):
        (world / f"{number:03}.json").write_text("{}")
    opened = []
    monkeypatch.setattr("tools.launch.tables.launch_table._is_table", lambda path, most: opened.append(path))
    chosen()
    assert len(opened) == 100
