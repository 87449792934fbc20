"""The rules of the formats beside 1.0, each with a table that breaks it, and what applies to every rule."""

import good_tables
import pytest
import test_rules
from good_tables import cloud, clusters, edited, heterogeneous, lab, rank_list, super_pods
from suite.cases import for_each
from test_rules import case, name, places, problems

from hccl_tools.check import explain, rules, verdict
from hccl_tools.common.problem import errors
from hccl_tools.table import formats
from hccl_tools.table.view import View

PODS, SERVERS = "/super_pod_list/", "/server_list/"
GROUP = "/group_list/0/"
DEVICE = "/server_list/0/device/0/"
LEVEL = "/rank_list/0/level_list/0/"
ADDRESS = LEVEL + "rank_addr_list/0/addr"
OTHER_DIE = {
    "/server_list/0/device/1": ...,
    **{f"{SERVERS}{n // 2}/device/{n % 2}/rank_id": str(n - 1) for n in range(2, 6)},
}

BAD = [
    case("pods_without_device_ids", super_pods, {"/super_pod_list": ...}, "missing-field "),
    case("pods_without_device_ids", super_pods, {DEVICE + "super_device_id": ...}, "missing-field " + DEVICE[:-1]),
    case(
        "super_device_listed_twice", super_pods, {SERVERS + "1/device/0/super_device_id": "0"}, "duplicate-super-device"
    ),
    case("super_device_id_too_large", super_pods, {DEVICE + "super_device_id": "4294967296"}, "bad-value"),
    case("super_pod_listed_twice", super_pods, {PODS + "1/super_pod_id": "a"}, "duplicate-super-pod"),
    case(
        "pod_has_unknown_server",
        super_pods,
        {PODS + "1/server_list/-": {"server_id": "node_9"}},
        f"unknown-server {PODS}1/server_list/1/server_id",
    ),
    case("server_not_in_one_pod", super_pods, {PODS + "0/server_list/1": ...}, f"pod-membership {SERVERS}1"),
    case(
        "server_not_in_one_pod",
        super_pods,
        {PODS + "1/server_list/-": {"server_id": "node_0"}},
        f"pod-membership {PODS}1/server_list/1/server_id",
    ),
    case(
        "pods_interleave",
        super_pods,
        {PODS + "0/server_list/1/server_id": "node_2", PODS + "1/server_list/0/server_id": "node_1"},
        f"pod-interleave {SERVERS}2",
    ),
    case("backup_address_is_none", super_pods, {DEVICE + "backup_device_ip": "x", **OTHER_DIE}, "bad-address"),
    case("backup_port_is_taken", super_pods, {DEVICE + "backup_device_port": "16666"}, "port-clash"),
    case("address_missing_between_servers", super_pods, {DEVICE + "device_ip": ...}, "missing-field " + DEVICE[:-1]),
    *(case("version_of_another_chip", super_pods, {}, "wrong-version /version", chip=chip) for chip in ("910A", "A2")),
    case("version_2_on_a3", rank_list, {}, "wrong-version /version", chip="A3"),
    case("version_1_on_950", cloud, {}, "wrong-version ", chip="950"),
    case(
        "server_not_in_one_cluster",
        clusters,
        {"/cluster_list/1/server_list/0/server_id": "server_0_10.0.0.1"},
        "cluster-membership",
        f"cluster-membership {SERVERS}1",
    ),
    case(
        "cluster_has_unknown_server",
        clusters,
        {"/cluster_list/1/server_list/-": {"server_id": "x"}},
        "unknown-server /cluster_list/1/server_list/1/server_id",
    ),
    case("cluster_listed_twice", clusters, {"/cluster_list/1/cluster_id": "cluster_0"}, "duplicate-cluster"),
    case("node_addr_is_no_address", heterogeneous, {"/node_list/0/node_addr": "n"}, "bad-address"),
    case("server_listed_twice", heterogeneous, {"/node_list/1/node_addr": "10.0.0.1"}, "duplicate-server"),
    case("rank_given_twice", heterogeneous, {"/node_list/1/ranks/0/rank_id": "0"}, "duplicate-rank"),
    case("rank_left_out", lab, {GROUP + "instance_list/1/rank_id": "2"}, "rank-gap /group_list"),
    case("group_count_wrong", lab, {"/group_count": "2"}, "count-mismatch"),
    case("instance_count_wrong", cloud, {GROUP + "instance_count": "3"}, "count-mismatch"),
    case("device_count_wrong", cloud, {GROUP + "device_count": "3"}, "count-mismatch"),
    case("device_count_wrong", lab, {GROUP + "device_num": "4"}, "count-mismatch"),
    case("devices_do_not_divide", lab, {GROUP + "server_num": "0"}, "bad-value", "server-num"),
    case("device_id_not_on_910", cloud, {GROUP + "instance_list/0/devices/0/device_id": "8"}, "bad-value"),
    case("device_listed_twice", lab, {GROUP + "instance_list/1/devices/0/device_id": "0"}, "duplicate-device"),
    case(
        "devices_not_linked",
        lab,
        {GROUP + "instance_list/1/devices/0/device_id": "4"},
        f"device-group {GROUP}instance_list/0",
        chip="910A",
    ),
    case("pod_name_used_twice", cloud, {GROUP + "instance_list/1/pod_name": "job-0"}, "duplicate-pod"),
    case("rank_count_wrong", rank_list, {"/rank_count": 3}, "count-mismatch"),
    case("rank_given_twice", rank_list, {"/rank_list/1/rank_id": 0}, "duplicate-rank"),
    case("rank_left_out", rank_list, {"/rank_list/1/rank_id": 2}, "rank-gap /rank_list"),
    case("number_has_fraction", rank_list, {"/rank_count": 2.0}, "wrong-type"),
    case("spare_replaces_nothing", rank_list, {"/rank_list/0/local_id": 64}, "missing-field /rank_list/0"),
    case("layers_out_of_order", rank_list, {"/rank_list/0/level_list/1/net_layer": 0}, "level-order"),
    *(
        case("addr_does_not_fit_its_type", rank_list, {ADDRESS: addr, ADDRESS + "_type": kind}, "bad-address")
        for kind, addr in (("IPV4", "x"), ("IPV4", "fd00::1"), ("IPV6", "10.0.0.1"), ("EID", "10.0.0.1"))
    ),
    *(
        case("text_does_not_print", table, {place: "a\x1b[2J"}, "unprintable-text")
        for table, place in (
            (super_pods, SERVERS + "0/host_nic_ip"),
            (clusters, "/cluster_list/0/cluster_id"),
            (cloud, GROUP + "instance_list/0/pod_name"),
            (lab, GROUP + "group_name"),
            (heterogeneous, "/collective_id"),
            (rank_list, LEVEL + "net_instance_id"),
            (rank_list, LEVEL + "rank_addr_list/0/ports/0"),
        )
    ),
    *(
        case("schema", rank_list, {LEVEL + "rank_addr_list/0/backup_addr": value}, code)
        for value, code in (
            (7, "wrong-type"),
            (None, "wrong-type"),
            ({}, "wrong-type"),
            ("x" * 257, "bad-value"),
            (["a"] * 17, "bad-value"),
            ([7], f"wrong-type {LEVEL}rank_addr_list/0/backup_addr/0"),
        )
    ),
    case("status_not_completed", cloud, {"/status": "initializing"}, "bad-status"),
]

RANKS = [f"{SERVERS}{n}/device/{m}" for n in range(3) for m in range(2)]
DOUBTFUL = [
    case("backup_is_not_the_other_die", super_pods, {DEVICE + "backup_device_ip": "192.168.1.5"}, "backup-address"),
    case(
        "virtual_address_in_super_pod",
        super_pods,
        {DEVICE + "device_ip": "192.168.2.199", SERVERS + "0/device/1/backup_device_ip": "192.168.2.199"},
        "vnic-address",
    ),
    case(
        "no_rank_anywhere",
        super_pods,
        {f"{place}/rank_id": ... for place in RANKS},
        "look-alike ",
        f"missing-field {RANKS[0]}",  # one line says how many there are
    ),
    case("server_num_wrong", lab, {GROUP + "server_num": "2"}, "server-num"),
    *(
        case("legacy_after_910a", table, {}, "wrong-version ", chip=chip)
        for table in (lab, cloud)
        for chip in ("A2", "A3")
    ),
    case("addr_of_two_ranks", rank_list, {ADDRESS.replace("list/0/l", "list/1/l"): "192.168.0.1"}, "shared-address"),
    case("key_almost_known", rank_list, {"/rank_list/0/replaced_loacl_id": 1}, "misspelt-key"),
    case("key_almost_known", rank_list, {LEVEL + "net_atr": 1}, "misspelt-key"),
    case("key_almost_known", heterogeneous, {"/heterog_subversion": 1}, "misspelt-key"),
]
EVERY = BAD + DOUBTFUL + test_rules.BAD + test_rules.DOUBTFUL


@for_each("table", good_tables.FORMATS, ids=lambda table: table.__name__)
def test_a_good_table_of_each_format_has_no_problem(table):
    assert verdict.check(table()) == []


def test_a_legacy_table_of_910a_may_have_one_device_on_each_of_two_servers_as_in_hccl_manual():
    assert verdict.check(cloud(), "910A") == []


@pytest.mark.parametrize("value", ["10.0.0.9", [], ["10.0.0.9"] * 16], ids=str)
def test_a_backup_address_is_a_text_or_a_list_of_texts(value):
    assert verdict.check(edited(rank_list(), {LEVEL + "rank_addr_list/0/backup_addr": value})) == []


@for_each("case", BAD + DOUBTFUL, ids=name)
def test_a_rule_finds_what_breaks_it_and_nothing_else(case):
    assert places(problems(case)) == case.expected


@pytest.mark.parametrize("case", DOUBTFUL, ids=name)
def test_a_warning_is_not_an_error(case):
    code = next(rule.code for rule in rules.all_rules() if rule.find.__name__ == case.rule)
    assert code not in [problem.code for problem in errors(problems(case))]


def test_every_rule_has_a_table_that_breaks_it():
    assert {case.rule for case in EVERY} - {"schema"} == {rule.find.__name__ for rule in rules.all_rules()}


def test_every_code_of_the_tests_is_explained():
    assert {code for case in EVERY for code, _ in case.expected} <= set(explain.entries())


@for_each("rule", rules.all_rules(), ids=lambda rule: rule.find.__name__)
def test_every_rule_documents_what_why_and_the_remedy(rule):
    assert all(rule.words())


@pytest.mark.slow
@for_each("table", good_tables.FORMATS, ids=lambda table: table.__name__)
@for_each("junk", [None, 3, "x", [], {}, [[]], [None], [{}], True, 2.5], ids=repr)
def test_no_rule_stumbles_over_what_is_malformed(table, junk):
    def all_places(value, base):
        members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, inner in list(members):
            yield f"{base}/{key}"
            yield from all_places(inner, f"{base}/{key}")

    format_, _ = formats.detect(table())
    for place in all_places(table(), ""):
        for generation in (None, *rules.GENERATIONS):
            list(rules.broken(View(edited(table(), {place: junk}), format_), generation))


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


@pytest.mark.parametrize(("key", "version"), [("rank_list", "2.0"), ("super_pod_list", "1.2"), ("cluster_list", "1.0")])
def test_an_unknown_version_is_told_the_one_that_the_table_looks_like(key, version):
    (problem,) = verdict.check({"version": "9", key: []})
    assert (problem.code, problem.pointer) == ("bad-version", "/version")
    assert f'write "{version}"' in problem.remedy
