"""tools/runs.py: what became of the runs in a folder of logs, and which can go."""

import io
import json
import os

import json_pages
import pytest

from hccl_tools.common import language
from hccl_tools.common.colours import columns
from tools import runs
from tools.history import listing, table

PLAN = {
    **{"script": "ascend2p.sh", "started": "2026-01-31T12:00:00Z", "host": "elsewhere", "folder": "/home/user"},
    **{"device_target": "CPU", "run_dir": "x", "exports": {}, "scheduler": []},
    "trainer": ["python", "-u", "tools/train.py", "--config", "configs/a.yaml"],
    "ranks": [{"rank": rank, "device": rank, "log": f"rank_{rank}.log"} for rank in range(2)],
}
END = {"ended": "2026-01-31T13:02:03Z", "exit": 0, "first_failure": None, "stopped_by": None, "members": {}}
SAVED = {"seconds": 0.8, "epoch": 3, "step": 5, "saved": [0, 1], "not_saved": []}
LOG = "epoch: 1 step: 2, loss is 0.25\nepoch: 1, accuracy on held-out data: 97.21%\n"


@pytest.fixture
def logs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs").mkdir()
    return tmp_path / "logs"


@pytest.fixture
def add(logs):
    """add(number, outcome, log, **changes): a run of ours; the greater the number, the newer."""

    def make(number, outcome=END, log=LOG, **changes):
        folder = logs / f"ascend2p-202601{number:02}T120000Z-4194999"
        folder.mkdir()
        document = {**PLAN, **changes, **({"outcome": outcome} if outcome else {})}
        (folder / "launch.json").write_text(json.dumps(document))
        if log is not None:
            (folder / "rank_0.log").write_bytes(log if isinstance(log, bytes) else log.encode())
        return folder

    return make


@pytest.fixture
def said(capsys):
    """said(WORD...): (exit status, stdout, stderr) of the command."""

    def run(*words):
        try:
            status = runs.main(list(words))
        except SystemExit as end:
            status = end.code
        out, err = capsys.readouterr()
        return status, out, err

    return run


def test_a_run_is_a_line_and_the_newest_comes_first(add, said):
    add(1)
    failed = {**END, "exit": 3, "first_failure": "1", "diagnosis": {"exception": None, "matches": [{"cause": "why"}]}}
    add(2, failed, log="")
    status, out, err = said()
    assert (status, err) == (0, "")
    assert [" ".join(line.split()) for line in out.splitlines()] == [
        "run ranks took exit loss measured what ran cause",
        "ascend2p-20260102T120000Z-4194999 2 1:02:03 3 configs/a.yaml why",
        "ascend2p-20260101T120000Z-4194999 2 1:02:03 0 0.25 accuracy 97.21% configs/a.yaml",
    ]
    assert said("--failed")[1].count("ascend2p") == 1


def test_json_has_all_fields_and_no_nan(add, said):
    add(1, log="epoch: 1 step: 2, loss is nan\n")
    (run,) = json.loads(said("--json")[1], parse_constant=pytest.fail)
    assert run["progress"] == {"epoch": 1, "step": 2, "loss": "nan"}
    assert run == {
        **{"folder": "logs/ascend2p-20260101T120000Z-4194999", "script": "ascend2p.sh", "target": "CPU", "ranks": 2},
        **{"program": "configs/a.yaml", "hosts": 1, "started": "2026-01-31T12:00:00Z", "seconds": 3723, "exit": 0},
        **{"state": "ended", "restarts": 0, "cause": None, "progress": run["progress"]},
        "attempts": [],
    }


@pytest.mark.parametrize(
    ("outcome", "cause"),
    [
        ({"first_failure": "1"}, "rank 1 failed first"),
        ({"first_failure": "scheduler"}, "scheduler failed first"),
        ({"stopped_by": "timeout"}, "stopped by timeout"),
        ({"stopped_by": "SIGTERM", "asked": SAVED}, "asked to end (SIGTERM) at step 5 of epoch 3, saved"),
        ({"stopped_by": "SIGTERM", "asked": {**SAVED, "step": None}}, "asked to end (SIGTERM); all ranks ended with 0"),
        ({"stopped_by": "x", "asked": {**SAVED, "not_saved": [1, 3]}}, "asked to end (x); ranks 1,3 did not save"),
        ({"stopped_by": "x", "asked": {**SAVED, "saved": []}}, "stopped by x"),
        ({"stopped_by": "x", "asked": {**SAVED, "saved": "all", "epoch": [], "step": -1}}, "stopped by x"),
        ({"stopped_by": "x", "asked": [1]}, "stopped by x"),
        ({"lost_host": "n1", "first_failure": "1"}, "the host n1 was lost"),
        ({"diagnosis": {"exception": {"type": "ValueError", "message": "no"}, "matches": []}}, "ValueError: no"),
        ({"diagnosis": {"root": {"sentence": "rank 9 never came"}, "matches": [{"cause": "x"}]}}, "rank 9 never came"),
        ({"diagnosis": {"exception": None, "matches": [], "faults": [{"cause": "ECC"}]}}, "ECC"),
    ],
)
def test_the_cause_is_the_best_that_is_known(add, outcome, cause):
    assert listing.read(str(add(1, {**END, "exit": 1, **outcome})), []).cause == cause


def test_a_restarted_run_says_how_far_each_attempt_came_and_how_many_were_in_vain(add, said):
    first = {**END, "exit": 1, "first_failure": "1", "progress": {"steps": 5, "reached": 5, "counted": False}}
    second = {**first, "progress": {"steps": 0, "counted": True, "error": "ValueError: no"}}
    add(1, {**second, "attempts": [first, second]})
    assert said()[1].splitlines()[1].endswith("  rank 1 failed first; 2 restarts, 2 without progress")
    (run,) = json.loads(said("--json")[1])
    one = {"steps": 0, "reached": None, "counted": True, "cause": "ValueError: no"}
    assert run["attempts"] == [{"steps": 5, "reached": 5, "counted": False, "cause": "rank 1 failed first"}, one, one]


@pytest.mark.parametrize("odd", [7, [], {"steps": "x", "counted": 1, "reached": True, "error": []}])
def test_what_others_write_as_progress_is_no_traceback(add, said, odd):
    add(1, {**END, "progress": odd})
    (run,) = json.loads(said("--json")[1])
    assert all(value is None for one in run["attempts"] for value in one.values())


def test_a_program_without_a_config_has_its_name(add):
    assert listing.read(str(add(1, trainer=["python", "-u", "net.py", "--epochs", "3"])), []).program == "net.py"
    assert listing.read(str(add(2, trainer=["./rank"])), []).program == "./rank"


def test_a_run_without_an_outcome_runs_or_was_killed(add, said, logs, monkeypatch):
    host = os.uname().nodename
    add(1, None, host=host)  # its process, the greatest there can be, is not there
    add(2, None, host="elsewhere")
    name = f"test_runs-20260103T120000Z-{os.getpid()}"
    add(3, None, host=host, script="pytest").rename(logs / name)
    monkeypatch.setattr(listing.runs, "process_of", lambda folder, _: os.getpid() if name in folder else None)
    states = {line.split()[0]: line.split() for line in said()[1].splitlines()}
    assert "killed" in states["ascend2p-20260101T120000Z-4194999"]
    assert "runs" in states["ascend2p-20260102T120000Z-4194999"]  # for all that is known here
    assert "runs" in states[name]


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"outcome": 5, "ranks": 7, "trainer": {}}', '{"outcome": {"exit": "x", "attempts": 1}}', "\xff"],
)
def test_a_damaged_launch_json_is_a_run_all_the_same(add, said, text):
    (add(1) / "launch.json").write_bytes(text.encode("latin-1"))
    add(2)
    status, out, _ = said()
    assert status == 0 and len(out.splitlines()) == 3


def test_text_from_files_cannot_command_the_terminal(add, said):
    add(
        1,
        {**END, "exit": 1, "stopped_by": "\x1b[2J"},
        log=b"\x1b[31mepoch: 1 step: 1, loss is 1\x1b[0m\n\xff\x00",
        trainer=["a\nb"],
    )
    out = said()[1]
    assert "\x1b" not in out and len(out.splitlines()) == 2 and " 1 " in out


def test_what_is_no_run_is_no_line(logs, add, said):
    add(1)
    (logs / "ascend2p-20260102T120000Z-7").mkdir()  # ended before launch.json
    (logs / "mine").mkdir()
    (logs / "ascend2p-20260109T120000Z-8").symlink_to(add(3))
    assert said()[1].count("\n") == 3


def test_a_folder_without_runs_and_no_folder(logs, said):
    assert said() == (0, "", "runs.py: no run in logs\n")
    assert said("--logs", "none") == (
        2,
        "",
        "runs.py: none: no such folder; name the folder of the runs, such as logs\n",
    )
    assert said("--logs", __file__)[0] == 2


def test_a_line_is_as_long_as_the_terminal(add):
    run = listing.read(str(add(1, {**END, "exit": 1, "stopped_by": "x" * 500})), [])
    assert all(len(line) <= 20 for line in table.rows([run], 20))
    assert max(map(len, table.rows([run], None))) > 500


# --- clean ---


def test_clean_removes_the_old_ones_after_yes(add, said, logs, monkeypatch):
    folders = [add(number) for number in range(1, 5)]
    (folders[0] / "ckpt").mkdir()
    monkeypatch.setattr("sys.stdin", Terminal("no\n"))
    status, out, err = said("clean", "--keep", "2")
    assert status == 0 and out.splitlines()[1].endswith(" bytes, with checkpoints") and "Remove these 2 runs, " in err
    assert all(folder.exists() for folder in folders) and err.endswith("runs.py: nothing was removed\n")
    monkeypatch.setattr("sys.stdin", Terminal("yes\n"))
    assert said("clean", "--keep", "2")[0] == 0
    assert [folder.exists() for folder in folders] == [False, False, True, True]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_without_a_terminal_nothing_is_removed_without_yes(add, said, monkeypatch):
    folder = add(1)
    monkeypatch.setattr("sys.stdin", io.StringIO("yes\n"))
    status, _, err = said("clean", "--keep", "0")
    assert (status, err) == (2, "runs.py: nothing was removed: there is no terminal to ask for a yes; add --yes\n")
    assert folder.exists()
    assert said("clean", "--keep", "0", "--yes")[2] == "runs.py: removed: 1 run\n"
    assert not folder.exists()
    assert said("clean", "--keep", "0", "--yes")[2] == "runs.py: nothing to remove\n"


def test_json_of_runs_and_of_those_that_could_go(add, said):
    add(1, {**END, "progress": {"steps": 2, "reached": 2, "counted": False}})
    status, out, err = said("--json")
    json_pages.check("runs.py", json.loads(out))
    assert (status, err, json.loads(out)[0]["progress"]["loss"]) == (0, "", 0.25)
    assert said("--json", "--logs", "logs") == said("--log-dir=logs", "--format=json") == (0, out, "")
    folder = add(2)
    add(3)
    status, out, err = said("clean", "--keep", "1", "--json")
    rows = json.loads(out)
    assert (status, [row["removed"] for row in rows]) == (2, [False, False]) and "add --yes" in err
    status, out, _ = said("clean", "--keep", "2", "--yes", "--json")
    assert (status, [(row["removed"], row["bytes"] > 0) for row in json.loads(out)]) == (0, [(True, True)])
    json_pages.check("runs.py clean", json.loads(out))
    assert said("clean", "--keep", "2", "--yes", "--json")[:2] == (0, "[]\n") and folder.exists()


def test_what_runs_and_the_latest_stay(add, said, logs):
    latest, runs_on, old = add(1), add(2, None), add(3)
    (logs / "latest").symlink_to(latest.name)
    assert said("clean", "--keep", "0", "--yes")[0] == 0
    assert latest.exists() and runs_on.exists() and not old.exists()


def test_a_run_that_cannot_be_removed_is_told(add, said, monkeypatch):
    add(1)

    def fails(path):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("shutil.rmtree", fails)
    status, _, err = said("clean", "--keep", "0", "--yes")
    assert status == 1 and "cannot be removed: Permission denied" in err


@pytest.mark.parametrize(
    "words", [["clean"], ["clean", "--keep", "-1"], ["clean", "--keep", "x"], ["--keep", "1"], ["--yes"]]
)
def test_options_that_do_not_fit_are_refused(logs, said, words):
    assert said(*words)[0] == 2


def test_a_host_that_is_no_text_is_a_host(add):
    ranks = [{"rank": 0, "device": 0, "log": "rank_0.log", "host": ["n1"]}]
    assert listing.read(str(add(1, ranks=ranks)), []).hosts == 1


def test_no_failed_run_is_not_no_run(add, said):
    add(1)
    assert said("--failed") == (0, "", "runs.py: no run failed (1 run in logs)\n")


def test_in_chinese_the_columns_stay_under_their_heads(add, said, monkeypatch):
    monkeypatch.setattr(language, "_catalogue", language._catalogue.__wrapped__)
    monkeypatch.setenv("LAUNCH_LANG", "zh")
    known = {"code": "module-not-found", "cause": "in English"}
    add(1, {**END, "exit": 3, "diagnosis": {"exception": None, "matches": [known]}})
    head, row = said()[1].splitlines()
    assert head.split() == ["运行", "rank", "用时", "结束", "损失", "测得", "运行的程序", "原因"]
    assert "训练脚本导入的 Python 包" in row and "in English" not in row
    assert columns(head[: head.index("结束")]) == row.index(" 3 ") + 1
