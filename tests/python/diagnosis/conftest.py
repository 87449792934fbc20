"""Runs that have ended, and what the diagnosis says about them."""

import json

import pytest

from hccl_tools.common import language
from tools.diagnosis import known_failures, main


@pytest.fixture(autouse=True)
def english(monkeypatch):
    for name in ("LAUNCH_LANG", "LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG", known_failures.VARIABLE):
        monkeypatch.delenv(name, raising=False)
    language._catalogue.cache_clear()
    yield
    language._catalogue.cache_clear()  # a test may have chosen Chinese


@pytest.fixture
def launched(tmp_path):
    """launched({"0": (status, log)}, first="0"): the folder of a run that ended that way; a log of None is missing."""

    def make(members, first="0", logs=None, target="CPU"):
        folder = tmp_path / "run"
        (folder / (logs or ".")).mkdir(parents=True)
        for name, (_, log) in members.items():
            file = folder / (logs or ".") / (f"rank_{name}.log" if name.isdecimal() else f"{name}.log")
            if log is not None:
                file.write_bytes(log if isinstance(log, bytes) else log.encode())
        outcome = {"ended": "2026-01-31T12:00:00Z", "exit": 1, "first_failure": first, "stopped_by": None}
        outcome["members"] = {name: {"status": status, "seconds": 1.5} for name, (status, _) in members.items()}
        plan = {
            **{"script": "ascend4p.sh", "started": "2026-01-31T12:00:00Z", "host": "here", "folder": "/home/user/job"},
            **{
                "device_target": target,
                "run_dir": str(folder),
                "exports": {"名": "值"},
                "trainer": ["python", "/job/train.py"],
            },
            **{"scheduler": [], "ranks": [{"rank": 0, "device": 0, "log": "rank_0.log"}]},
            "outcome": {**outcome, **({"logs": logs} if logs else {})},
        }
        (folder / "launch.json").write_text(json.dumps(plan, ensure_ascii=False, indent=2))
        return folder

    return make


@pytest.fixture
def diagnose(capsys):
    """diagnose(folder): (stdout, stderr) of the command, in this process."""

    def run(folder, *options):
        assert main.main([str(folder), *options]) == 0
        return capsys.readouterr()

    return run


@pytest.fixture
def explained(launched, diagnose):
    """explained({"0": (status, log)}, ...): (stdout, outcome.diagnosis of launch.json, the codes in it)."""

    def run(members, *options, **arguments):
        folder = launched(members, **arguments)
        out, _ = diagnose(folder, *options)
        diagnosis = json.loads((folder / "launch.json").read_text())["outcome"].get("diagnosis")
        return out, diagnosis, [match["code"] for match in diagnosis["matches"]]

    return run
