import errno
import functools
import io
import json
import os

import json_pages
import pytest

from hccl_tools.commands import validate as validate_hccl
from hccl_tools.table import rank_table


@pytest.fixture
def validate(world, in_process):
    """validate("a.json"): the command."""
    return functools.partial(in_process, validate_hccl.main)


@pytest.fixture
def write(world, table):
    """write("a.json", 2, 2, edits={...}): writes such a table to the current folder."""

    def to(name, *sizes, **options):
        (world / name).write_text(json.dumps(table(*sizes, **options)))

    return to


def test_a_good_table_is_exit_0_and_one_line_about_it(validate, write):
    write("a.json", 8, 8)
    good = "a.json: good: version 1.0, servers: 2, ranks: 16 (rules common to all generations)\n"
    assert validate("a.json") == (0, good, "")


def test_a_bad_table_is_exit_1_and_a_line_for_each_problem(validate, write):
    write("a.json", 2, edits={"/status": "busy", "/server_list/0/device/1/rank_id": "0"})
    status, out, err = validate("a.json")
    assert (status, err) == (1, "")
    first, second, summary = out.splitlines()
    assert first.startswith("a.json:1: /server_list/0/device/1/rank_id: ")
    assert first.endswith(" [duplicate-rank]")
    assert second.startswith('a.json:1: /status: status is "busy"')
    assert second.endswith(" [bad-status]")
    assert summary == "a.json: 2 problems (rules common to all generations)"


@pytest.mark.parametrize(
    ("edits", "counted"),
    [({}, "1 problem"), ({"/server_list/0/device/0/host_port": "80"}, "1 problem, 1 warning")],
)
def test_one_problem_is_not_two_and_warnings_are_counted_apart(validate, write, edits, counted):
    write("a.json", 2, edits={"/status": "busy", **edits})
    assert validate("a.json")[1].splitlines()[-1] == f"a.json: {counted} (rules common to all generations)"


def test_a_file_that_is_not_json_is_a_bad_table(validate, world):
    (world / "a.json").write_text('{"version": "1.0", // the version\n}')
    status, out, _ = validate("a.json")
    assert status == 1
    assert "line 1, column 20: a comment" in out
    assert "[not-json]" in out


def test_the_rules_of_a_generation_hold_when_it_is_named(validate, write):
    write("a.json", 3)
    assert validate("a.json")[0] == 0
    assert validate("--generation", "A2", "a.json")[0] == 0
    status, out, _ = validate("--generation", "910A", "a.json")
    assert status == 1
    assert "[device-group]" in out
    assert out.splitlines()[-1] == "a.json: 1 problem (rules of 910A)"


@pytest.mark.parametrize(("name", "reason"), [("none.json", "No such file or directory"), ("folder", "is a folder")])
def test_a_file_that_cannot_be_read_is_exit_2_and_said_on_stderr(validate, world, name, reason):
    (world / "folder").mkdir()
    status, out, err = validate(name)
    assert (status, out) == (2, "")
    assert err.startswith(f"validate_hccl.py: {name} ")
    assert reason in err


@pytest.mark.parametrize(
    ("names", "status"),
    [
        (["good.json", "good.json"], 0),
        (["bad.json", "good.json"], 1),
        (["good.json", "bad.json"], 1),
        (["none.json", "bad.json"], 2),
        (["bad.json", "none.json", "good.json"], 2),
    ],
)
def test_of_several_files_all_are_checked_and_the_worst_counts(validate, write, names, status):
    write("good.json", 2)
    write("bad.json", 2, edits={"/status": "busy"})
    found, out, err = validate(*names)
    assert found == status
    for name in names:
        assert f"{name}: good" in out or f"{name}: 1 problem" in out or f"{name} cannot be read" in err


@pytest.mark.parametrize(
    "arguments", [[], ["--generation", "910", "a.json"], ["--no_such", "a.json"], ["--gen", "A2", "a.json"]], ids=str
)
def test_a_command_line_that_cannot_be_is_exit_2(validate, write, arguments):
    write("a.json", 1)
    status, out, err = validate(*arguments)
    assert (status, out) == (2, "")
    assert "usage: validate_hccl.py" in err


def test_a_problem_is_one_line_whatever_the_file_holds(validate, write):
    write("a\nb.json", 1, edits={"/status": "x\ny\u2028z", "/server_list/0/device/0/device_ip": "\x1b[31m\n\ud800"})
    status, out, _ = validate("a\nb.json")
    assert status == 1
    assert len(out.splitlines()) == 5
    assert "\x1b" not in out


def test_control_characters_are_told_with_their_line_and_shown_escaped(validate, write):
    write("a.json", 1, edits={"/server_list/0/server_id": "10.0.0.9\0trainer\x9b2J\u202e"})
    status, out, _ = validate("a.json")
    place = 'a.json:1: /server_list/0/server_id: "10.0.0.9\\u0000trainer\\x9b2J\\u202e" has the character U+0000; '
    assert status == 1
    assert out.startswith(place)
    assert out.replace("\n", "").isprintable()


# ---- as a program --------------------------------------------------------------------------------


def test_it_runs_from_another_folder_and_through_a_link(run, write, world, root):
    write("a.json", 2)
    ended = run("hccl_tools/validate_hccl.py", "a.json")
    assert (ended.returncode, ended.stderr, ended.stdout[:12]) == (0, "", "a.json: good")
    write("a.json", 2, edits={"/status": "busy"})
    (world / "check").symlink_to(root / "hccl_tools" / "validate_hccl.py")
    ended = run(world / "check", "a.json")
    assert (ended.returncode, ended.stderr) == (1, "")
    assert "[bad-status]" in ended.stdout


@pytest.mark.parametrize(("name", "shown"), [("/dev/stdin", "/dev/stdin"), ("-", "standard input")])
def test_it_reads_a_pipe_or_standard_input(run, write, world, name, shown):
    write("a.json", 2)
    with open(world / "a.json") as table:
        ended = run("hccl_tools/validate_hccl.py", name, stdin=table)
    assert (ended.returncode, ended.stdout.partition(": good")[0]) == (0, shown), ended.stderr


def test_standard_input_is_read_once_and_may_be_missing(validate, write, world, stdin, monkeypatch):
    write("a.json", 2)
    status, out, err = validate("-", "a.json", "-")
    assert (status, out) == (2, "") and err.startswith("validate_hccl.py: standard input can be read once; ")
    monkeypatch.setattr("sys.stdin", None)
    expected = (2, "", "validate_hccl.py: standard input is closed; name a file, or add: <FILE\n")
    assert validate("-") == expected


def test_standard_input_has_the_bound_that_files_have(validate, write, stdin, monkeypatch):
    write("a.json", 2)
    monkeypatch.setattr(rank_table, "MAX_BYTES", 20)
    stdin("a.json")
    status, out, err = validate("-")
    assert (status, out) == (2, "")
    assert err == "validate_hccl.py: standard input has 21 bytes or more; a rank table has at most 20\n"


def test_standard_input_that_cannot_be_read_is_told(validate, monkeypatch):
    class Torn(io.RawIOBase):
        def readinto(self, _):
            raise OSError(errno.EIO, "Input/output error")

        def readable(self):
            return True

    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(Torn())))
    expected = (2, "", "validate_hccl.py: standard input cannot be read: Input/output error\n")
    assert validate("-") == expected


def test_a_file_name_that_is_no_text_is_no_crash(run, write, world):
    write("a.json", 2)
    name = os.fsdecode(b"\xff.json")
    os.rename("a.json", name)
    ended = run("hccl_tools/validate_hccl.py", name, env={"LC_ALL": "C.UTF-8"})
    assert (ended.returncode, ended.stderr) == (0, "")


def test_without_jsonschema_a_good_table_is_good_and_a_bad_structure_is_said_in_a_line(run, write, tmp_path):
    (tmp_path / "jsonschema.py").write_text("raise ImportError('not installed')\n")
    write("a.json", 2)
    write("b.json", 2, edits={"/status": ...})
    good, bad = (
        run("hccl_tools/validate_hccl.py", name, env={"PYTHONPATH": str(tmp_path)}) for name in ("a.json", "b.json")
    )
    assert (good.returncode, bad.returncode in (1, 2)) == (0, True)
    assert "Traceback" not in bad.stderr
    assert "jsonschema" in bad.stdout + bad.stderr


# ---- output for machines, standard input, explanations ---------------------------------------------


def test_json_output_holds_every_file_and_problem(validate, write):
    write("good.json", 8, 8)
    write("bad.json", 2, edits={"/status": "busy"})
    status, out, err = validate("--json", "--generation", "A2", "good.json", "bad.json", "none.json")
    report = json.loads(out)
    assert (status, err) == (2, "")
    assert validate("--format=json", "--generation", "A2", "good.json", "bad.json", "none.json") == (2, out, "")
    json_pages.check("validate_hccl.py", report)
    assert report["generation"] == "A2"
    good, bad, none = report["files"]
    expected = {"file": "good.json", "verdict": "good", "table_format": "v1.0"}
    assert good == {**expected, "servers": 2, "ranks": 16, "problems": []}
    (problem,) = bad["problems"]
    assert bad["verdict"] == "bad"
    assert (problem["code"], problem["severity"], problem["pointer"]) == ("bad-status", "error", "/status")
    with open("bad.json", encoding="utf-8") as file:
        assert (problem["line"], problem["column"]) == (1, file.read().index('"busy"') + 1)
    assert none["verdict"] == "unreadable"


def test_a_warning_is_printed_and_the_table_is_good(validate, write):
    write("a.json", 2, edits={"/server_list/0/device/0/host_port": "80"})
    status, out, _ = validate("a.json")
    first, second = out.splitlines()
    assert status == 0
    assert first.startswith("a.json:1: /server_list/0/device/0/host_port: warning: ")
    assert second == "a.json: good, 1 warning: version 1.0, servers: 1, ranks: 2 (rules common to all generations)"


def test_a_problem_has_its_line(validate, world, table):
    (world / "a.json").write_text(json.dumps(table(2, edits={"/status": "busy"}), indent=4))
    assert validate("a.json")[1].startswith("a.json:22: /status: ")


def test_an_input_that_does_not_end_is_refused_with_the_limit(validate, monkeypatch):
    monkeypatch.setattr(validate_hccl.rank_table, "MAX_BYTES", 1000)
    status, _, err = validate("/dev/zero")
    assert status == 2
    assert "a rank table has at most 1000" in err


def test_a_path_that_hccl_does_not_read_is_a_warning(validate, write):
    write("a.txt", 2)
    status, out, _ = validate("a.txt")
    assert (status, "[bad-path]" in out) == (0, True)


def test_a_code_is_explained_without_a_file(validate):
    status, out, _ = validate("--explain", "rank-gap")
    assert status == 0
    assert out.startswith("rank-gap\n")
    assert validate("--explain", "no-such")[0] == 2


@pytest.mark.parametrize(("device", "generation"), [("0xd801", "910A"), ("0xd802", "A2"), ("0xd803", "A3")])
def test_the_generation_of_this_host_counts_if_none_is_named(validate, write, chip, device, generation):
    chip(device)
    write("a.json", 2)
    assert f"(rules of {generation}, this host's)" in validate("a.json")[1]
    assert "(rules common to all generations)" in validate("--generation", "any", "a.json")[1]
    assert "(rules of A2)" in validate("--generation", "A2", "a.json")[1]


# ---- against the host ------------------------------------------------------------------------------


@pytest.fixture
def ours(write, cards, monkeypatch):
    """ours(edits): a.json, a table of this host with the addresses of its simulated cards."""
    monkeypatch.setattr(validate_hccl.host, "owns", lambda name: name == "10.0.0.1")
    return lambda *sizes, **edits: write("a.json", *(sizes or (2,)), **edits)


SERVER = "/server_list/0/server_id"
ADDRESS = "/server_list/0/device/1/device_ip"


@pytest.mark.parametrize(
    ("edits", "words"),
    [
        ({}, []),
        ({SERVER: "10.9.9.9"}, []),  # in a container the devices tell the host
        ({ADDRESS: "192.168.100.77"}, [ADDRESS, 'write "192.168.100.2"', "[host-address]"]),
        ({SERVER: "10.9.9.9", ADDRESS: "192.168.100.77"}, ["[host-server]"]),
    ],
    ids=["this host", "a container", "an address that the device has not", "another host"],
)
def test_a_table_must_be_of_this_host_and_its_addresses_those_of_its_devices(validate, ours, edits, words):
    ours(edits=edits)
    status, out, _ = validate("--against-host", "a.json")
    assert status == bool(words)
    assert [word for word in words if word not in out] == []


def test_addresses_come_from_a_named_hccn_conf(validate, write, world, monkeypatch):
    monkeypatch.setattr(validate_hccl.host, "owns", lambda name: True)
    (world / "conf").write_text("address_0=192.168.100.1\naddress_1=192.168.100.9\n")
    write("a.json", 2)
    status, out, _ = validate("--against-host", "--hccn_conf", "conf", "a.json")
    assert (status, out.count("[host-address]")) == (1, 1)
    (world / "conf").unlink()
    assert validate("--against-host", "--hccn_conf", "conf", "a.json")[0] == 1


@pytest.mark.parametrize(
    ("variables", "good"),
    [
        ({"RANK_ID": "1", "DEVICE_ID": "1", "RANK_SIZE": "2"}, True),
        ({"RANK_ID": "1", "DEVICE_ID": "0"}, False),
        ({"RANK_ID": "2"}, False),
        ({"RANK_ID": "x"}, False),
        ({"RANK_SIZE": "8"}, False),
        ({"DEVICE_ID": "5"}, True),  # says nothing without a rank
        ({"RANK_ID": "1", "DEVICE_ID": "0", "ASCEND_RT_VISIBLE_DEVICES": "1,2"}, True),
        ({"RANK_ID": "1", "DEVICE_ID": "1", "ASCEND_RT_VISIBLE_DEVICES": "1,2"}, False),
        ({"RANK_ID": "1", "DEVICE_ID": "1", "ASCEND_RT_VISIBLE_DEVICES": "1,,2"}, True),  # of launches, not of tables
    ],
)
def test_the_variables_of_a_rank_are_compared_with_the_table(validate, ours, monkeypatch, variables, good):
    ours()
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    status, out, _ = validate("--against-host", "a.json")
    assert (status == 0) == good
    assert ("[host-rank]" in out) != good
