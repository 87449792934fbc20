"""The rank table of a 950 host, which is made of its own description, /etc/hccl_rootinfo.json."""

import json

import good_tables
import json_pages
import pytest

from hccl_tools.build import rank_lists
from hccl_tools.check import verdict
from hccl_tools.commands import build as hccl_tools


def described(host=0, size=8, edits=None):
    """What the driver writes: entries of a rank table without ranks, and the path of the topology."""
    table = good_tables.host_of_950(host, size)
    for entry in table["rank_list"]:
        del entry["rank_id"]
    del table["status"]
    table["topo_file_path"] = "/usr/local/Ascend/driver/topo/950/atlas_850_1.json"
    return good_tables.edited(table, edits or {})


@pytest.fixture
def build(world, in_process):
    """build("--devices", "0,1", of=described()): the command on a host that this file describes."""

    def start(*words, of=None):
        (world / "root.json").write_text(of if isinstance(of, str) else json.dumps(of or described()))
        return in_process(hccl_tools.main, "--generation", "950", "--root_info", "root.json", *words)

    return start


def test_every_device_is_a_rank_with_its_networks(build, world):
    status, out, err = build()
    assert (status, out) == (0, f"{world}/hccl_8p_01234567.json\n")
    assert err == "hccl_tools.py: 8 ranks on devices 0-7, networks from root.json (rules of 950)\n"
    table = json.loads((world / "hccl_8p_01234567.json").read_text())
    assert table == good_tables.host_of_950()
    assert verdict.check(table, "950") == []


@pytest.mark.parametrize(("devices", "numbers"), [("[4,6)", [4, 5]), ("3,1", [3, 1])])
def test_the_devices_that_are_chosen_are_the_ranks_in_this_order(build, devices, numbers):
    table = json.loads(build("--devices", devices, "--stdout")[1])
    assert [(rank["rank_id"], rank["device_id"], rank["local_id"]) for rank in table["rank_list"]] == [
        (rank, number, number) for rank, number in enumerate(numbers)
    ]


def test_visible_devices_are_positions_as_on_other_chips(build):
    table = json.loads(build("--visible_devices", "4,5,6,7", "--devices", "[2,4)", "--stdout")[1])
    assert [rank["device_id"] for rank in table["rank_list"]] == [6, 7]


def test_json_is_what_was_made(build):
    made = json.loads(build("--json")[1])
    json_pages.check("hccl_tools.py", made)
    assert (made["table_format"], made["servers"], made["ranks"], made["generation"]) == ("v2.0", None, 8, "950")


@pytest.mark.parametrize(
    ("of", "words", "said"),
    [
        (None, ["--devices", "8,9"], "root.json does not describe devices 8,9, only devices 0-7; choose from those"),
        ({"topo_file_path": "x", "y": 1}, [], "has no rank_list with the devices of this host, only: topo_file_path"),
        ("[]", [], "has no rank_list with the devices of this host, only: -; let the driver or MindCluster write it"),
        ("{", [], "root.json: line 1, column 2: "),
        (described(edits={"/rank_list/1/device_id": 0}), [], "/rank_list/1: device_id is not a number, or repeats"),
        (described(edits={"/rank_list/1/device_id": "1"}), [], "/rank_list/1: device_id is not a number, or repeats"),
        (described(edits={"/rank_list/0/level_list": ...}), [], "no table was written: /rank_list/0: "),
        (
            described(edits={"/rank_list/0/level_list/0/net_type": "\x1b[2J"}),
            [],
            "no table was written: /rank_list/0/level_list/0/net_type: ",
        ),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else "",
)  # fmt: skip
def test_what_the_description_lacks_is_named_and_nothing_is_written(build, world, of, words, said):
    status, out, err = build(*words, of=of)
    assert (status, out) == (1, "") and said in err and "\x1b" not in err, err
    assert [each.name for each in world.iterdir()] == ["root.json"]


def test_a_host_without_a_description_is_told_where_it_comes_from(world, in_process):
    status, out, err = in_process(hccl_tools.main, "--generation", "950", "--root_info", "none.json")
    assert (status, out) == (1, "")
    assert "none.json cannot be read: No such file or directory" in err
    assert "mount it into the container, or name such a file: --root_info FILE" in err


def test_the_address_of_a_server_has_no_place_in_such_a_table(build):
    status, out, err = build("--server_ip", "10.0.0.1")
    assert (status, out) == (
        2,
        "",
    ) and "the table of a 950 host does not contain the host's address; leave the option out" in err


def test_a_description_is_called_by_its_name_where_a_table_is_wanted(world):
    (world / "root.json").write_text(json.dumps(described()))
    (problem,) = verdict.check_file("root.json")[1]
    assert problem.code == "unsupported-format" and "hccl_tools.py --generation 950 --root_info" in problem.remedy


def test_the_usual_place_is_that_of_the_driver():
    assert rank_lists.ROOT_INFO == "/etc/hccl_rootinfo.json"


def test_all_hosts_are_asked_although_this_one_is_no_950(world, in_process, monkeypatch):
    asked = []

    def collect(asker, forwarded, chip, tell):
        asked.append((list(asker.logins), forwarded, chip))
        return good_tables.host_of_950()

    monkeypatch.setattr("hccl_tools.hosts.ask.collect", collect)
    (world / "hosts").write_text("10.0.0.8 slots=8\n")
    status, out, err = in_process(hccl_tools.main, "--generation", "950", "--hostfile", "hosts")
    assert (status, out) == (0, f"{world}/hccl_8p.json\n"), err
    assert asked[0][1:] == (["--generation=950"], "950")
