"""Runs that have ended, and what the diagnosis says about them."""

import json
import os
import tarfile

import pytest

from hccl_tools.common import language
from tools.diagnosis import main
from tools.diagnosis.bundle import pages
from tools.logs import known_failures


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
    """diagnose(folder): (stdout, stderr) of the command, in this process; code: its exit code."""

    def run(folder, *options, code=0):
        assert main.main([str(folder), *options]) == code
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


# --- bundles ----------------------------------------------------------------------------------------------------------

SECRET = "hunter2-hunter2"
PLOG = "[ERROR] HCCL(114650,python3):2025-06-19-09:28:35.212.164 [p2p_mgmt.cc:305] [115859]connected p2p timeout\n"


@pytest.fixture
def doctor(tmp_path, monkeypatch):
    """doctor("echo ill"): what the doctor does."""
    script = tmp_path / "doctor.sh"
    monkeypatch.setattr(pages, "_DOCTOR", str(script))
    script.write_text("echo a healthy machine")
    return script.write_text


@pytest.fixture
def bundled(tmp_path, capsys, doctor):
    """bundled(path, ...): the files in the bundle, by name; `.err`: what stderr says."""

    class Files(dict):
        err = out = ""

    def run(*arguments, name="out.tgz"):
        target = tmp_path / name
        code = main.main([*map(str, arguments), "--bundle", str(target)])
        found = Files()
        found.out, found.err = capsys.readouterr()
        assert code == 0, found.err
        assert found.out == f"{target}\n"
        with tarfile.open(target) as opened:
            for member in opened:
                top, _, inside = member.name.partition("/")
                assert member.isreg() and top == "debug_out" and ".." not in inside.split("/")
                assert (member.mode, member.uid, member.gid, member.uname, member.gname) == (0o600, 0, 0, "", "")
                assert inside not in found
                found[inside] = opened.extractfile(member).read()
        assert not list(tmp_path.glob("*.part"))
        return found

    return run


@pytest.fixture
def refused(tmp_path, capsys, doctor):
    """refused(path, ..., code=2): what stderr says of a bundle that is not made."""

    def run(*arguments, target=None, code=2):
        target = tmp_path / "out.tgz" if target is None else target
        before = os.listdir(tmp_path)
        assert main.main([*map(str, arguments), "--bundle", str(target)]) == code
        out, err = capsys.readouterr()
        assert out == "" and sorted(os.listdir(tmp_path)) == sorted(before)
        return err

    return run


@pytest.fixture
def failed_run(launched, tmp_path, doctor):
    """A run that failed, with all that a run can leave."""
    logs = {"0": "fine key-of-launch\n", "1": f"login with {SECRET}\nEI0006\n", "mpirun": "lost\n"}
    folder = launched({name: (143 if name == "0" else 1, log) for name, log in logs.items()}, "1")
    (folder / "rank_1.env").write_text(f'declare -x HF_TOKEN="{SECRET}"\ndeclare -x A="1"\n')
    (folder / "rank_1.stack").write_text("Thread 1\n")
    (folder / "net.ckpt").write_bytes(b"\0" * 1000)
    (folder / "plog/rank_1/debug/plog").mkdir(parents=True)
    (folder / "plog/rank_1/debug/plog/plog-7_20250619.log").write_text(PLOG + SECRET + "\n")
    (tmp_path / "table.json").write_text('{"server_list": [], "status": "completed"}')
    launch = json.loads((folder / "launch.json").read_text())
    launch["exports"] = {"RANK_TABLE_FILE": str(tmp_path / "table.json"), "API_KEY": "key-of-launch"}
    (folder / "launch.json").write_text(json.dumps(launch))
    return folder


@pytest.fixture
def folder(tmp_path):
    """Somebody's folder of logs."""
    (tmp_path / "logs/worker-0").mkdir(parents=True)
    (tmp_path / "logs/worker-0/plog-1_1.log").write_text(PLOG)
    return tmp_path / "logs"
