"""The rules of the formats beside 1.0, each with a table that breaks it."""

import copy
import json

import pytest
from test_rules import BAD as BAD_1_0
from test_rules import DOUBTFUL as DOUBTFUL_1_0

from hccl_tools.check import explain, rules, verdict
from hccl_tools.common.problem import errors
from hccl_tools.table import formats
from hccl_tools.table.view import View

POD = "/super_pod_list/"


def super_pods():
    """Two super pods of one server, one of two; two devices each."""
    servers = []
    for number in range(3):
        devices = [
            {
                "device_id": str(n),
                "super_device_id": str(number * 2 + n),
                "device_ip": f"192.168.1.{number * 2 + n + 1}",
                "device_port": "16666",
                "backup_device_ip": f"192.168.1.{number * 2 + 2 - n}",
                "backup_device_port": "16667",
                "host_port": str(16665 + n),
                "rank_id": str(number * 2 + n),
            }
            for n in range(2)
        ]
        servers.append({"server_id": f"node_{number}", "host_ip": f"172.16.0.{number + 1}", "device": devices})
    pods = [
        {"super_pod_id": "a", "server_list": [{"server_id": "node_0"}, {"server_id": "node_1"}]},
        {"super_pod_id": "b", "server_list": [{"server_id": "node_2"}]},
    ]
    return {
        "version": "1.2",
        "status": "completed",
        "server_count": "3",
        "server_list": servers,
        "super_pod_list": pods,
    }


def clusters():
    """Two clusters of one server with one device."""
    servers = [
        {
            "server_id": f"server_{n}_10.0.0.{n + 1}",
            "server_ip": f"10.0.0.{n + 1}",
            "pod_ip": "127.0.0.1",
            "device": [
                {
                    "device_id": "0",
                    "device_ip": f"192.168.1.{n + 1}",
                    "rank_id": str(n),
                    "dpu_ip": "8.2.17.60",
                    "numa_id": "",
                }
            ],
        }
        for n in range(2)
    ]
    listed = [
        {"cluster_id": f"cluster_{n}", "network_type": "ROCE", "server_list": [{"server_id": servers[n]["server_id"]}]}
        for n in range(2)
    ]
    return {
        "version": "1.0",
        "status": "completed",
        "server_count": "2",
        "server_list": servers,
        "cluster_list": listed,
    }


def heterogeneous():
    """Two nodes with one rank."""
    nodes = [
        {
            "node_addr": f"10.0.0.{n + 1}",
            "ranks": [{"rank_id": str(n), "device_id": "0", "port": "16666", "rank_ip": f"192.168.1.{n + 1}"}],
        }
        for n in range(2)
    ]
    return {"version": "1.1", "status": "completed", "collective_id": "job", "node_list": nodes, "mode": "tcp"}


def rank_list():
    """Two ranks of a 950, with two layers."""

    def level(layer, rank):
        address = {"addr_type": "IPV4", "addr": f"192.168.{layer}.{rank + 1}", "ports": ["0/1"], "plane_id": "planeA"}
        return {"net_layer": layer, "net_instance_id": "az0", "net_type": "CLOS", "rank_addr_list": [address]}

    ranks = [
        {"rank_id": n, "local_id": n, "device_id": n, "device_port": 16666, "level_list": [level(0, n), level(1, n)]}
        for n in range(2)
    ]
    return {"version": "2.0", "status": "completed", "rank_count": 2, "rank_list": ranks}


def lab():
    """Two devices of one server, each an instance."""
    instances = [
        {
            "devices": [{"device_id": str(n), "device_ip": f"192.168.10{n}.101"}],
            "rank_id": str(n),
            "server_id": "10.0.0.1",
        }
        for n in range(2)
    ]
    group = {
        "device_num": "2",
        "server_num": "1",
        "group_name": "",
        "instance_count": "2",
        "instance_list": instances,
    }
    return {
        "board_id": "0x002f",
        "chip_info": "910",
        "deploy_mode": "lab",
        "group_count": "1",
        "group_list": [group],
        "para_plane_nic_location": "device",
        "para_plane_nic_name": ["eth0"],
        "para_plane_nic_num": "1",
        "status": "completed",
    }


def cloud():
    """Two pods with one device."""
    instances = [
        {
            "pod_name": f"job-{n}",
            "server_id": f"10.0.0.{n + 1}",
            "devices": [{"device_id": "0", "device_ip": f"192.168.1.{n + 1}"}],
        }
        for n in range(2)
    ]
    group = {"group_name": "job", "device_count": "2", "instance_count": "2", "instance_list": instances}
    return {"status": "completed", "group_count": "1", "group_list": [group]}


TABLES = (super_pods, clusters, heterogeneous, rank_list, lab, cloud)
GROUP = "/group_list/0/"
DEVICE = "/server_list/0/device/0/"
LEVEL = "/rank_list/0/level_list/0/"
ADDRESS = LEVEL + "rank_addr_list/0/"

# rule, table, edits, generation, (code, pointer) of every problem
BAD = [
    ("pods_without_device_ids", super_pods, {"/super_pod_list": ...}, None, [("missing-field", "")]),
    (
        "pods_without_device_ids",
        super_pods,
        {DEVICE + "super_device_id": ...},
        None,
        [("missing-field", DEVICE[:-1])],
    ),
    (
        "super_device_listed_twice",
        super_pods,
        {"/server_list/1/device/0/super_device_id": "0"},
        None,
        [("duplicate-super-device", "/server_list/1/device/0/super_device_id")],
    ),
    (
        "super_device_id_too_large",
        super_pods,
        {DEVICE + "super_device_id": "4294967296"},
        None,
        [("bad-value", DEVICE + "super_device_id")],
    ),
    (
        "super_pod_listed_twice",
        super_pods,
        {POD + "1/super_pod_id": "a"},
        None,
        [("duplicate-super-pod", POD + "1/super_pod_id")],
    ),
    (
        "pod_has_unknown_server",
        super_pods,
        {POD + "1/server_list/-": {"server_id": "node_9"}},
        None,
        [("unknown-server", POD + "1/server_list/1/server_id")],
    ),
    (
        "server_not_in_one_pod",
        super_pods,
        {POD + "0/server_list/1": ...},
        None,
        [("pod-membership", "/server_list/1")],
    ),
    (
        "server_not_in_one_pod",
        super_pods,
        {POD + "1/server_list/-": {"server_id": "node_0"}},
        None,
        [("pod-membership", POD + "1/server_list/1/server_id")],
    ),
    (
        "pods_interleave",
        super_pods,
        {POD + "0/server_list/1/server_id": "node_2", POD + "1/server_list/0/server_id": "node_1"},
        None,
        [("pod-interleave", "/server_list/2")],
    ),
    (
        "backup_address_is_none",
        super_pods,
        {"/server_list/0/device/1": ..., DEVICE + "backup_device_ip": "x"},
        None,
        [("bad-address", DEVICE + "backup_device_ip")],
    ),
    (
        "backup_port_is_taken",
        super_pods,
        {DEVICE + "backup_device_port": "16666"},
        None,
        [("port-clash", DEVICE + "backup_device_port")],
    ),
    (
        "address_missing_between_servers",
        super_pods,
        {DEVICE + "device_ip": ...},
        None,
        [("missing-field", DEVICE[:-1])],
    ),
    *(("version_of_another_chip", super_pods, {}, chip, [("wrong-version", "/version")]) for chip in ("910A", "A2")),
    ("version_2_on_a3", rank_list, {}, "A3", [("wrong-version", "/version")]),
    ("version_1_on_950", cloud, {}, "950", [("wrong-version", "")]),
    (
        "server_not_in_one_cluster",
        clusters,
        {"/cluster_list/1/server_list/0/server_id": "server_0_10.0.0.1"},
        None,
        [("cluster-membership", "/cluster_list/1/server_list/0/server_id"), ("cluster-membership", "/server_list/1")],
    ),
    (
        "cluster_has_unknown_server",
        clusters,
        {"/cluster_list/1/server_list/-": {"server_id": "x"}},
        None,
        [("unknown-server", "/cluster_list/1/server_list/1/server_id")],
    ),
    (
        "cluster_listed_twice",
        clusters,
        {"/cluster_list/1/cluster_id": "cluster_0"},
        None,
        [("duplicate-cluster", "/cluster_list/1/cluster_id")],
    ),
    (
        "node_addr_is_no_address",
        heterogeneous,
        {"/node_list/0/node_addr": "n"},
        None,
        [("bad-address", "/node_list/0/node_addr")],
    ),
    (
        "server_listed_twice",
        heterogeneous,
        {"/node_list/1/node_addr": "10.0.0.1"},
        None,
        [("duplicate-server", "/node_list/1/node_addr")],
    ),
    (
        "rank_given_twice",
        heterogeneous,
        {"/node_list/1/ranks/0/rank_id": "0"},
        None,
        [("duplicate-rank", "/node_list/1/ranks/0/rank_id")],
    ),
    ("rank_left_out", lab, {GROUP + "instance_list/1/rank_id": "2"}, None, [("rank-gap", "/group_list")]),
    ("group_count_wrong", lab, {"/group_count": "2"}, None, [("count-mismatch", "/group_count")]),
    (
        "instance_count_wrong",
        cloud,
        {GROUP + "instance_count": "3"},
        None,
        [("count-mismatch", GROUP + "instance_count")],
    ),
    ("device_count_wrong", cloud, {GROUP + "device_count": "3"}, None, [("count-mismatch", GROUP + "device_count")]),
    ("device_count_wrong", lab, {GROUP + "device_num": "4"}, None, [("count-mismatch", GROUP + "device_num")]),
    (
        "devices_do_not_divide",
        lab,
        {GROUP + "server_num": "0"},
        None,
        [("bad-value", GROUP + "server_num"), ("server-num", GROUP + "server_num")],
    ),
    (
        "device_id_not_on_910",
        cloud,
        {GROUP + "instance_list/0/devices/0/device_id": "8"},
        None,
        [("bad-value", GROUP + "instance_list/0/devices/0/device_id")],
    ),
    (
        "device_listed_twice",
        lab,
        {GROUP + "instance_list/1/devices/0/device_id": "0"},
        None,
        [("duplicate-device", GROUP + "instance_list/1/devices/0/device_id")],
    ),
    (
        "devices_not_linked",
        lab,
        {GROUP + "instance_list/1/devices/0/device_id": "4"},
        "910A",
        [("device-group", GROUP + "instance_list/0")],
    ),
    (
        "pod_name_used_twice",
        cloud,
        {GROUP + "instance_list/1/pod_name": "job-0"},
        None,
        [("duplicate-pod", GROUP + "instance_list/1/pod_name")],
    ),
    ("rank_count_wrong", rank_list, {"/rank_count": 3}, None, [("count-mismatch", "/rank_count")]),
    ("rank_given_twice", rank_list, {"/rank_list/1/rank_id": 0}, None, [("duplicate-rank", "/rank_list/1/rank_id")]),
    ("rank_left_out", rank_list, {"/rank_list/1/rank_id": 2}, None, [("rank-gap", "/rank_list")]),
    ("number_has_fraction", rank_list, {"/rank_count": 2.0}, None, [("wrong-type", "/rank_count")]),
    ("spare_replaces_nothing", rank_list, {"/rank_list/0/local_id": 64}, None, [("missing-field", "/rank_list/0")]),
    (
        "layers_out_of_order",
        rank_list,
        {"/rank_list/0/level_list/1/net_layer": 0},
        None,
        [("level-order", "/rank_list/0/level_list/1/net_layer")],
    ),
    *(
        (
            "addr_does_not_fit_its_type",
            rank_list,
            {ADDRESS + "addr_type": kind, ADDRESS + "addr": addr},
            None,
            [("bad-address", ADDRESS + "addr")],
        )
        for kind, addr in (("IPV4", "x"), ("IPV4", "fd00::1"), ("IPV6", "10.0.0.1"), ("EID", "10.0.0.1"))
    ),
    ("status_not_completed", cloud, {"/status": "initializing"}, None, [("bad-status", "/status")]),
]

DOUBTFUL = [
    (
        "backup_is_not_the_other_die",
        super_pods,
        {DEVICE + "backup_device_ip": "192.168.1.5"},
        None,
        [("backup-address", DEVICE + "backup_device_ip")],
    ),
    (
        "virtual_address_in_super_pod",
        super_pods,
        {DEVICE + "device_ip": "192.168.2.199", "/server_list/0/device/1/backup_device_ip": "192.168.2.199"},
        None,
        [("vnic-address", DEVICE + "device_ip")],
    ),
    (
        "no_rank_anywhere",
        super_pods,
        {f"/server_list/{n}/device/{m}/rank_id": ... for n in range(3) for m in range(2)},
        None,
        [("look-alike", ""), *(("missing-field", f"/server_list/{n}/device/{m}") for n in range(3) for m in range(2))],
    ),
    ("server_num_wrong", lab, {GROUP + "server_num": "2"}, None, [("server-num", GROUP + "server_num")]),
    *(
        ("legacy_after_910a", table, {}, chip, [("wrong-version", "")])
        for table in (lab, cloud)
        for chip in ("A2", "A3")
    ),
    (
        "addr_of_two_ranks",
        rank_list,
        {"/rank_list/1/level_list/0/rank_addr_list/0/addr": "192.168.0.1"},
        None,
        [("shared-address", "/rank_list/1/level_list/0/rank_addr_list/0/addr")],
    ),
    *(
        ("key_almost_known", table, {place: 1}, None, [("misspelt-key", place)])
        for table, place in (
            (rank_list, "/rank_list/0/replaced_loacl_id"),
            (rank_list, LEVEL + "net_atr"),
            (heterogeneous, "/heterog_subversion"),
        )
    ),
]


def edited(table, edits):
    document = copy.deepcopy(table())
    for place, value in edits.items():
        *parents, last = place.split("/")[1:]
        target = document
        for part in parents:
            target = target[int(part) if isinstance(target, list) else part]
        if last == "-":
            target.append(value)
        elif value is ...:
            del target[int(last) if isinstance(target, list) else last]
        else:
            target[int(last) if isinstance(target, list) else last] = value
    return document


def found(document, generation=None):
    return [(problem.code, problem.pointer) for problem in verdict.check(document, generation)]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.__name__)
def test_a_good_table_of_each_format_has_no_problem(table):
    assert found(table()) == []


@pytest.mark.parametrize(
    "case",
    BAD + DOUBTFUL,
    ids=[f"{case[0]}-{case[1].__name__}-{json.dumps(str(case[2]))[:60]}" for case in BAD + DOUBTFUL],
)
def test_a_rule_finds_what_breaks_it_and_nothing_else(case):
    _, table, edits, generation, expected = case
    document = edited(table, edits)
    if case[0] == "backup_address_is_none":
        renumbered(document)
    assert found(document, generation) == expected


def renumbered(table):
    """Gives the ranks of a table of super pods new numbers, after a device was taken away."""
    devices = [device for server in table["server_list"] for device in server["device"]]
    for rank, device in enumerate(devices):
        device["rank_id"] = str(rank)


@pytest.mark.parametrize("case", DOUBTFUL, ids=lambda case: case[0])
def test_what_is_doubtful_only_is_no_error_of_the_rule(case):
    name, table, edits, generation, _ = case
    code = next(rule.code for rule in rules.all_rules() if rule.find.__name__ == name)
    bad = errors(verdict.check(edited(table, edits), generation))
    assert code not in [problem.code for problem in bad]


def test_every_rule_has_a_table_that_breaks_it():
    broken = {case[0] for case in BAD + DOUBTFUL + BAD_1_0 + DOUBTFUL_1_0}
    assert broken == {rule.find.__name__ for rule in rules.all_rules()}


def test_every_code_of_the_tests_is_explained():
    codes = {code for case in BAD + DOUBTFUL + BAD_1_0 + DOUBTFUL_1_0 for code, _ in case[4]}
    assert codes <= set(explain.entries())


@pytest.mark.parametrize("rule", rules.all_rules(), ids=lambda rule: rule.find.__name__)
def test_every_rule_says_what_why_and_how_to_mend(rule):
    assert all(rule.words())


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.__name__)
@pytest.mark.parametrize("junk", [None, 3, "x", [], {}, [[]], [None], [{}], True, 2.5], ids=repr)
def test_no_rule_stumbles_over_what_is_malformed(table, junk):
    def places(value, base):
        members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, inner in list(members):
            yield f"{base}/{key}"
            yield from places(inner, f"{base}/{key}")

    name, _ = formats.detect(table())
    for place in places(table(), ""):
        for generation in (None, *rules.GENERATIONS):
            document = edited(table, {place: junk})
            list(rules.broken(View(document, name), generation))


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        ({"version": "1.2"}, ""),
        ({"rank_list": []}, "/rank_list"),
        ({"node_list": []}, "/node_list"),
        ({"group_list": []}, "/group_list"),
        ({"version": 2.0, "rank_list": [3]}, "/rank_list/0"),
    ],
)
def test_a_table_is_judged_by_the_format_that_it_is_meant_to_have(document, pointer):
    assert pointer in [problem.pointer for problem in verdict.check(document)]


@pytest.mark.parametrize("meant", [("rank_list", "2.0"), ("super_pod_list", "1.2"), ("cluster_list", "1.0")])
def test_an_unknown_version_is_told_the_one_that_the_table_looks_like(meant):
    key, version = meant
    (problem,) = verdict.check({"version": "9", key: []})
    assert (problem.code, problem.pointer) == ("bad-version", "/version")
    assert f'write "{version}"' in problem.remedy
