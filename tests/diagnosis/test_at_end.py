"""The end of a launch: the outcome goes into launch.json, whole or not at all, and a failure is explained."""

import json
import math
import os
import stat
from pathlib import Path
from types import SimpleNamespace

import pytest

from hccl_tools.check import schema_check
from tools.diagnosis import slow_ranks
from tools.features import explanation_child
from tools.features.metrics import Metrics
from tools.launch import record
from tools.supervise.members import Member

PLAN = {
    **{"script": "ascend2p.sh", "started": "2026-01-31T12:00:00Z", "host": "here", "folder": "/home/\udcff"},
    **{"device_target": "CPU", "run_dir": "/home/logs/run", "exports": {}, "trainer": ["python"], "scheduler": []},
    "ranks": [{"rank": 0, "device": 0, "log": "rank_0.log"}],
}


def member(name, status, seconds=None, pid=None, failed=False):
    """A member that has ended so."""
    found = Member(name, f"rank_{name}.log", int(name) if name.isdigit() else None, 0)
    found.status, found.pid, found.failed = status, pid, failed
    found.began, found.ended = (None, None) if seconds is None else (1.0, 1.0 + seconds)
    return found


def first_attempt(*more):
    """The outcome of an attempt whose rank 1 has failed."""
    failed = member("1", 7, 12.05, 4711, True)
    members = [member("scheduler", 143, 0.55), failed, *more]
    return record.outcome_of_attempt(members, failed, status=7, stopped_by="", logs=".")


def last_attempt():
    return record.outcome_of_attempt([member("0", None)], None, status=130, stopped_by="SIGINT", logs="./restart_1")


@pytest.fixture
def run_dir(tmp_path):
    """The folder of a run that has not ended."""
    path = tmp_path / "launch.json"
    path.write_text(json.dumps(PLAN, ensure_ascii=False), encoding="utf-8", errors="surrogateescape")
    path.chmod(0o640)
    return str(tmp_path)


def test_the_outcome_is_added_with_those_of_earlier_attempts(run_dir):
    attempts = [first_attempt(), last_attempt()]
    assert record.save_outcome(run_dir, attempts) == ""
    document = record.read(run_dir)
    assert schema_check.problems(document, schema_check.load_schema("launch")) == []
    times = [one.pop("ended") for one in (document["outcome"], *document["outcome"]["attempts"])]
    assert all(len(text) == len("2026-01-31T12:00:00Z") for text in times)
    earlier = {"exit": 7, "logs": ".", "first_failure": "1", "stopped_by": None}
    earlier["members"] = {
        "scheduler": {"status": 143, "seconds": 0.5, "pid": None},
        "1": {"status": 7, "seconds": 12.0, "pid": 4711},
    }
    last = {"exit": 130, "logs": "./restart_1", "first_failure": None, "stopped_by": "SIGINT"}
    last |= {"members": {"0": {"status": None, "seconds": None, "pid": None}}, "attempts": [earlier]}
    assert document == {**PLAN, "outcome": last}
    assert stat.S_IMODE(os.stat(record.path(run_dir)).st_mode) == 0o640
    assert os.listdir(run_dir) == ["launch.json"]


def test_a_document_that_cannot_be_written_whole_leaves_the_old_one(run_dir):
    attempts = [{**first_attempt(), "stragglers": deep(100000)}]
    assert record.save_outcome(run_dir, attempts).endswith("cannot be written: it is nested too deeply")
    assert record.read(run_dir) == PLAN and os.listdir(run_dir) == ["launch.json"]


def deep(levels):
    """A list in a list, and so on."""
    found = []
    for _ in range(levels):
        found = [found]
    return found


def test_ranks_that_failed_after_the_first_are_in_the_outcome(run_dir):
    more = [member(name, 9, 1.0, 5, True) for name in ("2", "5")]
    record.save_outcome(run_dir, [first_attempt(*more)])
    document = record.read(run_dir)
    assert schema_check.problems(document, schema_check.load_schema("launch")) == []
    assert document["outcome"]["also_failed"] == ["2", "5"]


def explained(run_dir, capsys, status=7, oom_kills=0, attempts=None):
    """(why the outcome is not in launch.json; the lines of the explanation) of a run whose rank 1 has failed."""
    failed = member("1", status, 12.0, None, True)
    attempts = attempts or [record.outcome_of_attempt([failed], failed, status=status, stopped_by="", logs=".")]
    trouble = record.save_outcome(run_dir, attempts)
    wanted = {"trouble": trouble, "outcome": record.outcome(attempts), "oom_kills": oom_kills, "within": 60}
    with explanation_child.telling():
        explanation_child.explain(wanted, run_dir, explanation_child.get_ready()[0])
    return trouble, capsys.readouterr().out.splitlines()


@pytest.fixture
def log(run_dir):
    """Rank 1 has written one line."""
    Path(run_dir, "rank_1.log").write_text("working\n")


@pytest.mark.slow
@pytest.mark.usefixtures("log")
@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        (None, "launch.json: no such file"),
        ("", "launch.json: is not JSON: Expecting value: line 1 column 1 (char 0)"),
        ('{"script": ', "launch.json: is not JSON: Expecting value"),
        ("[" * 100000, "launch.json: is not JSON: it is nested too deeply"),
        ("[]", "launch.json: is JSON, but not an object"),
    ],
    ids=["gone", "empty", "torn", "deep", "list"],
)
def test_a_record_that_cannot_be_read_is_named_and_the_failure_explained(run_dir, capsys, text, trouble):
    os.remove(record.path(run_dir))
    if text is not None:
        Path(record.path(run_dir)).write_text(text)
    said, explanation = explained(run_dir, capsys)
    assert trouble in said and run_dir in said
    assert explanation[0].startswith("rank 1") and " failed first: exit status 7; " in explanation[0]
    assert "    it ends: working" in explanation
    assert text is None or Path(record.path(run_dir)).read_text() == text


@pytest.mark.usefixtures("log")
def test_a_record_that_is_a_folder(run_dir, capsys):
    os.remove(record.path(run_dir))
    os.mkdir(record.path(run_dir))
    said, explanation = explained(run_dir, capsys)
    assert said.endswith("launch.json: cannot be read: it is not a regular file") and explanation


@pytest.mark.usefixtures("log")
def test_a_current_folder_that_is_gone(run_dir, capsys, tmp_path_factory, monkeypatch):
    gone = tmp_path_factory.mktemp("gone")
    monkeypatch.chdir(gone)
    gone.rmdir()
    trouble, explanation = explained(run_dir, capsys)
    assert trouble == "" and f"{run_dir}/rank_1.log" in explanation[0]


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_record_that_cannot_be_written_stays_as_it_is_and_nothing_beside_it(run_dir, capsys, monkeypatch, step):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, full)
    said, explanation = explained(run_dir, capsys)
    assert said.endswith("launch.json: cannot be written: No space left on device") and explanation
    assert record.read(run_dir) == PLAN
    assert sorted(os.listdir(run_dir)) == ["launch.json", "rank_1.log"]


@pytest.mark.usefixtures("log")
def test_a_failure_is_explained_with_what_the_kernel_killed(run_dir, capsys):
    trouble, explanation = explained(run_dir, capsys, 137, 1)
    assert trouble == "" and "failed first: exit status 137: the kernel ran out of memory" in explanation[0]
    assert record.read(run_dir)["outcome"]["diagnosis"]["matches"][0]["rank"] == 1


def test_plogs_are_cut_or_removed(run_dir):
    folder = Path(run_dir, "plog", "rank_1")
    folder.mkdir(parents=True)
    (folder / "plog-7_1.log").write_bytes(b"a line\n" * 2000000)
    (cut,) = explanation_child.settle({"plogs": "failed", "attempts": [first_attempt()]}, run_dir)
    assert cut.startswith("the kept plogs are cut: ")
    ended = record.outcome_of_attempt([], None, status=0, stopped_by="", logs=".")
    assert explanation_child.settle({"plogs": "failed", "attempts": [ended]}, run_dir) == []
    assert not (folder.parent).exists()
    assert explanation_child.settle({}, run_dir) == []


# ---- slow ranks -----------------------------------------------------------------------------------------------------

ROW = {
    **{"rank": 1, "device": 5, "host": "node1", "attempt": 0, "kind": "before", "factor": 1.83},
    **{"time_ms": 45.0, "median_ms": 25.0, "steps": 340},
}
SLOW = (
    "slow: rank 1 (device 5 of node1) took 1.8 times as long as the median rank for 340 steps "
    "(45 ms against 25 ms, before the ranks wait for one another)"
)


def reported(run_dir, trouble=""):
    """(the outcome; what the user reads) where --straggler was on."""
    told = []
    settings = SimpleNamespace(straggler="1.5", metrics=None)
    feature = Metrics(SimpleNamespace(plan=SimpleNamespace(run_dir=run_dir), settings=settings, say=told.append))
    feature._beside = object()
    found = last_attempt()
    feature.outcome(found)
    feature.reported(trouble)
    return found, told


def test_slow_ranks_are_in_the_outcome_and_in_the_report_and_their_file_is_gone(run_dir):
    slow_ranks.save(run_dir, [ROW])
    found, told = reported(run_dir)
    assert told == [SLOW]
    record.save_outcome(run_dir, [first_attempt(), found])
    document = record.read(run_dir)
    assert schema_check.problems(document, schema_check.load_schema("launch")) == []
    assert document["outcome"]["stragglers"] == [ROW]
    assert os.listdir(run_dir) == ["launch.json"]


def test_slow_ranks_that_cannot_be_saved_are_reported_and_kept(run_dir):
    slow_ranks.save(run_dir, [ROW])
    assert reported(run_dir, "no space")[1] == [SLOW]
    assert slow_ranks.read(run_dir) == [ROW]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[" * 100000,
        "7",
        "[7, {}]",
        json.dumps([{**ROW, "rank": -1}]),
        json.dumps([{**ROW, "factor": math.inf}]),
    ],
)
def test_a_damaged_file_of_slow_ranks_names_none(run_dir, text):
    Path(slow_ranks.path(run_dir)).write_text(text)
    found, told = reported(run_dir)
    assert ("stragglers" in found, told) == (False, [])


def test_a_pipe_in_the_place_of_that_file_names_none(run_dir):
    os.mkfifo(slow_ranks.path(run_dir))
    assert reported(run_dir)[1] == []


def test_thousands_of_slow_ranks_are_20_lines(run_dir):
    slow_ranks.save(run_dir, [{**ROW, "rank": rank, "host": "a\n\x1b"} for rank in range(5000)])
    found, lines = reported(run_dir)
    assert len(lines) == 21 and lines[-1] == "1004 more slow ranks are in launch.json"
    assert r"of a\n\x1b)" in lines[0]
    assert len(found["stragglers"]) == 1024
