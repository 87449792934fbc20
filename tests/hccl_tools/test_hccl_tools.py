import errno
import hashlib
import json
import os
import socket
import subprocess
import sys

import json_pages
import pytest

from hccl_tools.check import verdict
from hccl_tools.commands import build as hccl_tools
from hccl_tools.machine import hccn
from hccl_tools.table import rank_table


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(hccn.time, "sleep", lambda seconds: None)


@pytest.fixture
def build(world, in_process):
    """build("--device_num", "[0,4)"): the command; hccn.conf is not there, unless the arguments name another."""

    def run_main(*arguments):
        conf = [] if "--hccn_conf" in arguments else ["--hccn_conf", str(world / "no.conf")]
        return in_process(hccl_tools.main, *conf, *arguments)

    return run_main


@pytest.fixture
def devices(build, cards):
    """devices("--device_num", "[0,4)"): [(device_id, device_ip, rank_id)] of the table that is built."""

    def of(*arguments):
        status, out, err = build(*arguments)
        assert status == 0, err
        with open(out.rstrip("\n"), encoding="utf-8") as file:
            (server,) = json.load(file)["server_list"]
        return [(device["device_id"], device.get("device_ip"), device["rank_id"]) for device in server["device"]]

    return of


def expected(numbers):
    return [(str(number), f"192.168.100.{number + 1}", str(rank)) for rank, number in enumerate(numbers)]


def refused(answer, status, *words):
    """The command refused: this exit code, nothing on stdout, one line with the words on stderr, and wrote no table."""
    found, out, err = answer
    assert (found, out) == (status, ""), err
    assert err.startswith("hccl_tools.py: ")
    assert err.endswith("\n") and len(err.splitlines()) == 1, err
    assert [word for word in words if word not in err] == [], err
    assert nothing_written(os.curdir)


def nothing_written(folder):
    return not [name for name in os.listdir(folder) if name.endswith((".json", ".part"))]


# ---- what upstream's hccl_tools.py does wrong, one test per mistake ---------------------------------------


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("[0,16)", range(16)),  # a table of one device: characters 1 and 3
        ("[12,16)", range(12, 16)),  # "must be in the same group"
        ("[10,12)", (10, 11)),
        ("[0, 4)", range(4)),  # the form of its own --help: ValueError
    ],
)
def test_a_range_is_read_as_numbers_not_as_the_characters_1_and_3(devices, text, numbers):
    assert devices("--device_num", text) == expected(numbers)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        *((text, f'"{text}" is neither a range nor a list') for text in ("(0,4]", "[0,4]x", "0,4)")),
        ("[4,4)", '"[4,4)" names no device'),
    ],
)
def test_a_range_with_other_brackets_or_without_a_device_is_refused(build, cards, text, words):
    refused(build("--device_num", text), 2, words)


@pytest.mark.parametrize(
    ("visible", "positions", "numbers"),
    [
        ("4,5,6,7", ["--device_num", "[0,4)"], [4, 5, 6, 7]),
        ("6,4,5,7", ["--device_num", "1,0"], [4, 6]),  # the order is that of the ranks
        ("4,5,6,7", [], [4, 5, 6, 7]),
        ("[4,8)", [], [4, 5, 6, 7]),
    ],
)
def test_in_a_container_positions_count_within_the_visible_devices(devices, visible, positions, numbers):
    assert devices("--visible_devices", visible, *positions) == expected(numbers)


@pytest.mark.parametrize("text", ["[4,8)", "[0,5)", "4"])
def test_in_a_container_a_position_that_is_not_there_is_a_clear_line(build, cards, text):
    answer = build("--visible_devices", "4,5,6,7", "--device_num", text)
    refused(answer, 2, "has positions 0 to 3", '--devices "[0,4)"')


def test_what_a_failed_hccn_tool_prints_never_becomes_an_address(build, cards):
    cards.fault(1, "garbage")
    answer = build("--device_num", "[0,2)")
    refused(answer, 1, "hccn_tool failed for device 1: error: something went wrong (exit 1)")


def test_an_ipv6_address_is_not_cut_at_its_colons(devices, cards):
    cards.set({f"IPv6address_{number}": f"fd00::{number + 1}" for number in range(2)})
    assert devices("--device_num", "[0,2)") == [("0", "fd00::1", "0"), ("1", "fd00::2", "1")]


def test_a_card_without_address_is_named(build, cards):
    cards.set({number: f"192.168.100.{number + 1}" for number in (0, 1, 3)})
    refused(build("--device_num", "[0,4)"), 1, "device 2 has no IP address (hccn_tool -i 2 -ip -g)")


@pytest.mark.parametrize(
    ("conf", "words"),
    [
        ("address_1=192.168.100.2\n", "hccn.conf has no address_0 (device 0)"),
        ("netmask_0=255.255.255.0\naddress_0 = a = b\n", "hccn.conf:2: address_0 is a = b, not an IP address"),
        ("# address_0 = a = b\n# x=y=z\naddress_0 = 192.168.100.1\n", None),
    ],
)
def test_what_is_wrong_in_hccn_conf_is_named_and_its_comments_may_hold_anything(build, world, conf, words):
    (world / "hccn.conf").write_text(conf)
    answer = build("--device_num", "0", "--hccn_conf", "hccn.conf")
    if words:
        refused(answer, 1, words)
    else:
        assert answer[0] == 0 and "addresses from hccn.conf" in answer[2] and not nothing_written(world)


def unresolved(_):
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


@pytest.mark.parametrize("resolve", [unresolved, lambda name: "127.0.1.1"], ids=["unresolved", "as Debian has it"])
def test_a_host_whose_name_gives_no_address_of_its_own_is_127_0_0_1(build, cards, monkeypatch, resolve):
    monkeypatch.setattr(socket, "gethostbyname", resolve)
    status, out, err = build("--device_num", "0")
    assert (status, os.path.basename(out)) == (0, "hccl_1p_0_127.0.0.1.json\n")
    assert "server 127.0.0.1 is right for one server; for several give each its own: --server_ip IP" in err


@pytest.mark.parametrize(
    "server_ip", ["a/b", "../x", "../../10.0.0.1", "/etc/x", "10.0.0.1/../x", "node1", "10.0.0", "10.0.0.256", "*"]
)
def test_a_server_ip_that_is_no_address_is_refused_and_makes_no_file_anywhere(build, cards, world, server_ip):
    before = sorted(world.parent.rglob("*"))
    refused(build("--device_num", "0", "--server_ip", server_ip), 2, f"--server_ip {server_ip} is not an IPv4")
    assert sorted(world.parent.rglob("*")) == before
    assert cards.calls() == []


@pytest.mark.parametrize(
    ("addresses", "words"),
    [
        (["192.168.100.1"] * 2, ['device/1/device_ip: device_ip "192.168.100.1" is also at', "[duplicate-address]"]),
        (["0.0.0.0"], ["/server_list/0/device/0/device_ip", "[bad-address]"]),
    ],
)
def test_addresses_that_make_no_good_table_are_named(build, cards, addresses, words):
    cards.set(dict(enumerate(addresses)))
    refused(build("--device_num", f"[0,{len(addresses)})"), 1, *words)


@pytest.mark.slow
@pytest.mark.parametrize("text", ["0,1,4,5", "[2,6)", "[0,3)", "[3,10)"])
@pytest.mark.parametrize("generation", [None, "A2", "A3"])
def test_groups_of_910a_do_not_hold_elsewhere(build, cards, text, generation):
    status, _, err = build("--device_num", text, *(["--generation", generation] if generation else []))
    assert status == 0, err


def test_two_linked_pairs_are_legal_on_910a(devices):
    assert devices("--device_num", "0,1,4,5", "--generation", "910A") == expected([0, 1, 4, 5])


@pytest.mark.parametrize(
    ("devices", "words"),
    [
        *((["--device_num", text], "on a 910A host; ") for text in ("[2,6)", "[0,3)", "3,4", "[0,16)", "8")),
        (["--visible_devices", "2,3,4,5", "--device_num", "[0,4)"], "devices 2-5 are not linked"),  # the physical ones
    ],
)
def test_groups_of_910a_hold_on_910a_and_no_card_is_asked(build, cards, devices, words):
    refused(build(*devices, "--generation", "910A"), 2, words)
    assert cards.calls() == []


def test_the_table_is_written_whole_or_not_at_all(build, cards, world, monkeypatch):
    old = rank_table.dump(rank_table.build([(0, "192.168.100.9")], "10.0.0.1"))
    (world / "t.json").write_text(old)

    def fail(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    status, out, err = build("--device_num", "0", "--output", "t.json")
    assert (status, out) == (2, "")
    assert "cannot write t.json: No space left on device; nothing was changed" in err
    assert (world / "t.json").read_text() == old
    assert os.listdir(world) == ["t.json"]


def test_the_table_goes_where_output_says(build, cards, world):
    (world / "tables").mkdir()
    _, out, _ = build("--device_num", "0", "--output", "tables/t.json")
    assert out == str(world / "tables" / "t.json") + "\n"
    assert [path.name for path in world.rglob("*.json")] == ["t.json"]


def test_nothing_goes_through_a_shell(build, cards, world):
    before = sorted(os.listdir(world))
    refused(build("--device_num", "0;echo>made"), 2)
    refused(build("--device_num", "0", "--server_ip", "$(echo>made)"), 2)
    cards.fault(0, "absent")
    refused(build("--device_num", "0", "--hccn_conf", "$(echo>made)`echo>made`;echo>made"), 1)
    assert sorted(os.listdir(world)) == before


# ---- the command line ----------------------------------------------------------------------------


def test_without_options_the_host_has_eight_devices_and_options_may_have_hyphens(devices):
    assert devices() == expected(range(8))
    assert devices("--visible-devices", "4,5", "--device-num", "0", "--server-ip", "10.0.0.1") == expected([4])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--no_such"], "unrecognized arguments: --no_such"),
        (["extra"], "unrecognized arguments: extra"),
        (["--device"], "unrecognized arguments: --device; did you mean --devices?"),
        (["--devcie_num=4"], "unrecognized arguments: --devcie_num=4; did you mean --devices?"),
        (["-out", "x"], "unrecognized arguments: -out x; did you mean --output?"),
        (["--fromat", "json"], "unrecognized arguments: --fromat json; did you mean --json?"),
        (["--stdout", "--json"], "--stdout prints the table itself"),
        (["--std"], "unrecognized arguments: --std; did you mean --stdout?"),
        (["--device_num"], "expected one argument"),
        (["--generation", "910"], "invalid choice"),
        (["--stdout", "--output", "t.json"], "--stdout writes no file"),
        *((["--device_num=0", option, ""], "") for option in ("--device_num", "--visible_devices", "--server_ip")),
        (["--device_num=0", "--output", ""], ""),
        (["--device_num=0", "--output", "."], "\nhccl_tools.py: "),
        (["--device_num=0", "--output", "none/t.json"], "\nhccl_tools.py: "),
    ],
)
def test_a_command_line_that_cannot_be_is_exit_2(build, cards, world, arguments, words):
    status, out, err = build(*arguments)
    assert (status, out) == (2, "")
    assert words in "\n" + err
    assert nothing_written(world)


@pytest.mark.parametrize("arguments", [["--device_num", "[0,\n4)"], ["--device_num", "0\r1"], ["--server_ip", "a\nb"]])
def test_a_complaint_is_one_line_whatever_was_typed(build, cards, arguments):
    refused(build(*arguments), 2)


# ---- what it says --------------------------------------------------------------------------------


def test_stdout_is_the_path_only_and_the_rest_is_on_stderr(build, cards, world):
    status, out, err = build("--device_num", "[4,8)", "--server_ip", "10.0.0.1")
    assert (status, out) == (0, str(world / "hccl_4p_4567_10.0.0.1.json") + "\n")
    expected = "hccl_tools.py: 4 ranks on devices 4-7, addresses from hccn_tool, server 10.0.0.1"
    assert err == expected + " (rules common to all generations)\n"


def test_json_is_the_path_and_what_is_in_the_table(build, cards, world):
    status, out, err = build("--devices", "[4,8)", "--server_ip", "10.0.0.1", "--generation", "910A", "--json")
    made = json.loads(out)
    assert status == 0 and err.startswith("hccl_tools.py: 4 ranks on devices 4-7")
    json_pages.check("hccl_tools.py", made)
    content = (world / "hccl_4p_4567_10.0.0.1.json").read_bytes()
    assert made == {
        **{"file": str(world / "hccl_4p_4567_10.0.0.1.json"), "table_format": "v1.0", "servers": 1, "ranks": 4},
        **{"sha256": hashlib.sha256(content).hexdigest(), "generation": "910A"},
    }


@pytest.mark.parametrize("name", ["--devices", "--device_num", "--device-num"])
def test_the_devices_have_the_name_that_scripts_have_and_that_of_the_original(build, cards, name):
    assert build(name, "[4,8)", "--output", "-") == build("--devices", "[4,8)", "--stdout")


def test_stdout_is_the_table_only_when_it_is_asked_for(build, cards, world):
    status, out, err = build("--device_num", "[4,8)", "--stdout")
    assert (status, verdict.check(json.loads(out))) == (0, [])
    assert err.startswith("hccl_tools.py: 4 ranks")
    assert nothing_written(world)


@pytest.mark.parametrize(
    ("options", "address"), [([], "10.1.2.3"), *((["--server_ip", ip], ip) for ip in ("127.0.0.1", "fd00::1"))]
)
def test_the_server_has_the_address_asked_for_or_else_the_one_of_the_hosts_name(build, cards, options, address):
    _, out, err = build("--device_num", "0", *options, "--stdout")
    assert json.loads(out)["server_list"][0]["server_id"] == address
    assert "for several" not in err


def test_a2_and_a3_do_without_addresses_that_are_not_set_and_910a_does_not(build, devices, cards):
    cards.set({0: "192.168.100.1"})
    refused(build("--device_num", "[0,2)", "--generation", "910A"), 1, "device 1 has no IP address")
    for generation in ("A2", "A3"):
        found = devices("--device_num", "[0,2)", "--generation", generation)
        assert found == [("0", "192.168.100.1", "0"), ("1", None, "1")], generation


# ---- a file that is there already ----------------------------------------------------------------


def test_the_same_table_again_is_no_news_and_another_one_is_replaced_and_said_so(build, cards, world):
    first = build("--device_num", "0", "--output", "t.json")
    assert build("--device_num", "0", "--output", "t.json") == first
    status, _, err = build("--device_num", "[0,2)", "--output", "t.json")
    assert status == 0
    assert "t.json held another table; it is replaced" in err
    assert len(json.loads((world / "t.json").read_text())["server_list"][0]["device"]) == 2


@pytest.mark.parametrize("content", ["{", "", "a: b", "[]", "{}", '{"version": "1.0"}', "\0"])
def test_a_file_that_is_no_rank_table_is_not_overwritten(build, cards, world, content):
    (world / "t.json").write_text(content)
    status, out, err = build("--device_num", "0", "--output", "t.json")
    assert (status, out) == (2, "")
    assert "name another file with --output" in err
    assert (world / "t.json").read_text() == content


# ---- as a program --------------------------------------------------------------------------------


@pytest.mark.slow
def test_it_runs_from_another_folder_through_a_link_and_as_a_module(run, cards, world, root):
    ended = run("hccl_tools/hccl_tools.py", "--device_num", "[0, 2)", "--server_ip", "10.0.0.1")
    path = world / "hccl_2p_01_10.0.0.1.json"
    assert (ended.returncode, ended.stdout) == (0, f"{path}\n"), ended.stderr
    assert verdict.check_file(path)[1] == []
    (world / "build").symlink_to(root / "hccl_tools" / "hccl_tools.py")
    ended = run(world / "build", "--device_num", "0", "--server_ip", "10.0.0.1", "--stdout")
    assert (ended.returncode, json.loads(ended.stdout)["server_count"]) == (0, "1"), ended.stderr
    command = [sys.executable, "-m", "hccl_tools.hccl_tools", "--device_num", "0", "--server_ip", "::1", "--stdout"]
    assert subprocess.run(command, cwd=root, capture_output=True, timeout=300).returncode == 0


def test_its_exit_code_is_that_of_the_verdict(run, cards):
    assert run("hccl_tools/hccl_tools.py", "--device_num", "[4,4)").returncode == 2
    cards.set({})
    assert run("hccl_tools/hccl_tools.py", "--device_num", "0", "--server_ip", "10.0.0.1").returncode == 1


def test_it_needs_no_jsonschema(run, cards, tmp_path):
    (tmp_path / "jsonschema.py").write_text("raise ImportError('not installed')\n")
    ended = run("hccl_tools/hccl_tools.py", "--device_num", "0", "--stdout", env={"PYTHONPATH": str(tmp_path)})
    assert ended.returncode == 0, ended.stderr


# ---- the generation --------------------------------------------------------------------------------


def test_the_rules_of_this_hosts_own_chips_hold_if_none_is_named(build, cards, chip):
    assert build("--device_num", "[0,3)", "--stdout")[0] == 0
    chip("0xd801")
    status, _, err = build("--device_num", "[0,3)", "--stdout")
    assert status == 2
    assert "3 devices (0-2) on a 910A host" in err
    assert build("--device_num", "[0,3)", "--stdout", "--generation", "any")[0] == 0


def test_a_host_with_a3_chips_has_sixteen_devices_unless_others_are_named(build, cards, chip):
    chip("0xd803")
    status, _, err = build("--stdout")
    assert status == 0, err
    assert "16 ranks" in err and "(rules of A3, this host's)" in err
