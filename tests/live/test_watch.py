"""tools/watch.py: what it says about a job, and how it ends."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import json_pages
import pytest
from rich.console import Console

from hccl_tools.common import language
from hccl_tools.common.colours import columns
from tools import watch
from tools.live import screen, sentences, table, watcher
from tools.live.estimate import estimate
from tools.live.job import ENDED, LOST, RUNNING, Reader
from tools.live.members import Members, process_memory
from tools.progress import figures

STARTED = 1769860800.0  # 2026-01-31T12:00:00Z
PLAN = {
    **{"script": "ascend4p.sh", "started": "2026-01-31T12:00:00Z", "host": "elsewhere", "folder": "/home/user"},
    **{"device_target": "CPU", "run_dir": "x", "exports": {}, "scheduler": [], "trainer": ["python", "train.py"]},
}
END = {"ended": "2026-01-31T13:02:03Z", "exit": 0, "first_failure": None, "stopped_by": None, "members": {}}


def line(step, ms=50.0, loss=0.5, **more):
    """What tools/train.py prints about a step."""
    left = ", ends in 0:10:00" if "left" in more else ""
    return (
        f"epoch: 1 step: {step}, loss is {loss}\n"
        f"epoch: 1 step: {step}, step time is {ms} ms, 1.0 ms of it for data, 640.0 samples/s{left}\n"
    )


@pytest.fixture
def run(tmp_path):
    """run(N, outcome, **changes): the folder of a run of N ranks; its launcher is elsewhere, so it seems to run."""

    def make(number=4, outcome=None, **changes):
        folder = tmp_path / "logs" / "ascend4p-20260131T120000Z-4194999"
        folder.mkdir(parents=True, exist_ok=True)
        rows = [{"rank": rank, "device": rank, "log": f"rank_{rank}.log"} for rank in range(number)]
        document = {**PLAN, "ranks": rows, **changes, **({"outcome": outcome} if outcome else {})}
        (folder / "launch.json").write_text(json.dumps(document))
        return folder

    return make


def write(folder, rank, text):
    with open(folder / f"rank_{rank}.log", "ab") as file:
        file.write(text if isinstance(text, bytes) else text.encode())


def view_of(folder, looks=1):
    """What is seen at the last of so many looks, between which every rank makes ten steps."""
    watched = watcher.Watcher(Reader(str(folder)))
    for number in range(looks):
        view = watched.look(now=2.0 * number, date=STARTED + 60 + 2 * number)
    return view


def at(seconds):
    """The time of day, as the screen says it."""
    return time.strftime("%H:%M", time.localtime(seconds))


def states(view):
    return {row.rank: row.state for row in view.rows}


def console(width, height):
    return Console(width=width, height=height, force_terminal=True, legacy_windows=False)


# --- what it sees -----------------------------------------------------------------------------------------------------


def test_a_job_that_trains(run):
    folder = run(4)
    for rank in range(4):
        write(folder, rank, line(20, left=True))
    view = view_of(folder)
    assert states(view) == dict.fromkeys(range(4), "trains")
    assert sentences.title(view) == "ascend4p.sh, 4 ranks, runs for 0:01:00"
    assert sentences.where(view) == f"trains, epoch 1, step 20, 9%, ends in 0:10:00, at {at(STARTED + 660)}"
    assert sentences.numbers(view) == "loss 0.5, step time 50 ms, samples/s 640"
    assert not sentences.trouble(view)


def test_the_slow_rank_comes_first_and_is_named_with_its_device_and_by_how_much(run):
    folder = run(4)
    for rank in range(4):
        write(folder, rank, line(20, ms=80.0 if rank == 2 else 50.0))
    view = view_of(folder)
    assert view.rows[0].rank == 2
    assert view.rows[0].state == "slow"
    sentence = sentences.trouble(view)
    assert sentence == (
        "rank 2 (device 2 of elsewhere) takes 1.6 times as long as the median rank (80 ms against 50 ms a step)"
    )


@pytest.mark.parametrize(
    ("text", "state"),
    [
        (line(20, loss="nan"), "loss?"),
        (line(20, loss="-inf"), "loss?"),
        ("some words\n", "starts"),
        (b"\x00\xff\x1b]0;x\x07\n", "starts"),
        ("", "starts"),
        (None, "no log"),
    ],
)
def test_the_state_of_a_rank(run, text, state):
    folder = run(4)
    for rank in range(3):
        write(folder, rank, line(20))
    if text is not None:
        write(folder, 3, text)
    assert states(view_of(folder)) == {0: "trains", 1: "trains", 2: "trains", 3: state}


def test_a_rank_that_writes_nothing_while_the_others_do_is_silent(run):
    folder = run(4)
    watched = watcher.Watcher(Reader(str(folder)))
    for number in range(4):
        for rank in range(4):
            if rank != 1 or number == 0:
                write(folder, rank, line(20 + number))
        view = watched.look(now=20.0 * number, date=STARTED)
    assert states(view)[1] == "silent"
    assert sentences.trouble(view) == "rank 1 (device 1 of elsewhere) has written nothing for 60 s"


def test_a_job_in_which_nobody_writes_has_no_silent_rank_but_the_silence_is_named(run):
    folder = run(2)
    for rank in range(2):
        write(folder, rank, line(20))
    watched = watcher.Watcher(Reader(str(folder)))
    watched.look(now=0.0, date=STARTED)
    view = watched.look(now=100.0, date=STARTED)
    assert set(states(view).values()) == {"trains"}
    assert sentences.trouble(view) == "no rank has written to its log for 0:01:40"


def test_a_loss_that_is_far_from_the_others_is_named(run):
    folder = run(4)
    for rank in range(4):
        write(folder, rank, "".join(line(step, loss=2.0 if rank == 3 else 0.5 + rank / 100) for step in range(20)))
    assert states(view_of(folder)) == {0: "trains", 1: "trains", 2: "trains", 3: "drifts"}


def test_a_slow_rank_among_slow_ones_is_compared_with_those_of_its_host_too(run):
    rows = [{"rank": rank, "device": rank, "log": f"rank_{rank}.log", "host": "aaab"[rank // 2]} for rank in range(8)]
    folder = run(8, ranks=rows)
    for rank in range(8):
        write(folder, rank, line(20, ms=50.0 if rank < 6 else 100.0 + rank))
    assert sentences.trouble(view_of(folder)) == (
        "rank 7 (device 7 of b) takes 2.1 times as long as the median rank (107 ms against 50 ms a step); "
        "1.0 times the median of its host; "
        "rank 6 (device 6 of b) takes 2.1 times as long as the median rank (106 ms against 50 ms a step); "
        "1.0 times the median of its host"
    )


@pytest.mark.parametrize(
    ("ahead", "says"), [(3600, "is 1:00:00 ahead of ours"), (-600, "is 0:10:00 behind ours"), (5, ""), (-60, "")]
)
def test_a_clock_that_differs_is_named(run, ahead, says):
    folder, now = run(2), time.time()
    watched = watcher.Watcher(Reader(str(folder)))
    for number in range(2):
        for rank in range(2):
            write(folder, rank, line(20 + number))
            os.utime(folder / f"rank_{rank}.log", (now + ahead, now + ahead + number))
        view = watched.look(now=2.0 * number, date=now + number)
    assert sentences.clocks(view) == (f"the clock of elsewhere {says}" if says else "")
    shown = [text.plain for text in screen.frame(view, screen.Picture(), console(80, 24))]
    assert (f"the clock of elsewhere {says}" in shown) == bool(says)


@pytest.mark.parametrize("seed", range(5))
def test_losses_near_nothing_that_jump_are_no_drift(run, seed):
    """A net that knows its samples by heart: its losses are 1e-7 here and 1e-3 there."""
    folder, numbers = run(8), random.Random(seed)
    for rank in range(8):
        losses = [numbers.lognormvariate(-13, 3) for _ in range(20)]
        write(folder, rank, "".join(line(step, loss=loss) for step, loss in enumerate(losses)))
    assert set(states(view_of(folder)).values()) == {"trains"}


@pytest.mark.parametrize("loss", [1e308, -1e308])
def test_losses_at_the_end_of_all_numbers(run, loss):
    folder = run(3)
    for rank in range(3):
        write(folder, rank, "".join(line(step, loss=loss * (-1) ** step) for step in range(20)))
    view = view_of(folder)
    assert set(states(view).values()) == {"trains"}
    assert set(figures.curve(view.lead.losses, 40)) == {"▁", "█"}


def test_the_logs_of_the_newest_attempt_are_read(run):
    folder = run(1)
    write(folder, 0, line(500))
    (folder / "restart_2").mkdir()
    (folder / "restart_10").mkdir()
    (folder / "restart_10" / "rank_0.log").write_text(line(20))
    view = view_of(folder)
    assert view.rows[0].progress.step == 20
    assert "restart 10" in sentences.title(view)


def test_the_end_of_a_job_by_epochs_and_steps(run):
    folder = run(1)
    write(folder, 0, "epoch: [2/4] step: [50/100], loss: 1, lr: 0.1, per step time: 200 ms, fps per card: 9 img/s\n")
    share, left, ends = estimate(view_of(folder))
    assert share == pytest.approx(150 / 400)
    assert left == pytest.approx(250 * 0.2)
    assert ends == STARTED + 60 + left


@pytest.mark.parametrize(
    ("seconds", "text"), [(3723, "1:02:03"), (1e300, "1000000 days, 0:00:00"), (float("nan"), "?")]
)
def test_a_time_that_a_trainer_prints_may_be_any_number(seconds, text):
    assert figures.clock(seconds) == text


def test_an_ended_job_names_who_failed_but_not_those_that_the_launcher_stopped(run):
    members = {
        "0": {"status": 143},
        "1": {"status": 3},
        "2": {"status": 137},
        "scheduler": {"status": 0},
        "9" * 5000: {},
    }
    folder = run(3, {**END, "exit": 3, "first_failure": "1", "members": members})
    view = view_of(folder)
    assert states(view) == {1: "failed", 0: "ended", 2: "ended"}
    assert view.job.state == ENDED
    assert sentences.title(view) == "ascend4p.sh, 3 ranks, ended with 3 after 1:02:03"


def test_a_launcher_that_was_killed(run):
    view = view_of(run(1, host=os.uname().nodename))
    assert view.job.state == LOST
    assert sentences.title(view) == "ascend4p.sh, 1 rank, its launcher was killed"


def test_a_launch_json_that_cannot_be_read_for_a_moment_stays_as_it_was(run):
    folder = run(2)
    reader = Reader(str(folder))
    assert len(reader.read().places) == 2
    (folder / "launch.json").write_text('{"script": "asc')
    assert len(reader.read().places) == 2
    run(2, END)
    assert reader.read().state == ENDED


@pytest.mark.parametrize(
    "changes",
    [
        {"ranks": None},
        {"ranks": [1, {"rank": True, "log": "x"}, {"rank": 0, "log": "../../secret"}, {"rank": 1}]},
        {"script": 5, "started": [], "device_target": {}, "host": None},
        {"outcome": {"exit": "x", "ended": 3, "members": [], "logs": "/etc"}},
    ],
)
def test_a_launch_json_of_another_form_does_no_harm(run, changes):
    view = view_of(run(1, **changes))
    assert sentences.title(view)
    assert not [row for row in view.rows if "secret" in row.place.log]


def test_a_date_that_was_set_back_makes_no_negative_time(run):
    view = watcher.Watcher(Reader(str(run(1)))).look(now=0.0, date=STARTED - 1e6)
    assert view.seconds == 0


def test_in_chinese_the_table_is_as_wide_as_its_head(run, monkeypatch):
    monkeypatch.setattr(language, "_catalogue", language._catalogue.__wrapped__)
    monkeypatch.setenv("LAUNCH_LANG", "zh")
    folder = run(2)
    for rank in range(2):
        write(folder, rank, line(20, ms=80.0 if rank else 50.0))
    view = view_of(folder)
    lines = table.body(view.rows, 5)
    shown = table.fitting(lines, 200)
    assert table.head(shown).split()[:4] == ["rank", "状态", "最近输出", "步"]
    assert table.text(lines[0], shown).split()[:2] == ["1", "慢"]
    assert columns(table.text(lines[0], shown[:5])) == columns(table.head(shown[:5]))
    assert sentences.title(view).startswith("ascend4p.sh，2 个 rank，")


# --- the processes ----------------------------------------------------------------------------------------------------


def test_the_memory_of_ranks_comes_from_processes_with_the_mark_of_the_job(run):
    folder = run(2, host=os.uname().nodename)
    job = Reader(str(folder)).read()
    mark = {**os.environ, "LAUNCH_JOB": f"{folder.name}@{os.uname().nodename}", "RANK_ID": "1"}
    child = subprocess.Popen([sys.executable, "-c", "print(flush=True); input()"], env=mark, stdin=-1, stdout=-1)
    try:
        child.stdout.readline()
        members = Members()
        assert members.look(job, now=0.0).keys() == {1}
    finally:
        child.communicate(b"\n")
    assert members.look(job, now=1.0) == {}
    assert members.seen == {1}


def test_a_rank_that_sigstop_holds(run):
    folder = run(2, host=os.uname().nodename)
    mark = {**os.environ, "LAUNCH_JOB": f"{folder.name}@{os.uname().nodename}", "RANK_ID": "1"}
    child = subprocess.Popen([sys.executable, "-c", "print(flush=True); input()"], env=mark, stdin=-1, stdout=-1)
    try:
        child.stdout.readline()
        members = Members()
        members.look(Reader(str(folder)).read(), now=0.0)
        assert members.held() == set()
        child.send_signal(signal.SIGSTOP)
        os.waitpid(child.pid, os.WUNTRACED)
        assert members.held() == {1}
    finally:
        child.send_signal(signal.SIGCONT)
        child.communicate(b"\n")


def test_the_memory_on_npus():
    text = """
+---------------------------+---------------+----------------------------------------------------+
| NPU     Chip              | Process id    | Process name             | Process memory(MB)      |
+===========================+===============+====================================================+
| 0       0                 | 4321          | python                   | 2048                    |
| 1       0                 | 4322          | python                   | 1024                    |
| No running processes found in NPU 2                                                            |
"""
    assert process_memory(text) == {4321: 2048 << 20, 4322: 1024 << 20}
    assert process_memory("no table") == {}


# --- how it looks -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("width", [1, 20, 80, 200])
@pytest.mark.parametrize("height", [1, 6, 24, 50])
def test_a_frame_fits_the_terminal(run, width, height):
    folder = run(64)
    for rank in range(64):
        write(folder, rank, line(20, ms=500.0 if rank == 40 else 50.0))
    lines = screen.frame(view_of(folder), screen.Picture(), console(width, height), ["launcher: 1", "launcher: 2"])
    assert len(lines) <= height
    assert max(text.cell_len for text in lines) <= width


def test_like_ranks_are_one_line_where_there_is_no_room_for_all(run):
    folder = run(64)
    for rank in range(64):
        write(folder, rank, line(20, ms=500.0 if rank == 40 else 50.0))
    first, second = table.body(view_of(folder).rows, 8)
    assert (first.rank, first.cells[0]) == (40, "40")
    assert second.cells[:2] == ("0-39,41-63", "trains")
    assert second.rank is None


def test_only_as_many_lines_as_there_is_room_even_if_all_ranks_have_problems(run):
    folder = run(64)
    for rank in range(64):
        write(folder, rank, line(20, loss="nan"))
    lines = table.body(view_of(folder).rows, 8)
    assert len(lines) <= 8
    assert {rank for each in lines for rank in [each.rank] if rank is not None} == set(range(7))


def test_columns_that_say_nothing_are_left_out(run):
    folder = run(1)
    write(folder, 0, "step=70 loss=0.25 \n")
    lines = table.body(view_of(folder).rows, 8)
    names = [table.COLUMNS[number].head for number in table.fitting(lines, 200)]
    assert names == ["rank", "state", "last line", "step", "loss", "host"]


def test_text_of_others_does_not_command_the_terminal(run):
    evil = "\x1b]0;x\x07\x1b[2J"
    folder = run(1, script=evil, host=evil)
    write(folder, 0, f"{evil}\n")
    view = view_of(folder)
    frames = [*screen.frame(view, screen.Picture(), console(200, 20), [evil]), *screen.log_frame(evil, [evil], 99, 9)]
    assert not [text for text in frames if "\x1b" in text.plain or "\x07" in text.plain]


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture
def said(capsys):
    """said(WORD...): (exit status, stdout, stderr) of the command."""

    def command(*words):
        try:
            status = watch.main(list(map(str, words)))
        except SystemExit as end:
            status = end.code
        out, err = capsys.readouterr()
        return status, out, err

    return command


def test_it_ends_with_the_exit_code_of_the_job(run, said):
    status, out, err = said(run(2, {**END, "exit": 7, "first_failure": "1", "members": {"1": {"status": 7}}}))
    assert status == 7
    assert "failed 7" in out
    assert "diagnose.py" in err


def test_it_ends_with_1_if_the_launcher_was_killed(run, said):
    status, _, err = said(run(1, host=os.uname().nodename))
    assert status == 1
    assert "wrote no outcome" in err


def test_once_prints_the_table_and_does_not_wait(run, said):
    folder = run(2)
    write(folder, 0, line(20))
    status, out, _ = said("--once", folder)
    assert status == 0
    assert view_of(folder).job.state == RUNNING
    assert "rank" in out and "trains" in out


def test_a_run_that_is_not_there(said, tmp_path):
    status, out, err = said(tmp_path / "nix")
    assert (status, out) == (2, "")
    assert err == f"watch.py: {tmp_path}/nix: no such folder; name the folder of a run, such as logs/latest\n"
    assert "has no launch.json" in said(tmp_path)[2]


def test_a_half_written_launch_json_is_named(run, said):
    folder = run(1)
    (folder / "launch.json").write_text('{"script": "asc')
    status, _, err = said(folder)
    assert status == 2
    assert "launch.json: is not JSON" in err


@pytest.mark.parametrize("every", ["0", "-1", "x", "1.5"])
def test_a_wrong_time_is_refused(run, said, every):
    status, _, err = said("--every", every, run(1))
    assert status == 2
    assert "--every" in err


def test_a_wrong_table_of_lines_is_refused(run, said, tmp_path, monkeypatch):
    (tmp_path / "mine.yaml").write_text("progress: 5\n")
    monkeypatch.setenv("LAUNCH_PROGRESS", str(tmp_path / "mine.yaml"))
    assert said(run(1))[0] == 2


# --- for a program ----------------------------------------------------------------------------------------------------


def test_json_is_one_snapshot_of_a_job_that_runs(run, capsys):
    folder = run(4)
    for rank in (0, 1, 2):
        write(folder, rank, line(10, loss="nan" if rank == 2 else 0.5))
    for words in (["--json"], ["--once", "--json"], ["--format", "json"]):
        assert watch.main([str(folder), *words]) == 0
        said = capsys.readouterr()
        seen = json.loads(said.out)
        assert said.err == ""
        json_pages.check("watch.py", seen)
        assert (seen["folder"], seen["state"], seen["exit"], seen["restarts"]) == (str(folder), "running", None, 0)
        assert (seen["started"], seen["hosts"], seen["problems"]) == ("2026-01-31T12:00:00Z", 1, [2])
        assert seen["asked_to_end"] is False
        assert [row["state"] for row in seen["ranks"]] == ["trains", "trains", "loss?", "no log"]
        assert seen["ranks"][0]["progress"]["step"] == 10 and seen["ranks"][2]["progress"]["loss"] == "nan"
        assert (seen["ranks"][0]["log"], seen["ranks"][0]["host"]) == (f"{folder}/rank_0.log", "elsewhere")


def test_json_of_a_job_that_has_ended_has_its_exit_codes(run, capsys):
    members = {"0": {"status": 0}, "1": {"status": 3}}
    folder = run(2, {**END, "exit": 3, "first_failure": 1, "members": members})
    assert watch.main([str(folder), "--json"]) == 0
    seen = json.loads(capsys.readouterr().out)
    assert (seen["state"], seen["exit"], seen["seconds"], seen["problems"]) == ("ended", 3, 3723.0, [1])
    assert [(row["state"], row["exit"]) for row in seen["ranks"]] == [("ended", 0), ("failed", 3)]
