import os
import subprocess
import sys

import pytest

from hccl_tools.machine import hccn

ENTER = "Enter [ hccn_tool -h ] for more details.\n"
FIRST_FOUR = {device: f"192.168.100.{device + 1}" for device in range(4)}


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(hccn.time, "sleep", lambda seconds: None)


@pytest.fixture
def conf(world):
    """conf("address_0=10.0.0.1"): writes a hccn.conf of these lines, returns its path."""

    def write(*lines):
        path = world / "hccn.conf"
        path.write_text("".join(line + "\n" for line in lines))
        return str(path)

    return write


@pytest.fixture
def no_conf(world):
    """The path of a hccn.conf that is not there."""
    return str(world / "no.conf")


def refusal(devices, conf_path, **options):
    """The text of the AddressError that these devices meet."""
    with pytest.raises(hccn.AddressError) as error:
        hccn.addresses(devices, conf_path, **options)
    return str(error.value)


# ---- the simulated hccn_tool prints what the documents say ---------------------------------------


@pytest.mark.parametrize(
    ("arguments", "status", "stdout", "stderr"),
    [
        ("-i 0 -ip -g", 0, "ipaddr:192.168.100.1\nnetmask:255.255.255.0\n", ""),
        ("-i 1 -ip -inet6 -g", 0, "ipv6_address:fd00::1\nprefix_length:64\n", ""),
        ("-i 1 -ip -g", 13, "", "Get ipconf failed, because no ip was preset there!\n"),
        ("-i 0 -ip", 1, "", "Get invalid parameters!\n"),
        ("-i 0 -nothing -g", 3, "", "Get invalid major cmd.\n" + ENTER),
        ("-i x -ip -g", 2, "", "Get invalid major cmd number. Please check your input.\n" + ENTER),
        ("-x", 1, "", 'Get invalid major cmd type. The valid major cmd type should be "-a" or "-i".\n' + ENTER),
    ],
)
def test_the_simulation_answers_as_documented(cards, arguments, status, stdout, stderr):
    cards.set({0: "192.168.100.1", "IPv6address_1": "fd00::1"})
    ended = subprocess.run(["hccn_tool", *arguments.split()], capture_output=True, text=True, timeout=300)
    assert (ended.returncode, ended.stdout, ended.stderr) == (status, stdout, stderr)


# ---- hccn_tool -----------------------------------------------------------------------------------


def test_the_addresses_are_what_hccn_tool_says_and_it_comes_before_hccn_conf(cards, conf, no_conf):
    assert hccn.addresses([0, 1, 2, 3], no_conf) == (FIRST_FOUR, "hccn_tool")
    assert hccn.addresses([0], conf("address_0=10.9.9.9")) == ({0: "192.168.100.1"}, "hccn_tool")


def test_other_lines_and_spaces_around_an_address_are_no_matter(cards, no_conf):
    cards.fault(1, "chatty")
    assert hccn.addresses([0, 1], no_conf)[0] == {0: "192.168.100.1", 1: "192.168.100.2"}


def test_an_ipv6_address_is_taken_whole(cards, no_conf):
    cards.set({0: "192.168.100.1", "IPv6address_1": "fd00:1::2"})
    assert hccn.addresses([0, 1], no_conf) == ({0: "192.168.100.1", 1: "fd00:1::2"}, "hccn_tool")


def test_only_cards_without_ipv4_are_asked_for_ipv6(cards, no_conf):
    cards.set({0: "192.168.100.1", "IPv6address_0": "fd00::1", "IPv6address_1": "fd00::2"})
    hccn.addresses([0, 1], no_conf)
    assert sorted(call for _, call in cards.calls()) == ["-i 0 -ip -g", "-i 1 -ip -g", "-i 1 -ip -inet6 -g"]


def test_hccn_tool_does_not_see_the_list_that_renumbers_devices(cards, no_conf, monkeypatch):
    monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", "4,5,6,7")
    hccn.addresses([4, 5], no_conf)
    assert sorted(cards.calls()) == [("unset", "-i 4 -ip -g"), ("unset", "-i 5 -ip -g")]
    assert os.environ["ASCEND_RT_VISIBLE_DEVICES"] == "4,5,6,7"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("#!/usr/bin/env bash\necho LC_ALL is $LC_ALL\nexit 1\n", "LC_ALL is C (exit 1)"),
        ("#!/no/such/interpreter\n", "hccn_tool failed for device 0: No such file"),
    ],
)
def test_hccn_tool_answers_in_english_and_may_not_start_at_all(world, tmp_path, no_conf, script, said):
    program = tmp_path / "programs" / "hccn_tool"
    program.write_text(script)
    program.chmod(0o755)
    assert said in refusal([0], no_conf)


def test_all_cards_are_asked_at_the_same_time(cards, no_conf, programs_run):
    hccn.addresses([0, 1, 2], no_conf)
    assert programs_run == ["_start"] * 3 + ["_finish"] * 3


@pytest.mark.parametrize("times", [1, 4])
def test_a_busy_tool_is_asked_again_and_only_for_the_card_that_it_was_busy_for(cards, no_conf, times):
    cards.fault(1, f"busy {times}")
    assert hccn.addresses([0, 1], no_conf)[0] == {0: "192.168.100.1", 1: "192.168.100.2"}
    asked = [call for _, call in cards.calls()]
    assert (asked.count("-i 0 -ip -g"), asked.count("-i 1 -ip -g")) == (1, times + 1)


def test_a_tool_that_stays_busy_is_given_up(cards, no_conf):
    cards.fault(0, "busy 1000")
    assert "hccn_tool failed for device 0: hccn_tool is busy, please try again. (exit 11)" in refusal([0], no_conf)
    assert 2 <= len(cards.calls()) <= 20


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("denied", "permission denied: pls check this cmd run permission. (exit 12)"),
        ("unsupported", "The command is not supported on this product. (exit 13)"),
        ("absent", "The device is not exist! (exit 4)"),
        ("garbage", "error: something went wrong (exit 1)"),
        ("silent", "no output (exit 0)"),
        ("late", "ipaddr:192.168.100.3 (exit 1)"),
    ],
)
def test_a_tool_that_cannot_answer_is_quoted_with_its_card_and_gives_no_address(cards, no_conf, word, said):
    cards.fault(2, word)
    assert f"hccn_tool failed for device 2: {said}" in refusal([0, 1, 2, 3], no_conf)


@pytest.mark.parametrize("word", ["denied", "unsupported", "absent", "garbage", "silent"])
def test_where_the_tool_cannot_answer_hccn_conf_does_and_the_source_says_why(cards, conf, word):
    cards.fault(1, word)
    path = conf("address_0=10.0.0.1", "address_1=10.0.0.2")
    found, source = hccn.addresses([0, 1], path)
    assert found == {0: "10.0.0.1", 1: "10.0.0.2"}
    assert source.startswith(path)
    assert "hccn_tool failed for device 1" in source


@pytest.mark.parametrize("address", ["-.-.-.-", "fe80", "192.168.100.300", "192.168.0.01"])
def test_an_address_that_is_none_is_not_taken(cards, no_conf, address):
    cards.set({0: address})
    assert "hccn_tool failed for device 0" in refusal([0], no_conf)


def test_a_tool_that_hangs_is_stopped(cards, no_conf, monkeypatch):
    monkeypatch.setattr(hccn, "_SECONDS", 0.1)
    cards.fault(0, "hang")
    assert "hccn_tool failed for device 0: no answer within" in refusal([0], no_conf)


def test_a_tool_whose_child_hangs_is_not_waited_for(cards, no_conf, root):
    cards.fault(0, "hang_in_child")
    code = f"from hccl_tools.machine import hccn; hccn._SECONDS = 0.1; hccn.addresses([0], {no_conf!r})"
    try:
        ended = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=25)
    except subprocess.TimeoutExpired:
        pytest.fail("still waiting long after the time limit")
    assert "hccn_tool failed for device 0: no answer within" in ended.stderr


# ---- an address that is not set ------------------------------------------------------------------


def test_cards_without_address_are_named_with_the_command_that_sets_one(cards, conf, no_conf):
    cards.set({0: "192.168.100.1", 1: "192.168.100.2"})
    text = refusal([0, 1, 2, 3], no_conf)
    assert text.startswith("devices 2,3 have no IP address") and "hccn_tool -i 2 -ip -s address" in text
    # an address that only hccn.conf has is not used
    assert "has 10.0.0.3: apply it with `hccn_tool -i 2 -cfg recovery`" in refusal([2], conf("address_2=10.0.0.3"))


def test_a_hccn_conf_that_is_no_text_does_not_hide_the_card_without_address(cards, world):
    cards.set({})
    (world / "hccn.conf").write_bytes(b"\xff\xfe\x00")
    assert "device 0 has no IP address" in refusal([0], str(world / "hccn.conf"))


def test_where_addresses_are_optional_a_card_without_one_has_none(cards, no_conf):
    cards.set({0: "192.168.100.1"})
    assert hccn.addresses([0, 1], no_conf, address_optional=True) == ({0: "192.168.100.1", 1: None}, "hccn_tool")


# ---- hccn.conf -----------------------------------------------------------------------------------


def test_without_hccn_tool_the_addresses_are_those_of_hccn_conf(conf):
    path = conf("address_0=10.0.0.1", "address_1 = 10.0.0.2 ")
    assert hccn.addresses([1, 0], path) == ({1: "10.0.0.2", 0: "10.0.0.1"}, path)


def test_keys_that_only_look_like_addresses_are_left_alone(conf):
    path = conf(
        *("# address_0=a=b", "#address_0=10.9.9.9", "netmask_0=255.255.0.0", "bond_address_0=10.9.9.9"),
        *("route_address_10.1.0.0_netmask_255.255.0.0_0=gateway_29.1.0.1", "address_0x=10.9.9.9"),
        *("address_00=10.9.9.9", "address_10=10.9.9.9", "arp_0=-i eth0 -s 29.1.0.2 aa:bb:cc:dd:ee:ff"),
        *("address_0=10.0.0.1", "", "no equals sign"),
    )
    assert hccn.addresses([0], path)[0] == {0: "10.0.0.1"}


def test_ipv6_is_taken_from_hccn_conf_where_there_is_no_ipv4(conf):
    path = conf("address_0=10.0.0.1", "IPv6address_0=fd00::1", "IPv6address_1=fd00::2")
    assert hccn.addresses([0, 1], path)[0] == {0: "10.0.0.1", 1: "fd00::2"}


def test_lines_may_end_as_on_windows(world):
    (world / "hccn.conf").write_bytes(b"address_0=10.0.0.1\r\naddress_1=10.0.0.2\r\n")
    assert hccn.addresses([0, 1], str(world / "hccn.conf"))[0] == {0: "10.0.0.1", 1: "10.0.0.2"}


@pytest.mark.parametrize(
    ("line", "shown"), [("address_0 = a = b", "a = b"), ("address_0=", "empty"), ("address_0=10.0.0.300", "10.0.0.300")]
)
def test_a_line_that_holds_no_address_is_named_by_its_number(conf, line, shown):
    assert f"hccn.conf:2: address_0 is {shown}, not an IP address" in refusal([0], conf("netmask_0=x", line))


def test_a_missing_address_is_named_by_its_key_and_without_hccn_conf_the_ways_out(conf, no_conf):
    text = refusal([0, 1, 2], conf("address_0=10.0.0.1"))
    assert "has no address_1 (devices 1,2); hccn_tool is not on PATH" in text
    text = refusal([0, 1], no_conf)
    assert "no address for devices 0,1: hccn_tool is not on PATH" in text and "--hccn_conf" in text


def test_a_file_that_was_named_and_is_missing_is_named_with_its_likeness(conf, no_conf):
    assert "; correct the path behind --hccn_conf" in refusal([0], no_conf)
    near = conf("address_0=10.0.0.1")
    assert refusal([0], f"{near}f").endswith(f"; did you mean {near}?")


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00"], ids=["folder", "bytes"])
def test_a_hccn_conf_that_cannot_be_read_is_said_so(world, content):
    path = world / "hccn.conf"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    assert f"{path} cannot be read" in refusal([0], str(path))


def test_where_addresses_are_optional_hccn_conf_may_lack_one_or_all(conf, no_conf):
    assert hccn.addresses([0, 1], conf("address_0=10.0.0.1"), True)[0] == {0: "10.0.0.1", 1: None}
    found, source = hccn.addresses([0, 1], no_conf, True)
    assert found == {0: None, 1: None} and not source.startswith(no_conf)


def test_a_number_of_no_device_is_passed_over(tmp_path):
    conf = tmp_path / "hccn.conf"
    conf.write_text(f"address_{'9' * 5000}=10.0.0.1\naddress_0=10.0.0.2\n")
    assert hccn.read_conf(str(conf)) == ({0: "10.0.0.2"}, None)


def test_an_endless_file_is_not_read_to_its_end():
    found, fault = hccn.read_conf("/dev/zero")
    assert found == {} and fault.startswith("/dev/zero has more than 1048576 characters")
