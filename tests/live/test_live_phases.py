"""In which phase a job is, and when it ends: what tools/watch.py says of it at its head."""

import json
import os
import time

import pytest

from tools.live import sentences, snapshot, watcher
from tools.live.estimate import estimate
from tools.live.job import Reader

STARTED = 1769860800.0  # 2026-01-31T12:00:00Z
TRAIN = "rank {rank} of 2: 100 steps an epoch, 4 epochs\n"


@pytest.fixture
def job(tmp_path):
    """job(N): a Job of N ranks on another host."""
    return lambda number=2: Job(tmp_path / "logs" / "run-1", number, "elsewhere")


class Job:
    """A run whose logs a test writes, and somebody who watches it."""

    def __init__(self, folder, number, host):
        self.folder, self.number = folder, number
        folder.mkdir(parents=True)
        rows = [{"rank": rank, "device": rank, "log": f"rank_{rank}.log", "host": host} for rank in range(number)]
        document = {"script": "launch.sh", "started": "2026-01-31T12:00:00Z", "host": "launcher", "ranks": rows}
        (folder / "launch.json").write_text(json.dumps(document))  # of another host, so it seems to run
        self.logs = folder
        self.watcher = watcher.Watcher(Reader(str(folder)))

    def write(self, text, *ranks, second=0.0):
        """The ranks, or all of them, write this at that second of the job."""
        for rank in ranks or range(self.number):
            path = self.logs / f"rank_{rank}.log"
            with open(path, "a", encoding="utf-8") as file:
                file.write(text.format(rank=rank))
            os.utime(path, (STARTED + second, STARTED + second))

    def look(self, second=0.0):
        return self.watcher.look(second, STARTED + second)

    def says(self, second=0.0):
        return sentences.where(self.look(second))


def step(number, epoch=1):
    return f"epoch: {epoch} step: {number}, loss is 0.5\nepoch: {epoch} step: {number}, step time is 50.0 ms\n"


# --- the phase --------------------------------------------------------------------------------------------------------


def test_the_phases_of_a_job_of_train_py(job):
    one = job()
    one.write("")
    assert one.says(3) == "starts: no rank has written a line (3 s)"
    one.write(TRAIN, second=4)
    assert one.says(4) == "compiles before the first step (0 s)"
    assert one.says(64) == "compiles before the first step (60 s)"
    one.write(step(1), second=65)
    assert one.says(65).startswith("trains, epoch 1/4, step 1/100, 0%")
    one.write("......Saving ckpt......\n", second=66)
    assert one.says(69).startswith("saves a checkpoint (3 s), epoch 1/4, step 1/100")
    one.write(step(2), second=70)
    assert one.says(70).startswith("trains, epoch 1/4, step 2/100")


def test_where_some_ranks_are_ahead_their_number_is_said(job):
    one = job(4)
    one.write(
        "[WARNING] D(1,7f,python):2026-01-31-12:00:05.000.000 [x.cc:1] B] Topology build timed out., retry(1/9)\n"
    )
    one.write("BuildCluster] Topology build timed out., retry(1/1200).\n", 0, 1, 2)
    one.write("BuildCluster] Cluster is successfully initialized.\n", 3)
    assert one.says() == "the ranks find one another (3 of 4 ranks, 0 s)"


def test_the_scheduler_tells_what_the_ranks_logs_do_not(job):
    one = job()
    one.write("some words\n")
    assert one.says() == "no rank has printed a number yet"
    scheduler = one.folder / "scheduler.log"
    scheduler.write_text("mindspore_scheduler.py: rank 0 has loaded MindSpore\n")
    assert one.says(1).startswith("the ranks find one another")
    with open(scheduler, "a", encoding="utf-8") as file:
        file.write("mindspore_scheduler.py: all 2 ranks are connected\n")
    assert one.says(2).startswith("prepares data and network")
    one.write(step(1), second=3)
    assert one.says(3).startswith("trains, epoch 1")


def test_nothing_is_said_of_logs_that_only_other_hosts_have(job, tmp_path):
    assert job().look(5).phase is None
    here = Job(tmp_path / "here", 2, os.uname().nodename)
    assert here.says(5) == "starts: no rank has written a line (5 s)"


def test_a_restart_begins_without_a_line(tmp_path):
    one = Job(tmp_path / "here", 2, os.uname().nodename)
    one.write(step(5))
    one.look(1)
    one.watcher._members.seen.update({0, 1})  # they had a process, and have none in the pause
    one.logs = one.folder / "restart_1"
    one.logs.mkdir()
    one.write("")
    assert one.says(2) == "restarts: no rank has written a line"
    one.write(step(1), second=3)
    assert one.says(3).startswith("trains, epoch 1, step 1")


def test_ranks_that_have_ended_while_none_takes_steps(job):
    one = job(4)
    one.write("......Saving ckpt......\n")
    one.watcher.look(0.0, STARTED)
    one.watcher._members.seen.update({0, 1, 2})
    assert one.says(1) == "stops: 3 of 4 ranks have ended"
    one.write(step(1), 3, second=2)
    assert one.says(2).startswith("trains (1 of 4 ranks), epoch 1")


def test_a_job_that_is_asked_to_end_says_so_until_it_has_ended(job):
    """After SIGTERM or before a time limit the ranks save: the header shows why the job ends early."""
    one = job()
    one.write(step(1))
    runs, request = "launch.sh, 2 ranks, runs for 0:01:00", one.folder / "request.json"
    for content, title in (('{"GracefulExit": 1}', f"{runs}, asked to save and end"), ('{"GracefulExit": 0}', runs)):
        request.write_text(content)
        assert sentences.title(one.look(60)) == title
    request.write_text('{"GracefulExit": 1}')
    outcome = {"ended": "2026-01-31T12:02:00Z", "exit": 0, "members": {}}
    launch = one.folder / "launch.json"
    launch.write_text(json.dumps({**json.loads(launch.read_text()), "outcome": outcome}))
    assert sentences.title(one.look(180)) == "launch.sh, 2 ranks, ended with 0 after 0:02:00"


def test_a_rank_that_is_silent_in_its_steps_does_not_hide_that_the_others_have_ended(job):
    one = job(4)
    one.write(step(1), second=1)
    one.look(1)
    one.watcher._members.seen.update({0, 1, 2})
    for second in range(10, 70, 10):
        one.write(step(second), 0, 1, 2, second=second)
        one.look(second)
    assert one.says(70).startswith("stops: 3 of 4 ranks have ended, epoch 1, step 60")


def test_the_first_look_knows_since_when_by_the_times_of_the_lines(job):
    one = job()
    one.write(
        "2026-01-31 20:00:00,000 - mindformers[a.py:1] - INFO - .........Model Compiling, Please Wait a Moment....\n"
        "2026-01-31 20:01:30,000 - mindformers[a.py:1] - INFO - graph 1\n",
        second=90,
    )
    assert one.look(100).phase.seconds == 100


def test_the_first_look_does_not_say_since_when_steps_are_taken_if_nobody_knows(job):
    one = job()
    one.write(step(1) + step(2), second=90)
    assert (one.look(100).phase.name, one.look(101).phase.seconds) == ("steps", None)


def test_a_clock_that_is_wrong_makes_no_negative_time(job):
    one = job()
    one.write(TRAIN, second=5000)
    assert one.look(0).phase.seconds == 0


# --- the end ----------------------------------------------------------------------------------------------------------


def test_steps_and_epochs_that_only_the_first_line_says(job):
    one = job()
    one.write(TRAIN)
    one.write("".join(step(number, epoch=2) for number in range(1, 51)), second=10)
    share, left, ends = estimate(one.look(10))
    assert share == pytest.approx(150 / 400)
    assert left == pytest.approx(250 * 0.05)
    assert ends == pytest.approx(STARTED + 10 + left)


def test_the_time_left_goes_down_while_nobody_writes_and_is_not_negative(job):
    one = job()
    one.write("epoch: 1 step: 5, step time is 45.1 ms, 1419.1 samples/s, ends in 0:00:20\n")
    assert [estimate(one.look(second)).left for second in (0, 15, 21)] == [20, 5, None]
    assert "ends in" not in one.says(21)


def test_an_end_on_another_day_has_its_date(job):
    one = job()
    one.write("epoch: 1 step: 5, step time is 45.1 ms, 1419.1 samples/s, ends in 3 days, 0:00:00\n")
    end = time.strftime("%Y-%m-%d %H:%M", time.localtime(STARTED + 3 * 86400))
    assert one.says().endswith(f"ends in 3 days, 0:00:00, at {end}")


@pytest.mark.parametrize("left", ["999999 days, 0:00:00", "9:99999999999999"])
def test_an_end_that_no_calendar_has_is_none(job, left):
    one = job()
    one.write(f"epoch: 1 step: 5, step time is 45.1 ms, 1419.1 samples/s, ends in {left}\n")
    assert estimate(one.look()).ends is None
    assert ", at " not in one.says()


def test_a_trainer_that_says_nothing_of_its_end(job):
    one = job()
    one.write("step=70 loss=0.25 \n")
    assert estimate(one.look()) == (None, None, None)
    assert one.says() == "trains, step 70"


def test_a_program_gets_the_same(job):
    one = job()
    one.write(TRAIN)
    seen = snapshot.of(one.look(0))
    assert (seen["phase"], seen["phase_seconds"], seen["share"]) == ("compile", 0, None)
    one.write("epoch: 1 step: 5, step time is 45.1 ms, 1419.1 samples/s, ends in 0:10:00\n")
    seen = snapshot.of(one.look(0))
    assert (seen["phase"], seen["left_seconds"], seen["ends_at"]) == ("steps", 600, "2026-01-31T12:10:00Z")
    assert seen["ranks"][0]["phase"] == "steps" and not seen["ranks"][0]["stale"]


# --- whose numbers ----------------------------------------------------------------------------------------------------


def test_the_numbers_at_the_head_are_not_those_of_a_rank_that_is_silent(job):
    one = job(3)
    one.write("epoch: 1 step: 5, loss is 9.0\n")
    one.look(0)
    for second in (20, 40, 60):
        one.write("epoch: 1 step: 50, loss is 1.0\n", 1, second=second)
        view = one.look(second)
    assert {row.rank: (row.state, row.stale) for row in view.rows} == {
        0: ("trains", True),  # most ranks are, so none is called silent
        1: ("trains", False),
        2: ("trains", True),
    }
    assert sentences.numbers(view) == "loss 1"
    assert sentences.where(view) == "trains (1 of 3 ranks), epoch 1, step 50"
