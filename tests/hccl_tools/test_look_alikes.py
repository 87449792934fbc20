"""Files that people give in the place of a rank table: each is named for what it is, in one line."""

import bz2
import gzip
import io
import json
import lzma
import pickle
import tarfile
import zipfile

import good_tables
import pytest
from suite.cases import for_each

from hccl_tools.check import verdict
from hccl_tools.table import rank_table


def only_problem(data):
    """The one problem of the file with these bytes, or of this document."""
    if not isinstance(data, bytes):
        data = (data if isinstance(data, str) else json.dumps(data)).encode()
    _, (found,) = verdict.check_bytes(data)
    return found


def without_ranks(**keys):
    """A good table whose devices have no rank_id, and these keys instead."""
    table = good_tables.servers(2)
    for device in table["server_list"][0]["device"]:
        del device["rank_id"]
        device.update(keys)
    return table


# ---- the version is one that exists, and the rest is of another -----------------------------------


@pytest.mark.parametrize(
    ("version", "shape", "remedy"),
    [
        ("2.0", good_tables.servers(2), 'write "1.0"'),
        ("2.0", good_tables.super_pods(), 'write "1.2"'),
        ("1.1", good_tables.servers(2), 'write "1.0"'),
        ("1.0", {"rank_list": [], "status": "completed"}, 'write "2.0"'),
        ("1.2", {"node_list": [], "status": "completed"}, 'write "1.1"'),
        ("1.0", {"group_list": [], "status": "completed"}, "remove the version"),
        ("2.0", {"group_list": [], "status": "completed"}, "remove the version"),
        ("1.0", good_tables.lab(), "remove the version"),
    ],
)
def test_a_version_that_the_rest_contradicts_is_one_problem(version, shape, remedy):
    found = only_problem({**shape, "version": version})
    assert (found.code, found.pointer) == ("bad-version", "/version")
    assert found.text.startswith(f'version is "{version}", whose tables have ') and found.remedy.startswith(remedy)


def test_who_has_an_atlas_950_is_told_that_a_1_0_table_needs_more_than_another_version():
    assert "Atlas 950" in only_problem({**good_tables.servers(2), "version": "2.0"}).remedy


# ---- other JSON ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "what"),
    [
        (without_ranks(tor_ip="198.51.100.1"), "ranktable_tor.json"),
        ({"version": "2.0", "topo_file_path": "/x", "rank_list": [{"device_id": 0}]}, "hccl_rootinfo.json"),
        ({"version": "2.0", "peer_count": 1, "peer_list": [], "edge_list": []}, "the topology of an Atlas 950 host"),
        ({"version": "1.0", "server_group_list": []}, "MindIE"),
        ({"version": "1.2", "prefill_device_list": []}, "llm-datadist"),
        ({"apiVersion": "v1", "kind": "ConfigMap", "data": {}}, 'an object of Kubernetes ("ConfigMap")'),
        ({"hccl.json": good_tables.servers(1)}, 'the rank table is inside of "hccl.json"'),
        ({"hccl.json": json.dumps(good_tables.servers(1))}, 'the rank table is inside of "hccl.json"'),
        ([good_tables.servers(1)], "the rank table is inside of a list"),
        (json.dumps(json.dumps(good_tables.servers(1))), "a text, which may have a rank table in it"),
        ({"host_ip": ["10.0.0.1"], "device_ip": []}, "a whitelist of HCCL"),
        ({"train_batch_size": 8, "zero_optimization": {}}, "DeepSpeed"),
        ({"architectures": ["X"], "model_type": "llama"}, "Hugging Face"),
        ({"name": "x", "scripts": {}}, 'it has "name", "scripts", and no version, status or server_list'),
    ],
)
def test_other_json_is_named(document, what):
    found = only_problem(document)
    assert found.code == "unsupported-format" and what in found.text


@pytest.mark.parametrize(
    ("version", "table", "meant"),
    [
        (1.0, good_tables.servers(1), "1.0"),
        (2.0, good_tables.servers(1), "1.0"),
        (1, good_tables.servers(1), "1.0"),
        (None, good_tables.servers(1), "1.0"),
        (1.2, good_tables.super_pods(), "1.2"),
        (1.0, good_tables.super_pods(), "1.2"),
    ],
)
def test_a_version_without_quotes_is_one_problem_with_one_remedy(version, table, meant):
    found = only_problem({**table, "version": version})
    assert (found.code, found.pointer) == ("wrong-type", "/version")
    assert found.remedy == f'write "{meant}", which the rest of the table looks like'


def test_misspelt_addresses_of_devices_are_told_what_they_mean():
    table = good_tables.edited(
        good_tables.servers(2), {f"/server_list/0/device/{n}/device_ip": f"10.9.0.{n + 1}/24" for n in range(2)}
    )
    assert [problem.remedy for problem in verdict.check(table)] == ['write "10.9.0.1"', 'write "10.9.0.2"']


@pytest.mark.parametrize("key", ["tor_ip", "topo_file_path"])
def test_a_table_with_such_a_key_beside_its_own_is_a_table(key):
    table = good_tables.edited(good_tables.servers(2), {f"/{key}": "x", f"/server_list/0/device/0/{key}": "x"})
    assert not [problem for problem in verdict.check(table) if problem.code == "unsupported-format"]


@pytest.mark.parametrize(
    "table",
    [
        {"status": "initializing"},
        {"status": "initializing", "group_count": "0", "group_list": []},
        {"status": "initializing", "group_count": "1", "group_list": [{"group_name": "a", "instance_list": []}]},
        {"version": "1.0", "status": "initializing", "server_count": "0", "server_list": []},
    ],
)
def test_a_table_that_the_operator_has_only_begun_is_one_problem(table):
    found = only_problem(table)
    assert found.code == "bad-status" and "has no devices yet" in found.text and "run_pod.sh waits" in found.remedy


# ---- no JSON -------------------------------------------------------------------------------------

TABLE = rank_table.dump(good_tables.servers(1))


def packed(how):
    """The table in an archive."""
    out = io.BytesIO()
    if how == "zip":
        with zipfile.ZipFile(out, "w") as archive:
            archive.writestr(zipfile.ZipInfo("t.json"), TABLE)
    else:
        with tarfile.open(fileobj=out, mode="w") as archive:
            member = tarfile.TarInfo("t.json")
            member.size = len(TABLE)
            archive.addfile(member, io.BytesIO(TABLE.encode()))
    return out.getvalue()


@for_each(
    "data, what",
    [
        (gzip.compress(TABLE.encode(), mtime=0), "gzip"),
        (bz2.compress(TABLE.encode()), "bzip2"),
        (lzma.compress(TABLE.encode()), "xz"),
        (packed("zip"), "a zip archive"),
        (packed("tar"), "a tar archive"),
        (TABLE.encode("utf-16"), "UTF-16"),
        (pickle.dumps({}, 4), "pickled"),
        (bytes(300), "only NUL bytes"),
        (b"\x01\x02\x00\x03", "a binary file"),
        ('version: "1.0"\nserver_list:\n- server_id: 10.0.0.1\n', "a rank table in YAML"),
        ("apiVersion: v1\nkind: ConfigMap\ndata:\n  hccl.json: |\n    {}\n", "YAML of Kubernetes"),
        ("system:\n  mode: 0\ntrain:\n  epochs: 1\n", "a training config"),
        ("a: 1\nb:\n  - c\n", "YAML"),
        ("address_0=10.0.0.1\nnetmask_0=255.255.0.0\n", "hccn.conf"),
        ("# hosts\n10.0.0.1 slots=8\nnode2 slots=8\n", "a hostfile"),
        ("worker-1\nworker-2\n", "a hostfile"),
        ("export A=1\nexport RANK_TABLE_FILE=/x.json\n", "environment variables"),
        ("#!/bin/bash\necho\n", "a script"),
        ("import os\nprint(os.name)\n", "a Python program"),
        ("<!DOCTYPE html>\n<html>", "an HTML page"),
        ("404: Not Found", "an error message"),
        ("\tNPU ID                         Chip ID      Chip Logic ID\n\t0   0   0\n", "what npu-smi prints"),
        ("+----+\n| npu-smi 23.0.0   Version: 23.0.0 |\n+----+\n", "what npu-smi prints"),
        ("ipaddr:10.0.0.1\nnetmask:255.255.0.0\n", "what hccn_tool prints"),
        ("[ERROR] HCCL(1,python):2024-01-01 x\n", "a log"),
        ("```json\n{}\n```\n", "Markdown"),
        ("<<<<<<< HEAD\n{}\n=======\n{}\n>>>>>>> x\n", "conflicts"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "Git LFS"),
        ("[ascend]\nx = 1\n", "an INI file"),
    ],
)
def test_what_is_no_json_is_named(data, what):
    found = only_problem(data)
    assert found.code == "not-json" and what in found.text


@pytest.mark.parametrize(
    "text",
    [
        '{"version": "1.0",}',
        "{'version': 1}",
        '// a comment\n{"version": "1.0"}',
        '["x"',
        "[1, 2",
        "hello, world",
        '{"a": }',
    ],
)
def test_what_is_nearly_json_or_unknown_keeps_its_place(text):
    found = only_problem(text)
    assert found.code == "not-json" and found.row == 1 and found.column


def test_many_lines_that_say_the_same_are_one():
    table = good_tables.edited(good_tables.servers(8), {f"/server_list/0/device/{n}/device_id": n for n in range(8)})
    found = only_problem(table)
    assert found.code == "wrong-type"
    assert found.text == "0 is a number (and 7 more like it, the last at /server_list/0/device/7/device_id)"
