"""The end of a launch: the outcome goes into launch.json, whole or not at all, and a failure is explained."""

import json
import os
import stat
from pathlib import Path

import pytest

from hccl_tools.check import schema_check
from tools.diagnosis import finish
from tools.launch import record

PLAN = {
    **{"script": "ascend2p.sh", "started": "2026-01-31T12:00:00Z", "host": "here", "folder": "/home/\udcff"},
    **{"device_target": "CPU", "run_dir": "/home/logs/run", "exports": {}, "trainer": ["python"], "scheduler": []},
    "ranks": [{"rank": 0, "device": 0, "log": "rank_0.log"}],
}
FIRST = ["attempt 7 2026-01-31T12:00:01Z .", "first_failure 1", "member scheduler 143 0.5", "member 1 7 12.0"]
LAST = ["attempt 130 2026-01-31T12:00:09Z ./restart_1", "stopped_by SIGINT", "member 0 - -"]


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
    earlier["members"] = {"scheduler": {"status": 143, "seconds": 0.5}, "1": {"status": 7, "seconds": 12.0}}
    last = {"ended": "2026-01-31T12:00:09Z", "exit": 130, "logs": "./restart_1", "first_failure": None}
    last |= {"stopped_by": "SIGINT", "members": {"0": {"status": None, "seconds": None}}, "attempts": [earlier]}
    assert document == {**PLAN, "outcome": last}
    assert stat.S_IMODE(os.stat(record.path(run_dir)).st_mode) == 0o640
    assert os.listdir(run_dir) == ["launch.json"]


@pytest.mark.parametrize("lines", [[], FIRST, ["failed", *FIRST]])
def test_a_launcher_that_is_killed_before_it_has_told_all_changes_nothing(run_dir, capsys, lines):
    assert told(run_dir, capsys, *lines) == []
    assert record.read(run_dir) == PLAN


@pytest.mark.parametrize("text", [None, "", '{"script": '], ids=["gone", "empty", "torn"])
def test_a_record_that_cannot_be_read(run_dir, capsys, text):
    os.remove(record.path(run_dir))
    if text is not None:
        Path(record.path(run_dir)).write_text(text)
    assert told(run_dir, capsys, *LAST, "end -") == ["failed"]


def test_a_record_that_cannot_be_written_stays_as_it_is(run_dir, capsys, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(record.os, "replace", full)
    assert told(run_dir, capsys, *LAST, "end -") == ["failed"]
    assert record.read(run_dir) == PLAN


@pytest.mark.parametrize("ready", [["failed"], []], ids=["ready", "unprepared"])
def test_a_failure_is_explained_with_what_the_kernel_killed(run_dir, capsys, ready):
    Path(run_dir, "rank_1.log").write_text("working\n")
    lines = [*ready, "attempt 137 2026-01-31T12:00:01Z .", "first_failure 1", "member 1 137 12.0", "end 1"]
    saved, *explanation = told(run_dir, capsys, *lines)
    assert saved == "saved" and "rank 1, exit status 137" in explanation[0]
    assert record.read(run_dir)["outcome"]["diagnosis"]["matches"][0]["rank"] == 1
