"""The logs of a run of ours: where its plogs are, what the report shows of them, and what goes into launch.json."""

import json
import os
import shlex
import shutil

import plogs
import pytest
from logs.known import ENTRIES

from hccl_tools.check import schema_check
from hccl_tools.common import project
from hccl_tools.common.words import short_path
from tools.diagnosis import job_logs, main, words


@pytest.fixture
def run_on_npus(launched, tmp_path):
    """run_on_npus(ranks): the folder of a run in which all ranks waited for the last one, and rank 0 failed first."""

    def make(ranks=4, theirs=None):
        folder = launched({"0": (1, "RuntimeError: EI0006: x\n"), "1": (143, "")}, target="Ascend")
        job = plogs.Job(tmp_path / "made", ranks=ranks)
        for rank in range(ranks - 1):
            job.link(rank, ranks - 1)
        for rank in range(ranks):
            shutil.move(job.folder / "node0" / f"rank_{rank}", (theirs or folder / "plog") / f"rank_{rank}")
        launch = json.loads((folder / "launch.json").read_text())
        launch["plogs"] = {"folder": str(theirs) if theirs else "plog", "keep": "failed"}
        launch["other_logs"] = {"core_pattern": "core", "core_limit": 0}
        launch["ranks"] = [{"rank": rank, "device": rank + 4, "log": f"rank_{rank}.log"} for rank in range(ranks)]
        (folder / "launch.json").write_text(json.dumps(launch))
        return folder

    return make


def diagnosis_of(folder):
    launch = json.loads((folder / "launch.json").read_text())
    assert schema_check.problems(launch, schema_check.load_schema("launch")) == []
    return launch["outcome"]["diagnosis"]


def test_the_root_of_a_run(run_on_npus, diagnose):
    folder = run_on_npus()
    out, err = diagnose(folder)
    assert out.startswith("rank 3 (host here, device 7) never opened its socket; 3 ranks waited 120 s for it")
    assert "\n    how sure: likely; " in out and "\n    rank 0 (device 4) ended first: exit status 1\n" in out
    assert err.startswith("diagnose.py: read ")
    root = diagnosis_of(folder)["root"]
    assert (root["kind"], root["ranks"], root["certainty"]) == ("chain", [3], "likely")
    assert root["chain"] and "10.0.0" not in root["sentence"] and "time out" in root["line"]


def test_the_root_that_is_shown_already_is_not_told_again(run_on_npus, diagnose):
    folder = run_on_npus()
    for path in (folder / "plog").rglob("debug/plog/*.log"):
        path.unlink()
    (folder / "rank_0.log").write_text('Traceback (most recent call last):\n  File "a.py", line 3, in f\nKeyError: 4\n')
    out, _ = diagnose(folder)
    assert out.startswith("rank 0 (device 4) failed first: KeyError: 4, raised at a.py:3 in f\n")
    assert out.count("KeyError") == 1 and "\n    how sure: sure; " in out
    assert diagnosis_of(folder)["root"]["ranks"] == [0]


def test_plogs_in_a_folder_of_the_user(run_on_npus, diagnose, tmp_path):
    (tmp_path / "mine").mkdir()
    out, _ = diagnose(run_on_npus(theirs=tmp_path / "mine"))
    assert out.startswith("rank 3 ")


def test_plogs_that_only_their_process_tells(run_on_npus, diagnose, tmp_path):
    folder = run_on_npus()
    ascend = tmp_path / "ascend" / "log"
    for path in (folder / "plog").rglob("*.log"):
        kind = path.parent.parent.name
        (ascend / kind / "plog").mkdir(parents=True, exist_ok=True)
        path.rename(ascend / kind / "plog" / path.name)
    foreign = ascend / "debug" / "plog" / "plog-77_20250124110000000.log"
    foreign.write_text("[ERROR] RUNTIME(77,python3):2025-01-24-11:00:01.000.000 [a.cc:1]Memory async copy failed\n")
    shutil.rmtree(folder / "plog")
    launch = json.loads((folder / "launch.json").read_text())
    launch["other_logs"]["ASCEND_PROCESS_LOG_PATH"] = str(ascend)
    launch["started"] = "2025-01-24T10:00:00Z"
    launch["outcome"]["members"] = {str(rank): {"status": 1, "seconds": 1.0, "pid": 1000 + rank} for rank in range(4)}
    (folder / "launch.json").write_text(json.dumps(launch))
    out, _ = diagnose(folder)
    assert out.startswith("rank 3 ") and "Memory async" not in out


def test_the_report_has_at_most_twelve_lines(run_on_npus, capsys):
    folder = run_on_npus(ranks=8)
    for number, entry in enumerate(ENTRIES):
        if entry.logs == ("plog",) and number % 4 == 0:
            with open(folder / "plog" / "rank_1" / "debug" / "plog" / "plog-1001_20250124110000000.log", "a") as file:
                file.write(entry.samples[0] + "\n")
    launch = json.loads((folder / "launch.json").read_text())
    assert main.explain(launch, str(folder), (ENTRIES, []), 0, at_end=True)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == words.MOST_LINES and lines[-1].startswith("more: python ")
    assert lines[0].startswith("rank ") and max(map(len, lines)) < words.COLUMNS
    assert len(launch["outcome"]["diagnosis"]["faults"]) > 10


def test_what_is_too_much_for_the_report_is_named(run_on_npus, capsys, monkeypatch):
    folder = run_on_npus()
    monkeypatch.setattr(job_logs, "MOST_AT_END", 1000)
    launch = json.loads((folder / "launch.json").read_text())
    assert main.explain(launch, str(folder), (ENTRIES, []), 0, at_end=True)
    assert "are not read yet: python " in capsys.readouterr().out


def test_the_command_for_the_rest_names_any_folder(tmp_path):
    words = shlex.split(job_logs.command(str(tmp_path / "a b;$(id)")))
    assert words == ["python", short_path(project.path("tools", "diagnose.py")), f"{tmp_path}/a b;$(id)"]


def test_links_in_the_folder_of_plogs_are_not_followed(run_on_npus, diagnose, tmp_path):
    folder = run_on_npus()
    shutil.move(folder / "plog" / "rank_3", tmp_path / "elsewhere")
    (folder / "plog" / "rank_3").symlink_to(tmp_path / "elsewhere")
    out, _ = diagnose(folder)
    assert out.startswith("rank 3 (host here, device 7) has no log here")


@pytest.mark.parametrize("value", [None, 3, [], {"folder": 3}, {"folder": "/no/such"}, {"keep": "failed"}])
def test_a_damaged_record_harms_nothing(run_on_npus, diagnose, value):
    folder = run_on_npus()
    launch = json.loads((folder / "launch.json").read_text())
    launch["plogs"] = value
    (folder / "launch.json").write_text(json.dumps(launch))
    out, _ = diagnose(folder)
    assert "EI0006" in out


def test_what_programs_read_is_english(run_on_npus, diagnose, monkeypatch):
    monkeypatch.setenv("LAUNCH_LANG", "zh")
    folder = run_on_npus()
    out, _ = diagnose(folder, "--events", "-")
    assert (
        out.startswith("rank 3")
        and "把握：" in out
        and '"cause": "rank 3 (host here, device 7) never opened its socket' in out
    )
    assert diagnosis_of(folder)["root"]["sentence"].isascii()


def test_events_are_json_lines(run_on_npus, tmp_path, diagnose):
    folder = run_on_npus()
    events = tmp_path / "events.jsonl"
    events.write_text('{"of": "an earlier job"}\n')
    diagnose(folder, "--events", str(events))
    rows = [json.loads(line) for line in events.read_text().splitlines()]
    assert rows.pop(0) == {"of": "an earlier job"}
    assert (rows[0]["event"], rows[0]["rank"], rows[0]["device"], rows[0]["code"]) == ("root", 3, 7, "root-chain")
    assert rows[0]["time"].startswith("2025-01-24T11:02:")
    assert [row["status"] for row in rows if row["event"] == "end"] == [1]
    assert all(row["code"] and row["cause"] for row in rows if row["event"] == "fault")


def test_events_go_to_stdout_too(run_on_npus, diagnose):
    out, _ = diagnose(run_on_npus(), "--events", "-")
    assert any(line.startswith('{"event": "root"') for line in out.splitlines())


def test_events_that_cannot_be_written_are_told(run_on_npus, capsys):
    assert main.main([str(run_on_npus()), "--events", "/no/such/folder/events"]) == 2
    assert "/no/such/folder/events: No such file or directory" in capsys.readouterr().err


def test_the_newest_run_is_the_default(run_on_npus, monkeypatch, tmp_path, capsys):
    os.makedirs(tmp_path / "here" / "logs")
    os.symlink(run_on_npus(), tmp_path / "here" / "logs" / "latest")
    monkeypatch.chdir(tmp_path / "here")
    assert main.main([]) == 0
    assert capsys.readouterr().out.startswith("rank 3 ")
