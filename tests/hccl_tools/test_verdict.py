import json
import os
import subprocess
import sys

import pytest
from suite.cases import for_each

from hccl_tools.check import verdict
from hccl_tools.table import rank_table


def found(document, generation=None):
    return [(problem.code, problem.pointer) for problem in verdict.check(document, generation)]


@for_each("generation", [None, "910A", "A2", "A3"])
@for_each("sizes", [(1,), (2,), (4,), (8,), (8, 8)])
def test_a_good_table_has_no_problem_on_any_generation(table, sizes, generation):
    assert found(table(*sizes), generation) == []


@pytest.mark.parametrize(("generation", "problems"), [(None, 0), ("910A", 3), ("A2", 0), ("A3", 0)])
def test_several_servers_with_fewer_than_8_devices_are_good_but_on_910a(table, generation, problems):
    assert [code for code, _ in found(table(4, 4, 4), generation)] == ["device-count"] * problems


def test_every_problem_is_found_and_sorted_by_place(table):
    edits = {f"/server_list/0/device/{index}/device_ip": "x" for index in (10, 2)}
    document = table(12, 1, edits={**edits, "/status": "busy", "/server_list/1/device/0/rank_id": 3})
    assert found(document) == [
        ("bad-address", "/server_list/0/device/2/device_ip"),
        ("bad-address", "/server_list/0/device/10/device_ip"),
        ("wrong-type", "/server_list/1/device/0/rank_id"),
        ("bad-status", "/status"),
    ]


@pytest.mark.parametrize("key", ["²", "٣", "1" * 30], ids=ascii)
def test_a_key_of_odd_digits_has_its_place(table, key):
    found = verdict.check({**table(1), "version": {key: "\x1f"}})
    assert f"/version/{key}" in [problem.pointer for problem in found]


@pytest.mark.slow
def test_the_order_of_problems_is_the_same_in_every_run(tmp_path, table, root):
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(table(8, edits={f"/server_list/0/device/{n}/device_ip": "x" for n in range(8)})))
    command = [sys.executable, str(root / "hccl_tools" / "validate_hccl.py"), str(path)]
    outputs = {
        subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": seed}, stdout=subprocess.PIPE, timeout=300).stdout
        for seed in "123"
    }
    assert len(outputs) == 1


def test_rules_look_at_what_is_well_formed_beside_what_is_not(table):
    document = table(3, edits={"/server_list/0/device/0": None, "/server_list/0/device/2/device_id": "1"})
    assert ("wrong-type", "/server_list/0/device/0") in found(document)
    assert ("duplicate-device", "/server_list/0/device/2/device_id") in found(document)


@pytest.mark.parametrize("key", ["version", "server_count", "server_list", "status"])
def test_each_key_of_a_table_is_needed(table, key):
    assert found(table(2, edits={"/" + key: ...})) == [("missing-field", "")]


@pytest.mark.parametrize(
    ("place", "parent"),
    [
        ("/server_list/0/server_id", "/server_list/0"),
        ("/server_list/0/device", "/server_list/0"),
        ("/server_list/0/device/1/device_id", "/server_list/0/device/1"),
        ("/server_list/0/device/1/rank_id", "/server_list/0/device/1"),
    ],
)
def test_each_key_of_a_server_and_of_a_device_is_needed(table, place, parent):
    assert found(table(2, edits={place: ...})) == [("missing-field", parent)]


@pytest.mark.parametrize("place", ["device_id", "device_ip", "rank_id"])
def test_a_number_without_quotes_is_told_to_have_them(table, place):
    (problem,) = verdict.check(table(1, edits={f"/server_list/0/device/0/{place}": 0}))
    assert (problem.code, problem.pointer) == ("wrong-type", f"/server_list/0/device/0/{place}")
    assert problem.remedy == 'put it in quotes: "0"'


@for_each("number", ["", "-1", "+1", "1.0", "0x1", "3abc", " 1", "1 ", "01", "１", "1\n", "12345678901"])
@for_each("place", ["/server_count", "/server_list/0/device/1/device_id", "/server_list/0/device/1/rank_id"])
def test_a_number_in_quotes_is_digits_only(table, place, number):
    assert ("bad-value", place) in found(table(2, edits={place: number}))


@pytest.mark.parametrize("junk", [None, 3, "text", [], True], ids=repr)
def test_what_is_no_object_is_no_table(junk):
    assert found(junk) == [("wrong-type", "")]


# ---- formats that are not ours -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "named"),
    [
        ({"version": "1.0", "server_group_list": []}, "MindIE global rank table"),
        ({"server_group_list": []}, "MindIE global rank table"),
        ({"version": "1.2", "prefill_device_list": []}, "llm-datadist"),
        ({"version": "7", "decode_device_list": []}, "llm-datadist"),
    ],
)
def test_what_only_looks_like_a_rank_table_is_one_problem_that_names_it(document, named):
    (problem,) = verdict.check(document)
    assert (problem.code, problem.pointer) == ("unsupported-format", "")
    assert named in problem.text


@pytest.mark.parametrize("version", ["1.9", "", "1", "v1.0"])
def test_a_version_that_hccl_does_not_read_is_one_problem(table, version):
    assert found(table(1, edits={"/version": version})) == [("bad-version", "/version")]


@pytest.mark.parametrize("version", [1.0, 1, None, ["1.0"]], ids=repr)
def test_a_version_that_is_no_text_is_of_the_wrong_type(table, version):
    assert ("wrong-type", "/version") in found(table(1, edits={"/version": version}))


# ---- files ---------------------------------------------------------------------------------------


def test_a_file_is_read_and_checked(tmp_path, table):
    path = tmp_path / "t.json"
    path.write_text(json.dumps(table(3)))
    assert verdict.check_file(path) == (table(3), [])
    document, problems = verdict.check_file(path, "910A")
    assert document == table(3)
    assert [problem.code for problem in problems] == ["device-group"]


def test_a_file_that_is_not_json_is_a_problem(tmp_path):
    (tmp_path / "t.json").write_text("{")
    document, problems = verdict.check_file(tmp_path / "t.json")
    assert document is None
    assert [problem.code for problem in problems] == ["not-json"]


def test_a_file_that_is_not_there_is_no_verdict(tmp_path):
    with pytest.raises(rank_table.NotReadable):
        verdict.check_file(tmp_path / "none.json")
