"""The end of a launch: the outcome goes into launch.json, whole or not at all, and a failure is explained."""

import json
import math
import os
import stat
from pathlib import Path

import pytest

from hccl_tools.check import schema_check
from tools.diagnosis import finish, slow_ranks
from tools.launch import record

PLAN = {
    **{"script": "ascend2p.sh", "started": "2026-01-31T12:00:00Z", "host": "here", "folder": "/home/\udcff"},
    **{"device_target": "CPU", "run_dir": "/home/logs/run", "exports": {}, "trainer": ["python"], "scheduler": []},
    "ranks": [{"rank": 0, "device": 0, "log": "rank_0.log"}],
}
FIRST = ["attempt 7 2026-01-31T12:00:01Z .", "first_failure 1", "member scheduler 143 0.5 -", "member 1 7 12.0 4711"]
LAST = ["attempt 130 2026-01-31T12:00:09Z ./restart_1", "stopped_by SIGINT", "member 0 - - -"]


@pytest.fixture
def run_dir(tmp_path):
    """The folder of a run that has not ended."""
    path = tmp_path / "launch.json"
    path.write_text(json.dumps(PLAN, ensure_ascii=False), encoding="utf-8", errors="surrogateescape")
    path.chmod(0o640)
    return str(tmp_path)


def told(run_dir, capsys, *lines):
    """What finish.py answers."""
    finish.main(run_dir, lines)
    return capsys.readouterr().out.splitlines()


def test_the_outcome_is_added_with_those_of_earlier_attempts(run_dir, capsys):
    assert told(run_dir, capsys, *FIRST, *LAST, "end -") == ["saved"]
    document = record.read(run_dir)
    assert schema_check.problems(document, schema_check.load_schema("launch")) == []
    earlier = {"ended": "2026-01-31T12:00:01Z", "exit": 7, "logs": ".", "first_failure": "1", "stopped_by": None}
    earlier["members"] = {
        "scheduler": {"status": 143, "seconds": 0.5, "pid": None},
        "1": {"status": 7, "seconds": 12.0, "pid": 4711},
    }
    last = {"ended": "2026-01-31T12:00:09Z", "exit": 130, "logs": "./restart_1", "first_failure": None}
    last |= {
        "stopped_by": "SIGINT",
        "members": {"0": {"status": None, "seconds": None, "pid": None}},
        "attempts": [earlier],
    }
    assert document == {**PLAN, "outcome": last}
    assert stat.S_IMODE(os.stat(record.path(run_dir)).st_mode) == 0o640
    assert os.listdir(run_dir) == ["launch.json"]


def test_ranks_that_failed_after_the_first_are_in_the_outcome(run_dir, capsys):
    assert told(run_dir, capsys, *FIRST, "also_failed 2", "also_failed 5", "end -") == ["saved"]
    document = record.read(run_dir)
    assert schema_check.problems(document, schema_check.load_schema("launch")) == []
    assert document["outcome"]["also_failed"] == ["2", "5"]


@pytest.mark.parametrize("lines", [[], FIRST, ["failed", *FIRST]])
def test_a_launcher_that_is_killed_before_it_has_told_all_changes_nothing(run_dir, capsys, lines):
    assert told(run_dir, capsys, *lines) == []
    assert record.read(run_dir) == PLAN


@pytest.fixture
def failed(run_dir):
    """What the launcher says of a run whose rank 1 failed, after it wrote one line."""
    Path(run_dir, "rank_1.log").write_text("working\n")
    return ["failed", "attempt 7 2026-01-31T12:00:01Z .", "first_failure 1", "member 1 7 12.0 -", "end 0"]


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
def test_a_record_that_cannot_be_read_is_named_and_the_failure_explained(run_dir, capsys, failed, text, trouble):
    os.remove(record.path(run_dir))
    if text is not None:
        Path(record.path(run_dir)).write_text(text)
    said, *explanation = told(run_dir, capsys, *failed)
    assert trouble in said and run_dir in said
    assert "rank 1 ended with status 7" in explanation[0] and "it ends: working" in explanation[0]
    assert text is None or Path(record.path(run_dir)).read_text() == text


def test_a_record_that_is_a_folder(run_dir, capsys, failed):
    os.remove(record.path(run_dir))
    os.mkdir(record.path(run_dir))
    said, *explanation = told(run_dir, capsys, *failed)
    assert said.endswith("launch.json: cannot be read: it is not a regular file") and explanation


def test_a_current_folder_that_is_gone(run_dir, capsys, failed, tmp_path_factory, monkeypatch):
    gone = tmp_path_factory.mktemp("gone")
    monkeypatch.chdir(gone)
    gone.rmdir()
    saved, *explanation = told(run_dir, capsys, *failed)
    assert saved == "saved" and f"{run_dir}/rank_1.log" in explanation[0]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_record_that_cannot_be_written_stays_as_it_is_and_nothing_beside_it(
    run_dir, capsys, failed, monkeypatch, step
):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, full)
    said, *explanation = told(run_dir, capsys, *failed)
    assert said.endswith("launch.json: cannot be written: No space left on device") and explanation
    assert record.read(run_dir) == PLAN
    assert sorted(os.listdir(run_dir)) == ["launch.json", "rank_1.log"]


@pytest.mark.parametrize("ready", [["failed"], []], ids=["ready", "unprepared"])
def test_a_failure_is_explained_with_what_the_kernel_killed(run_dir, capsys, ready):
    Path(run_dir, "rank_1.log").write_text("working\n")
    lines = [*ready, "attempt 137 2026-01-31T12:00:01Z .", "first_failure 1", "member 1 137 12.0 -", "end 1"]
    saved, *explanation = told(run_dir, capsys, *lines)
    assert saved == "saved" and "rank 1, exit status 137" in explanation[0]
    assert record.read(run_dir)["outcome"]["diagnosis"]["matches"][0]["rank"] == 1


def test_plogs_are_cut_after_the_explanation_although_the_record_cannot_be_written(run_dir, capsys, failed):
    folder = Path(run_dir, "plog", "rank_1")
    folder.mkdir(parents=True)
    (folder / "plog-7_1.log").write_bytes(b"a line\n" * 2000000)
    os.remove(record.path(run_dir))
    trouble, *explanation, cut = told(run_dir, capsys, *failed[:-1], "plogs failed", failed[-1])
    assert "launch.json" in trouble and explanation and cut.startswith("the plogs that stay are cut: ")
    assert told(run_dir, capsys, "attempt 0 2026-01-31T12:00:01Z .", "plogs failed", "end -")
    assert not (folder.parent).exists()


ROW = {
    **{"rank": 1, "device": 5, "host": "node1", "attempt": 0, "kind": "before", "factor": 1.83},
    **{"time_ms": 45.0, "median_ms": 25.0, "steps": 340},
}
SLOW = (
    "slow: rank 1 (device 5 of node1) took 1.8 times as long as the median rank for 340 steps "
    "(45 ms against 25 ms, before the ranks wait for one another)"
)


def test_slow_ranks_are_in_the_outcome_and_in_the_report_and_their_file_is_gone(run_dir, capsys):
    slow_ranks.save(run_dir, [ROW])
    assert told(run_dir, capsys, *FIRST, *LAST, "stragglers", "end -") == ["saved", SLOW]
    document = record.read(run_dir)
    assert schema_check.problems(document, schema_check.load_schema("launch")) == []
    assert document["outcome"]["stragglers"] == [ROW]
    assert os.listdir(run_dir) == ["launch.json"]


def test_slow_ranks_that_cannot_be_saved_are_reported_and_kept(run_dir, capsys, failed, monkeypatch):
    slow_ranks.save(run_dir, [ROW])
    os.remove(record.path(run_dir))
    assert told(run_dir, capsys, *failed[:-1], "stragglers", "end -")[1] == SLOW
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
def test_a_damaged_file_of_slow_ranks_names_none(run_dir, capsys, text):
    Path(slow_ranks.path(run_dir)).write_text(text)
    assert told(run_dir, capsys, *LAST, "stragglers", "end -") == ["saved"]
    assert "stragglers" not in record.read(run_dir)["outcome"]


def test_a_pipe_in_the_place_of_that_file_names_none(run_dir, capsys):
    os.mkfifo(slow_ranks.path(run_dir))
    assert told(run_dir, capsys, *LAST, "stragglers", "end -") == ["saved"]


def test_thousands_of_slow_ranks_are_20_lines(run_dir, capsys):
    slow_ranks.save(run_dir, [{**ROW, "rank": rank, "host": "a\n\x1b"} for rank in range(5000)])
    _, *lines = told(run_dir, capsys, *LAST, "stragglers", "end -")
    assert len(lines) == 21 and lines[-1] == "1004 more slow ranks are in launch.json"
    assert r"of a\n\x1b)" in lines[0]
    assert len(record.read(run_dir)["outcome"]["stragglers"]) == 1024
