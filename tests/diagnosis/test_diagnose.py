"""Which known failure is named, in which language, and what becomes of launch.json."""

import json
import os
import subprocess
import sys

import pytest

from hccl_tools.check import schema_check
from tools.diagnosis import run

TERMINATED = 143
EI0006 = {"0": (1, "EI0006\n")}


# --- which log, which entry -------------------------------------------------------------------------------------------


def test_the_log_of_the_rank_that_failed_first_counts_most(explained):
    members = {"0": (1, "EI0006: timeout\n"), "1": (1, "MemoryError\n"), "2": (TERMINATED, "Too many open files\n")}
    out, diagnosis, codes = explained(members, first="1")
    assert codes == ["out-of-host-memory", "EI0006"]
    assert [match["rank"] for match in diagnosis["matches"]] == [1, 0]
    assert "(out-of-host-memory)" in out.splitlines()[0]
    assert "(EI0006 in rank 0)" in out.splitlines()[-1]


@pytest.mark.parametrize(
    "error", ["FileNotFoundError: [Errno 2] No such file: 'a'", "BrokenProcessPool: 1", "KeyError: 1"]
)
def test_who_ended_first_is_never_sure_where_the_others_were_not_read(launched, diagnose, error):
    """All ranks may be about to raise the same, or one that was killed without a word may be seen a moment later."""
    raised = f'Traceback (most recent call last):\n  File "train.py", line 1, in <module>\n{error}\n'
    out, _ = diagnose(of_two_ranks(launched, raised))
    assert "\n    how sure: likely; it ended first, with an error of its own\n" in out


def of_two_ranks(launched, log):
    """The folder of a run whose rank 0 has this log, and whose rank 1 was stopped."""
    folder = launched({"0": (1, log), "1": (TERMINATED, "")})
    plan = json.loads((folder / "launch.json").read_text())
    plan["ranks"] = [{"rank": rank, "device": rank, "log": f"rank_{rank}.log"} for rank in range(2)]
    (folder / "launch.json").write_text(json.dumps(plan))
    return folder


@pytest.mark.parametrize(
    "said",
    [
        "382] RingAllGather] CollectiveWait [const pair] failed.",
        "162] RunRingAllReduce] Ring wait receiving [1,1] failed.",
        "212] RunRingAllReduce] RingAllReduce wait sending 160 failed.",
    ],
)
def test_a_rank_whose_collective_on_cpu_ended_waited_for_others(launched, diagnose, run, root, said):
    """MindSpore 2.10 waits for 30 s; its exception does not say so."""
    log = (
        f"[ERROR] DISTRIBUTED(7,7f,python):2026-11-27-04:22:52.705.656 [mindspore/a.cc:{said}\n"
        'Traceback (most recent call last):\n  File "t.py", line 2, in <module>\nRuntimeError: \n---\n'
        "- Kernel error:\n---\nLaunch kernel failed: Default/AllGather-op1\n"
    )
    folder = of_two_ranks(launched, log)
    out, _ = diagnose(folder)
    assert "how sure: a guess; it ended first, but its error says that it waited for others\n" in out
    assert "(peer-lost)" in out
    subprocess.run([sys.executable, root / "tools/report.py", folder], check=True, capture_output=True)
    assert "its error says that it waited for others" in (folder / "report.html").read_text(encoding="utf-8")


def test_what_a_rank_lost_before_an_error_of_its_own_is_no_wait(launched, diagnose):
    log = (
        "ConnectionResetError: [Errno 104] Connection reset by peer\nMemoryError\n"
        'Traceback (most recent call last):\n  File "t.py", line 2, in <module>\nRuntimeError: \n'
    )
    out, _ = diagnose(of_two_ranks(launched, log))
    assert "how sure: likely; " in out and "(out-of-host-memory)" in out and "(peer-lost in rank 0)" in out


def test_a_cause_in_another_rank_comes_before_what_is_vague(explained):
    failed = "Failed to initialize distributed job cluster\n"
    members = {"scheduler": (1, "bind: Address already in use\n"), "0": (1, failed)}
    out, diagnosis, codes = explained(members)
    assert codes == ["port-in-use", "scheduler-timeout"]
    assert diagnosis["matches"][0]["rank"] == "scheduler"
    assert out.startswith("rank 0 (device 0) failed first: exit status 1\n")
    assert "\n    cause: another program listens " in out and "(port-in-use)\n    seen: MindSpore's scheduler, " in out
    assert "also seen: scheduler-timeout in rank 0\n" in out


def test_the_exception_counts_more_than_what_was_logged_before(explained):
    raised = 'Traceback (most recent call last):\n  File "a.py", line 3\nConnectionRefusedError: no\n'
    out, _, codes = explained({"0": (1, "Cannot allocate memory\n" * 3 + raised)})
    assert codes == ["connection-refused", "out-of-host-memory"]
    assert out.startswith("rank 0 (device 0) failed first: ConnectionRefusedError: no, raised at a.py:3\n")
    assert "(out-of-host-memory in rank 0)\n" in out


def test_a_line_before_the_exception_is_told_as_earlier(explained):
    raised = 'Traceback (most recent call last):\n  File "a.py", line 3\nOddError: no\n'
    out, _, codes = explained({"0": (1, "Cannot allocate memory\n" + raised)})
    assert codes == ["out-of-host-memory"] and "/rank_0.log:1, earlier than the exception: Cannot allocate" in out


def test_a_code_that_many_ranks_have_is_told_once(explained):
    _, diagnosis, _ = explained({str(rank): (1, "x\nEI0002: waited\n") for rank in range(12)}, first="5")
    assert [(match["code"], match["rank"], match["row"]) for match in diagnosis["matches"]] == [("EI0002", 5, 2)]


LOST = "ORTE has lost communication with a remote daemon.\n\n  Remote daemon: [[1,0],1] on node node1\n"


@pytest.mark.parametrize(
    ("first", "log", "folder", "code", "parts"),
    [
        (
            "scheduler",
            "Address already in use\n",
            "attempt_2",
            "port-in-use",
            ["MindSpore's scheduler failed first: ", "attempt_2/scheduler.log:1: "],
        ),
        ("mpirun", LOST, None, "host-lost", ["mpirun failed: ", "mpirun.log:3: "]),
    ],
)
def test_the_scheduler_or_an_engine_may_fail_first_and_logs_may_lie_in_a_folder(
    explained, first, log, folder, code, parts
):
    out, _, codes = explained({first: (1, log), "0": (TERMINATED, "")}, first=first, logs=folder)
    assert codes == [code] and f"({code})" in out.splitlines()[0]
    assert all(part in out for part in parts)


@pytest.mark.parametrize(
    ("options", "known"), [([], "killed"), (["--oom_kills", "0"], "killed"), (["--oom-kills", "2"], "killed-by-kernel")]
)
def test_who_killed_the_rank(explained, options, known):
    out, diagnosis, codes = explained({"0": (137, "step 3\n")}, *options)
    assert codes == [known]
    assert diagnosis["matches"][0]["line"] is None
    assert out.startswith("rank 0 (device 0) failed first: exit status 137: ") and f"({known})" in out


def test_a_kill_by_the_kernel_does_not_explain_another_status(explained):
    out, _, codes = explained({"0": (3, "step 3\n")}, "--oom_kills", "2")
    assert codes == []
    assert out.startswith("rank 0 (device 0) failed first: exit status 3; its log ") and "no Python exception" in out
    assert "\n    it ends: step 3\n" in out


# --- Chinese ----------------------------------------------------------------------------------------------------------


def test_a_chinese_message_is_answered_in_chinese_too(explained):
    out = explained({"0": (1, "cp: 写入 a 时出错: 设备上没有空间\n")})[0]
    assert "no-space-left" in out and "原因：磁盘已满" in out and " failed first: a disk is full" in out


@pytest.mark.parametrize(
    ("variables", "chinese"),
    [
        ({"LANG": "zh_CN.UTF-8"}, True),
        ({"LC_MESSAGES": "zh_CN.UTF-8", "LANG": "C"}, True),
        ({"LC_ALL": "en_US.UTF-8", "LANG": "zh_CN.UTF-8"}, False),
        ({"LC_ALL": "", "LANG": "zh_CN"}, True),
        ({}, False),
    ],
)
def test_the_locale_chooses_the_language(explained, monkeypatch, variables, chinese):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert ("处理：" in explained({"0": (1, "No space left on device\n")})[0]) == chinese


def test_a_chinese_reader_reads_chinese_and_programs_english(explained, monkeypatch):
    monkeypatch.setenv("LAUNCH_LANG", "zh")
    frame = 'Traceback (most recent call last):\n  File "/job/train.py", line 3, in save\n'
    out, diagnosis, _ = explained({"0": (1, f"{frame}OSError: No space left on device\n")})
    assert "原因：磁盘已满" in out and "抛出位置：/job/train.py:3，函数 save" in out
    assert "cause:" not in out and "raised at" not in out
    assert diagnosis["matches"][0]["cause"].isascii()


def test_a_failure_without_chinese_is_told_in_english(explained, monkeypatch, tmp_path):
    (tmp_path / "mine.yaml").write_text(
        "diagnoses: [{code: mine, patterns: [full], cause: our disk, remedy: ask Li}]\n"
    )
    monkeypatch.setenv("LAUNCH_DIAGNOSES", str(tmp_path / "mine.yaml"))
    monkeypatch.setenv("LAUNCH_LANG", "zh")
    assert "最先失败：our disk" in explained({"0": (1, "full\n")})[0]


def test_lang_chooses_the_language_of_all_lines(launched, run):
    folder = launched({"0": (1, "No space left on device\n")})
    ended = run("tools/diagnose.py", folder, "--lang", "zh", env={"LC_ALL": "C.UTF-8"})
    assert "处理：" in ended.stdout and "最先失败：磁盘已满" in ended.stdout and "a disk is full" not in ended.stdout


def test_a_terminal_without_chinese_is_no_failure(launched, run):
    folder = launched({"0": (1, "设备上没有空间\n")})
    ended = run("tools/diagnose.py", folder, env={"PYTHONIOENCODING": "ascii", "LC_ALL": "C"})
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "no-space-left" in ended.stdout and "\\u539f\\u56e0" in ended.stdout


# --- odd runs ---------------------------------------------------------------------------------------------------------


def test_a_pipe_in_the_place_of_a_log_does_not_hold_us_up(launched, diagnose):
    folder = launched({"0": (1, None)})
    os.mkfifo(folder / "rank_0.log")
    assert "not a regular file" in diagnose(folder).out


def test_a_run_without_failure_has_nothing_to_explain(launched, diagnose):
    folder = launched({"0": (0, "EI0006\n")}, first=None)
    before = (folder / "launch.json").read_bytes()
    assert diagnose(folder, code=1) == ("no rank failed: nothing to explain\n", "")
    assert (folder / "launch.json").read_bytes() == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "no logs in it; name the folder of a run"),
        *((text, "is not JSON") for text in ("", "{", "[" * 100000)),
        ("[]", "is JSON, but not an object"),
        *((text, "has no outcome") for text in ('{"outcome": null}', '{"script": "x"}')),
    ],
)
def test_a_folder_that_holds_no_run(tmp_path, run, text, told):
    if text is not None:
        (tmp_path / "launch.json").write_text(text)
    ended = run("tools/diagnose.py", tmp_path)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.count("\n") == 1 and told in ended.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "outcome",
    [
        {"first_failure": "0"},
        {"first_failure": "0", "members": []},
        {"first_failure": 0, "members": {"0": 3, "1": {"status": "x"}, "2": {"status": [1]}, "3": {}}},
        {"first_failure": "0\0", "members": {}, "logs": 7},
    ],
)
def test_an_outcome_of_odd_shape(tmp_path, run, outcome):
    (tmp_path / "launch.json").write_text(json.dumps({"outcome": outcome}))
    ended = run("tools/diagnose.py", tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "cannot be read" in ended.stdout


# --- launch.json ------------------------------------------------------------------------------------------------------


def test_launch_json_keeps_what_it_had_and_satisfies_its_schema(root, launched, diagnose):
    log = (root / "tests/fixtures/rank_logs/port-in-use.log").read_text()
    folder = launched({"0": (1, log), "1": (137, "")})
    path = folder / "launch.json"
    path.chmod(0o640)
    before = json.loads(path.read_text())
    diagnose(folder)
    after = json.loads(path.read_text())
    assert schema_check.problems(after, schema_check.load_schema("launch")) == []
    assert after["outcome"].pop("diagnosis")["exception"]["type"] == "RuntimeError"
    assert after == before and "名" in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o640
    assert sorted(file.name for file in folder.iterdir()) == ["launch.json", "rank_0.log", "rank_1.log"]


def test_explaining_twice_is_explaining_once(launched, diagnose):
    folder = launched({"0": (1, "\udcff EI0006\n".encode("utf-8", "surrogateescape"))})
    diagnose(folder)
    once = (folder / "launch.json").read_bytes()
    diagnose(folder)
    assert (folder / "launch.json").read_bytes() == once


def test_a_name_that_is_not_utf8_stays_what_it_is(launched, diagnose):
    folder = launched(EI0006)
    path = folder / "launch.json"
    path.write_text(path.read_text().replace("/home/user/job", "/home/\\udcff"))
    diagnose(folder)
    assert json.loads(path.read_text())["folder"] == "/home/\udcff"


def test_a_launch_json_that_cannot_be_written_is_told(launched, diagnose, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    folder = launched(EI0006)
    before = (folder / "launch.json").read_bytes()
    monkeypatch.setattr(os, "replace", full)
    out, err = diagnose(folder)
    assert "EI0006" in out and "the diagnosis could not be added: No space left on device" in err
    assert (folder / "launch.json").read_bytes() == before


# --- the command ------------------------------------------------------------------------------------------------------


def test_a_reader_who_left_is_no_failure(launched, root):
    folder = launched(EI0006)
    command = f'"{sys.executable}" "{root}/tools/diagnose.py" "{folder}" | true; echo ${{PIPESTATUS[0]}}'
    ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=300, check=True)
    assert (ended.stdout, ended.stderr) == ("0\n", "")
    assert "diagnosis" in json.loads((folder / "launch.json").read_text())["outcome"]


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["--oom_kills", "many", "a"], ["--oom", "1", "a"], ["--events"]])
def test_wrong_arguments(run, arguments):
    ended = run("tools/diagnose.py", *arguments)
    assert ended.returncode == 2 and ended.stderr.startswith("usage: ")


def test_nothing_slow_is_imported(launched, root):
    program = "import sys; from tools.diagnosis.main import main; main(sys.argv[1:]); print(*sys.modules)"
    command = [sys.executable, "-c", program, str(launched(EI0006))]
    ended = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=300, check=True)
    slow = {"jsonschema", "numpy", "mindspore", "rich", "dataclasses", "typing"}
    assert not slow & set(ended.stdout.split())


@pytest.mark.parametrize("after", ["", "[WARNING] ME: something at exit\n"])
def test_what_the_trainer_says_at_its_end_is_the_cause_and_no_unknown_failure(explained, after):
    log = f"step 1\ntrain.py: c.yaml:4: wrong [bad-value]\ntrain.py: c.yaml:9: wrong too [bad-value]\n{after}"
    out, _, codes = explained({"0": (2, log)})
    assert (out, codes) == (
        "rank 0 (device 0) failed first: train.py: c.yaml:4: wrong [bad-value]\n"
        "    train.py: c.yaml:9: wrong too [bad-value]\n",
        [],
    )


def test_what_the_trainer_says_is_not_told_twice_when_it_is_known(explained):
    line = "train.py: dataset_root /no/digits: no such folder in /home/user/job; `make data` makes data/digits"
    out, _, codes = explained({"0": (2, line + "\n")})
    assert (
        codes == ["dataset-missing"]
        and out.count(line) == 1
        and out.startswith(f"rank 0 (device 0) failed first: {line}")
    )


def test_only_the_trainers_own_name_counts(explained):
    out, _, _ = explained({"0": (2, "other.py: it is over\n")})
    assert "has no Python exception and no known failure\n    it ends: other.py: it is over\n" in out


def test_ranks_that_went_on_after_a_failure_and_were_stopped_by_a_limit_are_not_blamed(launched):
    folder = launched({"0": (134, ""), "1": (7, ""), "2": (137, ""), "3": (3, "")}, first="1")
    document = json.loads((folder / "launch.json").read_text())
    assert [member.name for member in run.read_members(document, str(folder))] == ["1", "0", "3"]
    document["outcome"] |= {"stopped_by": "hang", "also_failed": ["2"]}
    assert [member.name for member in run.read_members(document, str(folder))] == ["1", "2"]
