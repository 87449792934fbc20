"""The rules of version 1.0, each with a table that breaks it."""

import itertools
from collections import namedtuple
from functools import partial

import good_tables
import pytest
from suite.cases import for_each

from hccl_tools.check import rules, verdict
from hccl_tools.common.problem import errors

DEVICE = "/server_list/0/device/"
SERVER_1, SERVER_2 = "/server_list/0", "/server_list/1"
SECOND = SERVER_2 + "/device/0"  # its first device

Case = namedtuple("Case", "rule table edits chip expected")


def case(rule, table, edits, *found, chip=None):
    """A table that breaks `rule`.

    table: numbers of devices of 1.0's servers, or what makes a table.  found: the codes of the problems, each
    at the place of the first edit, or as "code /place".
    """
    place = next(iter(edits), "")
    expected = [tuple(each.split(" ")) if " " in each else (each, place) for each in found]
    return Case(rule, table if callable(table) else partial(good_tables.servers, *table), edits, chip, expected)


def problems(case):
    return verdict.check(good_tables.edited(case.table(), case.edits), case.chip)


def places(found):
    return [(problem.code, problem.pointer) for problem in found]


def name(case):
    return f"{case.rule}-{list(case.edits.values())!a}-{case.chip}"


def swap(*ranks):
    """Edits that give the devices of two servers with two devices each these ranks."""
    listed = ("0/device/0", "0/device/1", "1/device/0", "1/device/1")
    return {f"/server_list/{place}/rank_id": rank for place, rank in zip(listed, ranks)}


def swapped_servers():
    """Edits that give the devices of the first of two servers with eight each the ranks of the second."""
    ranks = ((server, index, (server * 8 + index + 8) % 16) for server in range(2) for index in range(8))
    return {f"/server_list/{server}/device/{index}/rank_id": str(rank) for server, index, rank in ranks}


def ids(*numbers):
    """Edits that give the devices of the first server these ids, the last first."""
    return {f"{DEVICE}{index}/device_id": str(number) for index, number in reversed(list(enumerate(numbers)))}


EMPTY = {f"{DEVICE}{n}/device_ip": "" for n in (0, 1)}

UNPRINTABLE = ("\0", "\n", "\x1b[2J", "\x7f", "\x9b2J", "\u2028", "a\u202eb", "\ud800")
PLACEHOLDERS = (
    "Master节点IP地址",
    "10.*.*.*",
    "10.xxx.xxx.1",
    "xx.xx.xx.xx",
    "XX.XX.XX.XX",
    "a.b.c.d",
    "server_0_10.*.*.*",
)
NO_ADDRESSES = (
    *("192.168.100.300", "192.168.100.01", "192.168.100", " something went wrong", "192.168.100.9 "),
    *("fe80", "-.-.-.-", "0.0.0.0", "::", "0:0:0:0:0:0:0:0"),
    *("192.168.100.9,nonsense", "192.168.100.9,"),
)
GROUP = f"device-group {SERVER_1}/device"

BAD = [
    case("status_not_completed", (2,), {"/status": "initializing"}, "bad-status"),
    case("server_count_wrong", (2,), {"/server_count": "2"}, "count-mismatch"),
    case("server_count_wrong", (2, 2), {"/server_count": "1"}, "count-mismatch"),
    case("server_listed_twice", (1, 1, 1), {"/server_list/2/server_id": "10.0.0.1"}, "duplicate-server"),
    *(case("server_id_is_placeholder", (1,), {SERVER_1 + "/server_id": name}, "bad-address") for name in PLACEHOLDERS),
    *(
        case("text_does_not_print", (1,), {SERVER_1 + "/server_id": "10.0.0.1" + text}, "unprintable-text")
        for text in UNPRINTABLE
    ),
    case("text_does_not_print", (1,), {"/comment": [{"a": ["x\n"]}]}, "unprintable-text /comment/0/a/0"),
    *(
        case("text_does_not_print", (1,), {DEVICE + "0/device_ip": text}, "bad-address", "unprintable-text")
        for text in UNPRINTABLE
    ),
    case("device_listed_twice", (2,), ids(0, 0), "duplicate-device"),
    case("device_id_too_large", (2,), ids(0, 65), "bad-value"),
    *(case("address_is_none", (2,), {DEVICE + "1/device_ip": ip}, "bad-address") for ip in NO_ADDRESSES),
    case("address_used_twice", (2,), {DEVICE + "1/device_ip": "192.168.100.1"}, "duplicate-address"),
    case("address_used_twice", (1, 1), {SECOND + "/device_ip": "192.168.100.1"}, "duplicate-address"),
    case("address_used_twice", (2,), {DEVICE + "1/device_ip": "192.168.100.9,192.168.100.1"}, "duplicate-address"),
    case(
        "address_used_twice",
        (2,),
        {DEVICE + "1/device_ip": "fd00:0:0::1", DEVICE + "0/device_ip": "fd00::1"},
        "duplicate-address",
    ),
    case("families_differ", (1, 1), {SECOND + "/device_ip": "fd00::1"}, "mixed-family"),
    case("address_missing_between_servers", (1, 1), {SECOND + "/device_ip": ...}, "missing-field " + SECOND),
    case("rank_given_twice", (2,), {DEVICE + "1/rank_id": "0"}, "duplicate-rank"),
    case("rank_left_out", (2,), {DEVICE + "1/rank_id": "2"}, "rank-gap /server_list"),
    case("rank_left_out", (1,), {DEVICE + "0/rank_id": "1"}, "rank-gap /server_list"),
    case("rank_left_out", (2, 2), swap("0", "1", "3", "4"), "rank-gap /server_list"),
    case("ranks_interleave", (2, 2), swap("0", "2", "1", "3"), "rank-interleave " + SERVER_2),
    case("ranks_interleave", (2, 2), swap("0", "3", "1", "2"), "rank-interleave " + SERVER_2),
    case("ranks_interleave", (2, 2), swap("1", "2", "0", "3"), "rank-interleave " + SERVER_1),
    *(
        case("port_impossible", (1,), {f"{DEVICE}0/{key}": port}, "bad-value")
        for key in ("device_port", "host_port")
        for port in ("0", "65536")
    ),
    case("devices_not_linked", (2,), ids(3, 4), GROUP, chip="910A"),
    case("devices_not_linked", (3,), {}, GROUP, chip="910A"),
    case("devices_not_linked", (4,), ids(0, 1, 2, 4), GROUP, chip="910A"),
    case("devices_not_linked", (1,), ids(8), GROUP, chip="910A"),
    case("devices_not_linked", (16,), {}, GROUP, chip="910A"),
    case("servers_unlike_on_910a", (8, 4), {}, *[f"device-count {SERVER_2}/device"] * 2, chip="910A"),
    case(
        "few_devices_on_910a",
        (4, 4),
        {},
        *(f"device-count {each}/device" for each in (SERVER_1, SERVER_2)),
        chip="910A",
    ),
    case("servers_out_of_order", (8, 8), swapped_servers(), f"server-order {SERVER_1}/server_id", chip="910A"),
    case("address_missing_on_910a", (1,), {DEVICE + "0/device_ip": ...}, f"missing-field {DEVICE}0", chip="910A"),
    case(
        "address_missing_between_servers",
        (8, 8),
        {DEVICE + "0/device_ip": ...},
        f"missing-field {DEVICE}0",
        chip="910A",
    ),
    case("address_missing_on_910a", (2,), EMPTY, "missing-field /server_list", chip="910A"),
    case(
        "address_missing_between_servers",
        (1, 1),
        {SECOND + "/device_ip": ..., DEVICE + "0/device_ip": ...},
        "missing-field /server_list",
    ),
    case("address_is_none", (2,), {f"{DEVICE}{n}/device_ip": "-.-.-.-" for n in (0, 1)}, "bad-address /server_list"),
    case(
        "address_is_none",
        (3,),
        {f"{DEVICE}{n}/device_ip": "0.0.0.0" for n in (1, 2)},
        *(f"bad-address {DEVICE}{n}/device_ip" for n in (1, 2)),
    ),
    case(
        "rank_given_twice",
        (2,),
        {f"{DEVICE}{n}/rank_id": "x" for n in (0, 1)},
        *(f"bad-value {DEVICE}{n}/rank_id" for n in (0, 1)),
    ),
    case(
        "server_listed_twice",
        (1, 1),
        {f"{place}/server_id": "10.*.*.*" for place in (SERVER_1, SERVER_2)},
        *(f"bad-address {place}/server_id" for place in (SERVER_1, SERVER_2)),
    ),
    case(
        "host_port_used_twice",
        (2,),
        {f"{DEVICE}{n}/host_port": "0" for n in (0, 1)},
        *(f"bad-value {DEVICE}{n}/host_port" for n in (0, 1)),
    ),
    case("address_missing_between_servers", (1, 1), {SECOND + "/device_ip": ""}, "missing-field " + SECOND),
    *(case("host_ip_is_no_address", (1,), {SERVER_1 + "/host_ip": text}, "bad-address") for text in ("x", "")),
    *(
        case("other_address_is_placeholder", (1,), {f"{SERVER_1}/{key}": ip}, "bad-address")
        for key, ip in (("container_ip", "10.*.*.*"), ("server_ip", "xx.xx.xx.xx"), ("pod_ip", "容器IP地址"))
    ),
    case("host_port_used_twice", (2,), {f"{DEVICE}{n}/host_port": "16666" for n in (1, 0)}, "port-clash"),
    case("version_1_on_950", (1,), {}, "wrong-version /version", chip="950"),
    *(case("device_id_not_there", (1,), ids(16), "bad-value", chip=chip) for chip in ("A2", "A3")),
]

# warnings: such a table is good, and the user is told
DOUBTFUL = [
    case("server_id_cannot_be_reached", (1, 1), {SERVER_1 + "/server_id": "0.0.0.0"}, "loopback-server"),
    case("server_id_cannot_be_reached", (1, 1), {SERVER_2 + "/server_id": "127.0.1.1"}, "loopback-server"),
    case("server_id_cannot_be_reached", (1, 1), {SERVER_2 + "/server_id": "localhost"}, "loopback-server"),
    case(
        "servers_out_of_order",
        (1, 1),
        {SERVER_2 + "/server_id": "10.19.1.142", SERVER_1 + "/server_id": "10.19.1.79"},
        "server-order",
    ),
    case("servers_out_of_order", (2, 2), swap("2", "3", "0", "1"), f"server-order {SERVER_1}/server_id"),
    *(
        case("address_is_mistyped", (1,), {SERVER_1 + "/server_id": text}, "doubtful-server")
        for text in (
            "10.9.0.256",
            "10.9.0",
            "10,9,0,1",
            "10.9.0.1 ",
            " node1",
            "1O.9.0.1",
            "10.9.0.l",
            "１０.9.0.1",
            "10.9.0.1:22",
            "10.9.0.1/24",
            "010.9.0.1",
            "fe80::1%eth0",
        )
    ),
    *(
        case("address_is_mistyped", (1,), {f"{SERVER_1}/{key}": "10.9.0.256"}, "doubtful-server")
        for key in ("server_ip", "container_ip", "pod_ip")
    ),
    case("super_pods_in_version_1_0", (1,), {"/super_pod_list": []}, "wrong-version /version"),
    case("subnets_differ", (1, 1), {SECOND + "/device_ip": "172.16.0.1"}, "different-subnets"),
    *(
        case("key_almost_known", (2,), {place: "x"}, "misspelt-key")
        for place in ("/super_pod_lst", SERVER_1 + "/host_ipp", DEVICE + "1/device_prt")
    ),
    *(
        case("port_reserved", (1,), {f"{DEVICE}0/{key}": port}, "low-port")
        for key in ("device_port", "host_port")
        for port in ("1", "1023")
    ),
    *(case("servers_unlike", (2, 1), {}, f"device-count {SERVER_2}/device", chip=chip) for chip in ("A2", "A3")),
    case("planes_differ_on_a2", (2,), ids(0, 9), GROUP, chip="A2"),
    case("virtual_address_on_a3", (2,), {DEVICE + "1/device_ip": "192.40.3.198"}, "vnic-address", chip="A3"),
]

GOOD = [
    ("one device", (1,), {}, None),
    ("sixteen devices", (16,), {}, None),
    ("any devices together", (2,), ids(3, 4), None),
    ("three devices", (3,), {}, None),
    ("the largest device id", (1,), ids(64), None),
    ("servers of different size", (2, 1), {}, None),
    *(
        (f"server_id {server_id}", (1,), {SERVER_1 + "/server_id": server_id}, None)
        for server_id in ("node_0", "node1.example.com.cn", "node1.a.example.com", "x.y", "fd00::1", "127.0.0.1")
    ),
    ("no device_ip on one server", (1,), {DEVICE + "0/device_ip": ...}, None),
    ("both families on one server", (2,), {DEVICE + "1/device_ip": "fd00::1"}, None),
    ("a list of addresses", (1,), {DEVICE + "0/device_ip": "192.168.100.1,192.168.101.1"}, None),
    ("IPv6 on all servers", (1, 1), {f"/server_list/{n}/device/0/device_ip": f"fd00::{n}:1" for n in (0, 1)}, None),
    ("the same device on two servers", (1, 1), {}, None),
    ("ranks in another order than devices", (2,), {DEVICE + "0/rank_id": "1", DEVICE + "1/rank_id": "0"}, None),
    ("a key that is like one that is there", (1,), {DEVICE + "0/device_ip2": "x"}, None),
    ("an address like a virtual one, elsewhere", (1,), {DEVICE + "0/device_ip": "192.40.2.199"}, "A2"),
    ("the address of another device's virtual NIC", (1,), {DEVICE + "0/device_ip": "192.40.2.198"}, "A3"),
    ("the same places of both halves", (4,), ids(0, 3, 8, 11), "A2"),
    ("the first and the last port", (1,), {DEVICE + "0/device_port": "1024", DEVICE + "0/host_port": "65535"}, None),
    ("keys that HCCL does not read", (1,), {"/IsMindIEEPJob": True, "/x": [], DEVICE + "0/numa_id": ""}, None),
    ("eight devices", (8,), {}, "910A"),
    ("the second group", (4,), ids(4, 5, 6, 7), "910A"),
    ("two linked pairs", (4,), ids(0, 1, 4, 5), "910A"),
    ("two servers alike", (8, 8), {}, "910A"),
    *((f"no groups on {chip}", (3,), ids(0, 5, 6), chip) for chip in ("A2", "A3")),
    *(
        (f"server_id {name}", (1,), {SERVER_1 + "/server_id": name}, None)
        for name in ("节点 1", "ü" * 64, "世" * 64, "-a b")
    ),
    *((f"no address, as an empty text, on {chip}", (2,), EMPTY, chip) for chip in (None, "A2", "A3")),
    *((f"no address on {chip}", (1,), {DEVICE + "0/device_ip": ...}, chip) for chip in ("A2", "A3")),
]


@for_each("case", BAD + DOUBTFUL, ids=name)
def test_a_rule_finds_what_breaks_it_where_it_is_and_nothing_else(case):
    assert places(problems(case)) == case.expected


@for_each("case", DOUBTFUL, ids=name)
def test_a_doubtful_table_gets_warnings_only(case):
    assert errors(problems(case)) == []


@for_each("sizes, edits, chip", [each[1:] for each in GOOD])
def test_a_good_table_breaks_no_rule(table, sizes, edits, chip):
    assert verdict.check(table(*sizes, edits=edits), chip) == []


def test_a_mistake_that_a_program_writes_everywhere_is_one_warning(table):
    document = table(3, edits={f"{DEVICE}{n}/device_prt": "1" for n in range(3)})
    assert places(verdict.check(document)) == [("misspelt-key", DEVICE + "0/device_prt")]


@for_each("chip", [None, "A2", "A3"])
@for_each("case", [each for each in BAD if each.rule.endswith("910a") or each.rule == "devices_not_linked"], ids=name)
def test_rules_of_910a_apply_to_910a_only(case, chip):
    assert errors(problems(case._replace(chip=chip))) == []


def test_a_problem_has_what_was_found_and_what_to_do(table):
    (problem,) = verdict.check(table(2, edits={"/server_count": "7"}))
    assert (problem.text, problem.remedy) == ('server_count is "7" but server_list has 1', 'write "1"')
    (problem,) = verdict.check(table(2, edits={"/status": "busy"}))
    assert problem.remedy == 'write "completed" once all devices are listed'


# ---- groups of 910A ------------------------------------------------------------------------------

FOURS = ["0123", "4567", "0145", "0246", "0347", "1256", "1357", "2367"]


@for_each("devices", list(itertools.combinations(range(8), 4)))
def test_910a_runs_the_fours_that_hccl_knows_in_any_order(devices):
    legal = "".join(map(str, devices)) in FOURS
    assert (rules.group_problem_910a(devices[::-1]) is None) == legal


@for_each("devices", list(itertools.combinations(range(8), 2)))
def test_910a_runs_pairs_of_one_group(devices):
    legal = (devices[0] < 4) == (devices[1] < 4)
    assert (rules.group_problem_910a(devices) is None) == legal


@pytest.mark.parametrize("count", range(1, 9))
def test_910a_runs_1_2_4_or_8_devices(count):
    assert (rules.group_problem_910a(range(count)) is None) == (count in (1, 2, 4, 8))


@pytest.mark.parametrize(("chip", "bad"), [(None, 0), ("A2", 0), ("910A", 1)])
def test_servers_out_of_order_are_an_error_on_910a_and_a_warning_elsewhere(chip, bad):
    found = verdict.check(good_tables.edited(good_tables.servers(8, 8), swapped_servers()), chip)
    assert len(errors(found)) == bad and [problem.code for problem in found] == ["server-order"]
