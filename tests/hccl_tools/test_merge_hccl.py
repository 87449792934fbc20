import errno
import functools
import hashlib
import json
import os

import json_pages
import pytest

from hccl_tools.build import output
from hccl_tools.check import verdict
from hccl_tools.commands import merge as merge_hccl
from hccl_tools.table import rank_table

A, B, C = (
    rank_table.build([(device, f"192.168.{network}.{device + 1}") for device in range(size)], server_id)
    for server_id, network, size in (("10.0.0.1", 1, 2), ("10.0.0.2", 2, 3), ("10.0.0.10", 3, 2))
)


@pytest.fixture
def merge(world, in_process):
    """merge("a.json", "b.json"): the command; these files are there."""
    for name, table in (("a.json", A), ("b.json", B), ("c.json", C)):
        (world / name).write_text(rank_table.dump(table))

    return functools.partial(in_process, merge_hccl.main)


def test_the_result_has_upstreams_name_in_the_current_folder(merge, world):
    status, out, err = merge("b.json", "a.json")
    assert (status, out) == (0, f"{world}/hccl_2s_5p.json\n"), err
    assert err == "merge_hccl.py: servers: 2 from 10.0.0.1 to 10.0.0.2, ranks: 5 (rules common to all generations)\n"
    assert verdict.check_file("hccl_2s_5p.json")[1] == []


def test_stdout_is_the_table_only_when_it_is_asked_for(merge, world):
    status, out, _ = merge("b.json", "a.json", "--stdout")
    assert (status, len(json.loads(out)["server_list"])) == (0, 2)
    assert sorted(os.listdir(world)) == ["a.json", "b.json", "c.json"]


def test_json_is_what_was_made(merge, world):
    status, out, err = merge("b.json", "a.json", "--json")
    made = json.loads(out)
    assert (status, len(err.splitlines())) == (0, 1)
    json_pages.check("merge_hccl.py", made)
    content = (world / "hccl_2s_5p.json").read_bytes()
    assert made == {
        **{"file": f"{world}/hccl_2s_5p.json", "table_format": "v1.0", "servers": 2, "ranks": 5},
        **{"sha256": hashlib.sha256(content).hexdigest(), "generation": None, "merged": ["b.json", "a.json"]},
    }
    assert merge("b.json", "a.json", "--json", "--stdout")[0] == 2


def test_one_table_may_come_by_standard_input(merge, world, stdin):
    stdin(world / "b.json")
    assert json.loads(merge("-", "a.json", "--stdout")[1]) == json.loads(merge("b.json", "a.json", "--stdout")[1])
    stdin(world / "b.json")
    assert json.loads(merge("a.json", "-", "--output", "-")[1]) == json.loads(merge("b.json", "a.json", "--stdout")[1])
    assert not (world / "-").exists()
    (world / "bad").write_text(rank_table.dump({**A, "status": "x"}))
    stdin(world / "bad")
    status, out, err = merge("-", "b.json")
    assert (status, out) == (1, "") and err.startswith("merge_hccl.py: standard input: /status: ")
    status, out, err = merge("-", "a.json", "-")
    assert (status, out) == (2, "") and err.startswith("merge_hccl.py: standard input can be read once; ")


def test_the_result_goes_where_output_says(merge, world):
    assert merge("a.json", "b.json", "--output", "t.json")[1] == f"{world}/t.json\n"


def test_a_refusal_is_exit_1_a_line_a_problem_and_no_file(merge, world):
    merge("a.json", "b.json")
    status, out, err = merge("a.json", "b.json", "hccl_2s_5p.json", "--output", "t.json")
    assert (status, out) == (1, "")
    assert err.splitlines()[0].startswith(
        "merge_hccl.py: hccl_2s_5p.json: already contains the servers of a.json, b.json"
    )
    assert err.splitlines()[1:] == ["merge_hccl.py: no table was written (1 problem)"]
    assert not (world / "t.json").exists()


def test_a_file_that_is_not_json_is_named_beside_the_other_problems(merge, world):
    (world / "x.json").write_text("{")
    (world / "y.json").write_text(rank_table.dump({**C, "status": "x"}))
    status, _, err = merge("a.json", "x.json", "y.json")
    assert status == 1
    assert "x.json: " in err and "[not-json]" in err and "[bad-status]" in err


@pytest.mark.parametrize("name", ["none.json", "."])
def test_a_file_that_cannot_be_read_is_exit_2(merge, name):
    status, out, err = merge("a.json", name)
    assert (status, out) == (2, "")
    assert err.startswith(f"merge_hccl.py: {name} ") and err.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a.json", "a.json is one of the tables to merge; name another file with --output"),
        ("notes.json", "notes.json exists and is not a rank table"),
    ],
)
def test_an_input_or_what_is_no_rank_table_is_not_overwritten(merge, world, name, said):
    (world / "notes.json").write_text("{}")
    before = (world / name).read_text()
    status, out, err = merge("a.json", "b.json", "--output", name)
    assert (status, out, (world / name).read_text()) == (2, "", before)
    assert said in err


def test_a_full_disk_leaves_the_old_file(merge, world, monkeypatch):
    merge("a.json", "b.json", "--output", "t.json")
    old = (world / "t.json").read_text()

    def fail(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    status, out, err = merge("a.json", "c.json", "--output", "t.json")
    assert (status, out) == (2, "")
    assert "cannot write t.json: No space left on device; nothing was changed" in err
    assert (world / "t.json").read_text() == old
    assert not [name for name in os.listdir(world) if name.endswith(".part")]


@pytest.mark.parametrize("arguments", [[], ["a.json", "--output", ""], ["a.json", "--stdout", "--output", "t.json"]])
def test_a_command_line_that_cannot_be_is_exit_2(merge, arguments):
    status, out, _ = merge(*arguments)
    assert (status, out) == (2, "")


def test_it_runs_as_a_program_from_another_folder(run, merge, world):
    ended = run("hccl_tools/merge_hccl.py", "b.json", "a.json")
    assert (ended.returncode, ended.stdout) == (0, f"{world}/hccl_2s_5p.json\n"), ended.stderr


def test_a_control_character_in_a_file_name_does_not_break_a_line(merge, world):
    (world / "x\ny.json").write_text("{")
    assert merge("x\ny.json")[2].splitlines()[0].startswith("merge_hccl.py: x\\ny.json: ")


def test_saving_tells_of_a_table_that_it_replaces(world):
    said = []
    output.save(A, "t.json", said.append)
    output.save(A, "t.json", said.append)
    output.save(B, "t.json", said.append)
    assert said == ["t.json held another table; it is replaced"]


def test_the_rules_of_a_generation_can_be_asked_for_and_are_else_those_of_this_hosts_chips(merge, world, chip):
    assert merge("a.json", "b.json")[0] == 0
    status, _, err = merge("a.json", "b.json", "--generation", "910A")
    assert status == 1 and "[device-group]" in err
    chip("0xd801")  # which takes 1, 2, 4 or 8 devices of a server, and b.json has 3
    status, _, err = merge("a.json", "b.json")
    assert status == 1 and "[device-group]" in err
    assert merge("--generation", "any", "a.json", "b.json")[0] == 0
