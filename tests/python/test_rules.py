import itertools

import pytest

from hccl_tools.check import rules, verdict
from hccl_tools.common.problem import errors

DEVICE = "/server_list/0/device/"
SERVER_1, SERVER_2 = "/server_list/0", "/server_list/1"


def swap(*ranks):
    """Edits that give the devices of two servers with two devices each these ranks."""
    places = ("0/device/0", "0/device/1", "1/device/0", "1/device/1")
    return {f"/server_list/{place}/rank_id": rank for place, rank in zip(places, ranks)}


def ids(*numbers):
    """Edits that give the devices of the first server these ids."""
    return {f"{DEVICE}{index}/device_id": str(number) for index, number in enumerate(numbers)}


# rule, devices of each server, edits to a good table, generation, (code, pointer) of every problem
BAD = [
    ("status_not_completed", (2,), {"/status": "initializing"}, None, [("bad-status", "/status")]),
    ("server_count_wrong", (2,), {"/server_count": "2"}, None, [("count-mismatch", "/server_count")]),
    ("server_count_wrong", (2, 2), {"/server_count": "1"}, None, [("count-mismatch", "/server_count")]),
    (
        "server_listed_twice",
        (1, 1, 1),
        {"/server_list/2/server_id": "10.0.0.1"},
        None,
        [("duplicate-server", "/server_list/2/server_id")],
    ),
    *(
        (
            "server_id_is_placeholder",
            (1,),
            {SERVER_1 + "/server_id": name},
            None,
            [("bad-address", SERVER_1 + "/server_id")],
        )
        for name in ("10.*.*.*", "10.xxx.xxx.1", "xx.xx.xx.xx", "XX.XX.XX.XX", "a.b.c.d", "server_0_10.*.*.*")
    ),
    ("device_listed_twice", (2,), ids(0, 0), None, [("duplicate-device", DEVICE + "1/device_id")]),
    ("device_id_too_large", (2,), ids(0, 65), None, [("bad-value", DEVICE + "1/device_id")]),
    *(
        ("address_is_none", (2,), {DEVICE + "1/device_ip": ip}, None, [("bad-address", DEVICE + "1/device_ip")])
        for ip in (
            "192.168.100.300",
            "192.168.100.01",
            "192.168.100",
            " something went wrong",
            "192.168.100.9 ",
            "192.168.100.9\n",
            "fe80",
            "-.-.-.-",
            "",
            "\0",
            "\ud800",
            "0.0.0.0",
            "::",
            "0:0:0:0:0:0:0:0",
            "192.168.100.9,nonsense",
            "192.168.100.9,",
        )
    ),
    *(
        ("address_used_twice", sizes, {where: ip}, None, [("duplicate-address", where)])
        for sizes, where, ip in (
            ((2,), DEVICE + "1/device_ip", "192.168.100.1"),
            ((1, 1), SERVER_2 + "/device/0/device_ip", "192.168.100.1"),
            ((2,), DEVICE + "1/device_ip", "192.168.100.9,192.168.100.1"),
        )
    ),
    (
        "address_used_twice",
        (2,),
        {DEVICE + "0/device_ip": "fd00::1", DEVICE + "1/device_ip": "fd00:0:0::1"},
        None,
        [("duplicate-address", DEVICE + "1/device_ip")],
    ),
    (
        "families_differ",
        (1, 1),
        {SERVER_2 + "/device/0/device_ip": "fd00::1"},
        None,
        [("mixed-family", SERVER_2 + "/device/0/device_ip")],
    ),
    (
        "address_missing_between_servers",
        (1, 1),
        {SERVER_2 + "/device/0/device_ip": ...},
        None,
        [("missing-field", SERVER_2 + "/device/0")],
    ),
    ("rank_given_twice", (2,), {DEVICE + "1/rank_id": "0"}, None, [("duplicate-rank", DEVICE + "1/rank_id")]),
    ("rank_left_out", (2,), {DEVICE + "1/rank_id": "2"}, None, [("rank-gap", "/server_list")]),
    ("rank_left_out", (1,), {DEVICE + "0/rank_id": "1"}, None, [("rank-gap", "/server_list")]),
    ("rank_left_out", (2, 2), swap("0", "1", "3", "4"), None, [("rank-gap", "/server_list")]),
    ("ranks_interleave", (2, 2), swap("0", "2", "1", "3"), None, [("rank-interleave", SERVER_2)]),
    ("ranks_interleave", (2, 2), swap("0", "3", "1", "2"), None, [("rank-interleave", SERVER_2)]),
    ("ranks_interleave", (2, 2), swap("1", "2", "0", "3"), None, [("rank-interleave", "/server_list/0")]),
    *(
        ("port_impossible", (1,), {f"{DEVICE}0/{key}": port}, None, [("bad-value", f"{DEVICE}0/{key}")])
        for key in ("device_port", "host_port")
        for port in ("0", "65536")
    ),
    ("devices_not_linked", (2,), ids(3, 4), "910A", [("device-group", SERVER_1 + "/device")]),
    ("devices_not_linked", (3,), {}, "910A", [("device-group", SERVER_1 + "/device")]),
    ("devices_not_linked", (4,), ids(0, 1, 2, 4), "910A", [("device-group", SERVER_1 + "/device")]),
    ("devices_not_linked", (1,), ids(8), "910A", [("device-group", SERVER_1 + "/device")]),
    ("devices_not_linked", (16,), {}, "910A", [("device-group", SERVER_1 + "/device")]),
    ("servers_unlike_on_910a", (2, 1), {}, "910A", [("device-count", SERVER_2 + "/device")]),
    ("address_missing_on_910a", (1,), {DEVICE + "0/device_ip": ...}, "910A", [("missing-field", DEVICE + "0")]),
    (
        "address_missing_between_servers",
        (1, 1),
        {DEVICE + "0/device_ip": ...},
        "910A",
        [("missing-field", DEVICE + "0")],
    ),
    ("host_ip_is_no_address", (1,), {SERVER_1 + "/host_ip": "x"}, None, [("bad-address", SERVER_1 + "/host_ip")]),
    *(
        ("other_address_is_placeholder", (1,), {f"{SERVER_1}/{key}": ip}, None, [("bad-address", f"{SERVER_1}/{key}")])
        for key, ip in (("container_ip", "10.*.*.*"), ("server_ip", "xx.xx.xx.xx"), ("pod_ip", "容器IP地址"))
    ),
    (
        "host_port_used_twice",
        (2,),
        {DEVICE + "0/host_port": "16666", DEVICE + "1/host_port": "16666"},
        None,
        [("port-clash", DEVICE + "1/host_port")],
    ),
    ("version_1_on_950", (1,), {}, "950", [("wrong-version", "/version")]),
    *(("device_id_not_there", (1,), ids(16), chip, [("bad-value", DEVICE + "0/device_id")]) for chip in ("A2", "A3")),
]

# the same for warnings: such a table is good, and the user is told
DOUBTFUL = [
    *(
        ("server_id_cannot_be_reached", (1, 1), edits, None, [("loopback-server", place)])
        for place, edits in (
            (SERVER_1 + "/server_id", {SERVER_1 + "/server_id": "0.0.0.0"}),
            (SERVER_2 + "/server_id", {SERVER_2 + "/server_id": "127.0.1.1"}),
            (SERVER_2 + "/server_id", {SERVER_2 + "/server_id": "localhost"}),
        )
    ),
    (
        "servers_out_of_order",
        (1, 1),
        {SERVER_1 + "/server_id": "10.19.1.79", SERVER_2 + "/server_id": "10.19.1.142"},
        None,
        [("server-order", SERVER_2 + "/server_id")],
    ),
    ("servers_out_of_order", (2, 2), swap("2", "3", "0", "1"), None, [("server-order", SERVER_1 + "/server_id")]),
    (
        "subnets_differ",
        (1, 1),
        {SERVER_2 + "/device/0/device_ip": "172.16.0.1"},
        None,
        [("different-subnets", SERVER_2 + "/device/0/device_ip")],
    ),
    *(
        ("key_almost_known", (2,), {place: "x"}, None, [("misspelt-key", place)])
        for place in ("/super_pod_lst", SERVER_1 + "/host_ipp", DEVICE + "1/device_prt")
    ),
    *(
        ("port_reserved", (1,), {f"{DEVICE}0/{key}": port}, None, [("low-port", f"{DEVICE}0/{key}")])
        for key in ("device_port", "host_port")
        for port in ("1", "1023")
    ),
    *(("servers_unlike", (2, 1), {}, chip, [("device-count", SERVER_2 + "/device")]) for chip in ("A2", "A3")),
    ("planes_differ_on_a2", (2,), ids(0, 9), "A2", [("device-group", SERVER_1 + "/device")]),
    (
        "virtual_address_on_a3",
        (2,),
        {DEVICE + "1/device_ip": "192.40.3.198"},
        "A3",
        [("vnic-address", DEVICE + "1/device_ip")],
    ),
]

GOOD = [
    ("one device", (1,), {}, None),
    ("sixteen devices", (16,), {}, None),
    ("any devices together", (2,), ids(3, 4), None),
    ("three devices", (3,), {}, None),
    ("the largest device id", (1,), ids(64), None),
    ("servers of different size", (2, 1), {}, None),
    ("a server_id that is a name", (1,), {SERVER_1 + "/server_id": "node_0"}, None),
    ("a server_id that is a full name", (1,), {SERVER_1 + "/server_id": "node1.example.com.cn"}, None),
    ("a server_id with a label of one letter", (1,), {SERVER_1 + "/server_id": "node1.a.example.com"}, None),
    ("a server_id with two labels of one letter", (1,), {SERVER_1 + "/server_id": "x.y"}, None),
    ("a server_id that is IPv6", (1,), {SERVER_1 + "/server_id": "fd00::1"}, None),
    ("no device_ip on one server", (1,), {DEVICE + "0/device_ip": ...}, None),
    ("both families on one server", (2,), {DEVICE + "1/device_ip": "fd00::1"}, None),
    ("a list of addresses", (1,), {DEVICE + "0/device_ip": "192.168.100.1,192.168.101.1"}, None),
    ("IPv6 on all servers", (1, 1), {f"/server_list/{n}/device/0/device_ip": f"fd00::{n}:1" for n in (0, 1)}, None),
    ("the same device on two servers", (1, 1), {}, None),
    ("ranks in another order than devices", (2,), {DEVICE + "0/rank_id": "1", DEVICE + "1/rank_id": "0"}, None),
    ("one server at 127.0.0.1", (1,), {SERVER_1 + "/server_id": "127.0.0.1"}, None),
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
    *((f"A2 and A3 have no groups: {generation}", (3,), ids(0, 5, 6), generation) for generation in ("A2", "A3")),
    *(
        (f"A2 and A3 do without address: {generation}", (1,), {DEVICE + "0/device_ip": ...}, generation)
        for generation in ("A2", "A3")
    ),
]


def named(case):
    return case[0]


@pytest.mark.parametrize("case", BAD, ids=[f"{case[0]}-{list(case[2].values())!a}-{case[3]}" for case in BAD])
def test_a_rule_finds_what_breaks_it_where_it_is_and_nothing_else(table, case):
    _, sizes, edits, generation, expected = case
    found = verdict.check(table(*sizes, edits=edits), generation)
    assert [(problem.code, problem.pointer) for problem in found] == expected


@pytest.mark.parametrize(("sizes", "edits", "generation"), [case[1:] for case in GOOD], ids=map(named, GOOD))
def test_a_good_table_breaks_no_rule(table, sizes, edits, generation):
    assert verdict.check(table(*sizes, edits=edits), generation) == []


@pytest.mark.parametrize("case", DOUBTFUL, ids=[f"{case[0]}-{list(case[2].values())!a}-{case[3]}" for case in DOUBTFUL])
def test_a_rule_warns_where_a_table_is_doubtful(table, case):
    _, sizes, edits, generation, expected = case
    found = verdict.check(table(*sizes, edits=edits), generation)
    assert [(problem.code, problem.pointer) for problem in found] == expected
    assert errors(found) == []


def test_a_mistake_that_a_program_writes_everywhere_is_one_warning(table):
    document = table(3, edits={f"{DEVICE}{n}/device_prt": "1" for n in range(3)})
    assert [(p.code, p.pointer) for p in verdict.check(document)] == [("misspelt-key", DEVICE + "0/device_prt")]


@pytest.mark.parametrize("generation", [None, "A2", "A3"])
@pytest.mark.parametrize(
    ("sizes", "edits"), [case[1:3] for case in BAD if case[0].endswith("910a") or case[0] == "devices_not_linked"]
)
def test_rules_of_910a_hold_on_910a_only(table, sizes, edits, generation):
    assert errors(verdict.check(table(*sizes, edits=edits), generation)) == []


def test_a_problem_says_what_was_found_and_how_to_mend_it(table):
    (problem,) = verdict.check(table(2, edits={"/server_count": "7"}))
    assert (problem.text, problem.remedy) == ('server_count is "7" but server_list has 1', 'write "1"')


# ---- groups of 910A ------------------------------------------------------------------------------

FOURS = ["0123", "4567", "0145", "0246", "0347", "1256", "1357", "2367"]


@pytest.mark.parametrize("devices", list(itertools.combinations(range(8), 4)), ids=str)
def test_910a_runs_the_fours_that_hccl_knows_in_any_order(devices):
    legal = "".join(map(str, devices)) in FOURS
    assert (rules.group_problem_910a(devices[::-1]) is None) == legal


@pytest.mark.parametrize("devices", list(itertools.combinations(range(8), 2)), ids=str)
def test_910a_runs_pairs_of_one_group(devices):
    legal = (devices[0] < 4) == (devices[1] < 4)
    assert (rules.group_problem_910a(devices) is None) == legal


@pytest.mark.parametrize("count", range(1, 9))
def test_910a_runs_1_2_4_or_8_devices(count):
    assert (rules.group_problem_910a(range(count)) is None) == (count in (1, 2, 4, 8))


# ---- addresses -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "family"),
    [
        ("10.0.0.1", "AF_INET"),
        ("fd00::1", "AF_INET6"),
        ("::ffff:10.0.0.1", "AF_INET6"),
        ("10.0.0", None),
        ("010.0.0.1", None),
        ("10.0.0.1/24", None),
        ("fe80::1%eth0", None),
        ("", None),
        ("\0", None),
        ("机", None),
    ],
)
def test_an_address_is_what_inet_pton_takes(address, family):
    found = rules.family(address)
    assert (found and found.name) == family
