import copy
import itertools

import pytest

from hccl_tools.build import merging
from hccl_tools.check import verdict
from hccl_tools.table import rank_table


def server_table(server_id, network, size=2, **top):
    """The table of one server whose devices are 192.168.<network>.1 and so on."""
    devices = [(device, f"192.168.{network}.{device + 1}") for device in range(size)]
    return {**rank_table.build(devices, server_id), **top}


def pod_table(server_id, network, pod, size=2, **extra):
    """The same as a version 1.2 table, of one server in super pod `pod`."""
    table = server_table(server_id, network, size, version="1.2")
    for device in table["server_list"][0]["device"]:
        device["super_device_id"] = str(network * 1000 + int(device["device_id"]))
    return {**table, "super_pod_list": [{"super_pod_id": pod, "server_list": [{"server_id": server_id}], **extra}]}


def named(*tables):
    return [merging.Named(name=f"{chr(97 + number)}.json", table=table) for number, table in enumerate(tables)]


def refusal(*tables):
    """The lines with which these tables are refused; they are a.json, b.json and so on."""
    with pytest.raises(merging.Refused) as error:
        merging.merge(named(*tables))
    for line in error.value.lines:
        assert len(line.splitlines()) == 1
    return error.value.lines


def ids(table):
    return [server["server_id"] for server in table["server_list"]]


def ranks(table):
    return [[device["rank_id"] for device in server["device"]] for server in table["server_list"]]


A = server_table("10.0.0.1", 1)
B = server_table("10.0.0.2", 2, size=3)
C = server_table("10.0.0.10", 3)


# ---- the result ----------------------------------------------------------------------------------


def test_servers_are_in_dictionary_order_and_ranks_count_through():
    merged = merging.merge(named(B, C, A))
    assert ids(merged) == ["10.0.0.1", "10.0.0.10", "10.0.0.2"]
    assert ranks(merged) == [["0", "1"], ["2", "3"], ["4", "5", "6"]]
    assert (merged["server_count"], merged["status"]) == ("3", "completed")
    assert verdict.check(merged) == []


def test_dictionary_order_is_that_of_text_not_of_numbers():
    merged = merging.merge(named(server_table("10.19.1.79", 1), server_table("10.19.1.142", 2)))
    assert ids(merged) == ["10.19.1.142", "10.19.1.79"]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_the_order_of_the_inputs_changes_no_byte(order):
    tables = [{**table, "b": 1, "a": 2} for table in (A, B, C)]
    whole = rank_table.dump(merging.merge(named(*tables)))
    assert rank_table.dump(merging.merge(named(*(tables[i] for i in order)))) == whole


def test_merging_in_steps_gives_the_same_as_merging_at_once_and_changes_no_input():
    before = copy.deepcopy([A, B, C])
    steps = merging.merge(named(merging.merge(named(C, B)), A))
    whole = merging.merge(named(A, B, C))
    assert rank_table.dump(steps) == rank_table.dump(whole)
    assert (steps["server_count"], ids(steps)) == ("3", ["10.0.0.1", "10.0.0.10", "10.0.0.2"])
    assert before == [A, B, C]


def test_inside_a_server_ranks_keep_their_order_and_entries_their_place():
    table = server_table("10.0.0.0", 9, size=3)
    for device, rank in zip(table["server_list"][0]["device"], "201"):
        device["rank_id"] = rank
    merged = merging.merge(named(table, A))
    assert ranks(merged) == [["2", "0", "1"], ["3", "4"]]
    assert [device["device_id"] for device in merged["server_list"][0]["device"]] == ["0", "1", "2"]


def test_ten_ranks_of_a_server_are_ordered_as_numbers():
    merged = merging.merge(named(server_table("10.0.0.3", 4, size=12), A))
    assert ranks(merged)[1] == [str(rank) for rank in range(2, 14)]


def test_keys_that_hccl_does_not_know_are_kept():
    one = server_table("10.0.0.1", 1, hardware_type="800I-A2-32G")
    two = server_table("10.0.0.2", 2, hardware_type="800I-A2-32G")
    one["server_list"][0]["container_ip"] = "172.17.0.2"
    one["server_list"][0]["device"][1]["numa_id"] = 3
    merged = merging.merge(named(two, one))
    assert merged["hardware_type"] == "800I-A2-32G"
    assert merged["server_list"][0]["container_ip"] == "172.17.0.2"
    assert merged["server_list"][0]["device"][1]["numa_id"] == 3
    assert "container_ip" not in merged["server_list"][1]


def test_one_table_alone_is_put_in_order():
    table = merging.merge(named(A, B))
    table["server_list"].reverse()
    assert merging.merge(named(table)) == merging.merge(named(A, B))


# ---- what is refused -----------------------------------------------------------------------------


AB = merging.merge(named(A, B))


@pytest.mark.parametrize(
    ("tables", "beginning"),
    [
        ([A, server_table("10.0.0.1", 7)], 'b.json: server_id "10.0.0.1" is in a.json too'),
        ([A, B, copy.deepcopy(A)], 'c.json: server_id "10.0.0.1" is in a.json too'),
        ([AB, AB], 'b.json: server_id "10.0.0.1" and 1 more is in a.json too'),
        ([A, B, AB], "c.json: already contains the servers of a.json, b.json (the result of an earlier merge?)"),
        ([A, AB, C], "b.json: already contains the servers of a.json"),
    ],
)
def test_servers_in_two_tables_are_refused_in_one_line_with_both_names(tables, beginning):
    (line,) = refusal(*tables)
    assert line.startswith(beginning)


def test_many_names_are_cut_short():
    tables = [server_table(f"10.0.0.{number}", number) for number in range(1, 9)]
    (line,) = refusal(*tables, merging.merge(named(*tables)))
    assert "of a.json, b.json, c.json and 5 more" in line


def test_a_device_ip_in_two_tables_is_refused_with_both_servers():
    (first, second) = refusal(A, server_table("10.0.0.2", 1))
    assert first.startswith('b.json: device_ip "192.168.1.1" of server "10.0.0.2" belongs to server "10.0.0.1" in a.')
    assert '"192.168.1.2"' in second


def test_two_spellings_of_one_address_are_one_address():
    one, two = server_table("10.0.0.1", 1, size=1), server_table("10.0.0.2", 2, size=1)
    one["server_list"][0]["device"][0]["device_ip"] = "fd00::1"
    two["server_list"][0]["device"][0]["device_ip"] = "fd00:0::0:1"
    (line,) = refusal(one, two)
    assert 'device_ip "fd00:0::0:1" of server' in line


def test_a_table_with_a_status_of_its_own_is_refused():
    (line,) = refusal(A, {**B, "status": "initializing"})
    assert line.startswith("b.json: /status: ") and line.endswith("[bad-status]")


def test_every_bad_table_is_named_not_only_the_first():
    lines = refusal({**A, "status": "x"}, B, {**C, "server_count": "4"})
    assert [line.partition(":")[0] for line in lines] == ["a.json", "c.json"]


def test_a_version_that_differs_is_refused_with_both_values():
    lines = merging._differences(named(A, pod_table("10.0.0.2", 2, "0")))
    assert any('b.json: "version" is "1.2", but "1.0" in a.json' in line for line in lines)


@pytest.mark.parametrize("other", [{"hardware_type": "B"}, {}, {"hardware_type": ["A"]}])
def test_an_unknown_key_that_differs_is_refused(other):
    (line,) = refusal({**A, "hardware_type": "A"}, {**B, **other})
    assert line.startswith('b.json: "hardware_type" is ') and 'but "A" in a.json' in line


@pytest.mark.parametrize(("one", "other"), [(1, True), (1, 1.0), (0, False), ([1], [True])])
def test_values_that_only_python_calls_equal_differ(one, other):
    assert refusal({**A, "x": one}, {**B, "x": other})


def test_keys_in_another_order_are_equal():
    merged = merging.merge(named({**A, "x": {"a": 1, "b": 2}}, {**B, "x": {"b": 2, "a": 1}}))
    assert merged["x"] == {"a": 1, "b": 2}


def test_a_mistake_that_only_the_whole_has_names_the_table_it_is_from():
    lonely = rank_table.build([(0, None)], "10.0.0.2")
    (line,) = refusal(A, lonely)
    assert line.startswith('b.json: server "10.0.0.2", once merged: /device/0: device_ip is missing')
    assert line.endswith("[missing-field]")


@pytest.mark.parametrize("junk", [None, [], "text", 1, {}, {"version": "2.1"}])
def test_what_is_no_rank_table_is_refused(junk):
    assert refusal(A, junk)


def test_versions_whose_servers_are_no_plain_list_are_refused(monkeypatch):
    monkeypatch.setattr(verdict, "check", lambda table, generation=None: [])
    (line,) = refusal({"version": "1.1", "node_list": []}, {**A})
    assert line == 'a.json: a table of version "1.1"; only tables of versions 1.0, 1.2 and 2.0 can be merged'


def test_a_warning_does_not_keep_a_table_out(monkeypatch):
    class Warned(merging.verdict.Problem):
        severity = "warning"

    monkeypatch.setattr(verdict, "check", lambda table, generation=None: [Warned("w", "", "text", "remedy")])
    assert ids(merging.merge(named(B, A))) == ["10.0.0.1", "10.0.0.2"]


# ---- super pods: the pieces against HCCL's manual ------------------------------------------------


def test_servers_of_one_super_pod_join():
    merged = merging.combine(named(pod_table("10.0.0.2", 2, "0"), pod_table("10.0.0.1", 1, "0")))
    servers = [{"server_id": "10.0.0.1"}, {"server_id": "10.0.0.2"}]
    assert merged["super_pod_list"] == [{"super_pod_id": "0", "server_list": servers}]
    assert (merged["version"], ids(merged)) == ("1.2", ["10.0.0.1", "10.0.0.2"])
    assert ranks(merged) == [["0", "1"], ["2", "3"]]


def test_super_pods_are_sorted_and_super_device_ids_kept():
    merged = merging.combine(named(pod_table("10.0.0.2", 2, "pod1"), pod_table("10.0.0.1", 1, "pod0")))
    assert [pod["super_pod_id"] for pod in merged["super_pod_list"]] == ["pod0", "pod1"]
    assert merged["server_list"][1]["device"][0]["super_device_id"] == "2000"


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_super_pods_do_not_depend_on_the_order_of_the_inputs_or_on_steps(order):
    tables = [pod_table("10.0.0.1", 1, "b"), pod_table("10.0.0.2", 2, "b"), pod_table("10.0.0.3", 3, "a")]
    one, two, three = (tables[i] for i in order)
    whole = rank_table.dump(merging.combine(named(*tables)))
    assert rank_table.dump(merging.combine(named(one, two, three))) == whole
    if order[1:] != (2, 0) and order[1:] != (0, 2):  # 1 and 3 of one pod with 2 of another would be no table
        assert rank_table.dump(merging.combine(named(one, merging.combine(named(two, three))))) == whole


def test_unknown_keys_of_a_super_pod_are_kept_and_must_agree():
    tables = [pod_table("10.0.0.1", 1, "0", rack="7"), pod_table("10.0.0.2", 2, "0", rack="7")]
    assert merging.combine(named(*tables))["super_pod_list"][0]["rack"] == "7"
    tables[1]["super_pod_list"][0]["rack"] = "8"
    said = 'b.json: /super_pod_list: "rack" of super pod "0" differs from the one in a'
    with pytest.raises(merging.Refused, match=said):
        merging.combine(named(*tables))


def test_a_table_without_super_pods_does_not_go_with_one_that_has_them():
    plain = server_table("10.0.0.2", 2, version="1.2")
    with pytest.raises(merging.Refused, match=r"b\.json: no super_pod_list, but others have one"):
        merging.combine(named(pod_table("10.0.0.1", 1, "0"), plain))


def test_super_pods_that_interleave_by_server_id_are_refused():
    tables = [pod_table(f"10.0.0.{number}", number, pod) for number, pod in ((1, "0"), (2, "1"), (3, "0"))]
    with pytest.raises(merging.Refused) as error:
        merging.combine(named(*tables))
    (line,) = error.value.lines
    assert line.startswith('server "10.0.0.3" of super pod "0": its server_id sorts after')
