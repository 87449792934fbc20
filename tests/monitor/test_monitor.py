"""The process of --straggler and --metrics: what it sees, names and writes; launches are in monitor.bats."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hccl_tools.common.refusal import Refusal
from tools.launch import monitored
from tools.monitor import living, main
from tools.monitor.formats import EVERY, Foreign, MetricsFile
from tools.monitor.main import Voice
from tools.monitor.monitor import MOST_LINES, Monitor
from tools.progress import lines
from tools.progress.tails import Patterns

RUN = "ascend4p-20260131T120000Z-4711"


class Job:
    """A job whose logs the test writes; `said`: what its process has said, `folder`: that of the run."""

    def __init__(self, above, ranks=4, hosts=None, factor=1.5, file=""):
        self.folder, self.said = above / RUN, []
        self.folder.mkdir()
        self.plan(ranks, hosts)
        self.path = file and str(above / file)
        metrics = MetricsFile(self.path, RUN) if file else None
        patterns = Patterns(lines.load({}))
        self.monitor = Monitor(str(self.folder), f"{RUN}@no-such-host", patterns, self.said.append, factor, metrics)
        self.monitor.begin(0)
        self.step = 0

    def plan(self, ranks, hosts=None):
        rows = [{"rank": rank, "device": rank + 4, "log": f"rank_{rank}.log"} for rank in range(ranks)]
        for row, host in zip(rows, hosts or []):
            row["host"] = host
        document = {"script": "ascend4p.sh", "started": "2026-01-31T12:00:00Z", "host": "node1", "device_target": "CPU"}
        (self.folder / "launch.json").write_text(json.dumps({**document, "ranks": rows}))

    def write(self, rank, text, folder="."):
        (self.folder / folder).mkdir(exist_ok=True)
        with open(self.folder / folder / f"rank_{rank}.log", "a") as file:
            file.write(text)

    def steps(self, times, count=30, line="epoch: 1 step: {step}, step time is {ms} ms\n", folder="."):
        """Each rank does `count` steps of its number of `times`, in ms; then the process looks."""
        self.step += count
        for rank, ms in enumerate(times):
            if ms is not None:
                self.write(rank, line.format(step=self.step, ms=ms), folder)
        self.monitor.look()

    def rows(self):
        return json.loads((self.folder / "stragglers.json").read_text())


@pytest.fixture
def job(tmp_path):
    return Job(tmp_path)


def test_a_slow_rank_is_named_once_when_it_has_been_slow_for_20_steps(job):
    job.steps([25, 25, 25, 25])
    job.steps([25, 25, 45, 25], count=15)
    job.steps([25, 25, 45, 25], count=15)
    assert job.said == []
    job.steps([25, 25, 45, 25], count=15)
    line = "rank 2 (device 6 of node1) takes 1.8 times as long as the median rank for 30 steps"
    line += " (45 ms against 25 ms a step)"
    assert job.said == [line]
    job.steps([25, 25, 90, 25])
    job.monitor.look(ended=0)
    assert job.said == [line]
    (row,) = job.rows()
    assert row == {
        **{"rank": 2, "device": 6, "host": "node1", "attempt": 0, "kind": "step", "factor": 3.6},
        **{"time_ms": 90.0, "median_ms": 25.0, "steps": 60},
    }


def test_a_rank_that_is_slow_only_now_and_then_is_not_named(job):
    for number in range(20):
        job.steps([25, 25, 45 if number % 2 else 25, 25], count=19)
    assert job.said == []


def test_a_rank_that_waits_for_data_holds_up_the_others(job):
    line = "epoch: 1 step: {step}, step time is 45 ms, {ms} ms of it for data\n"
    for _ in range(3):
        job.steps([5, 5, 5, 30], line=line)
    assert job.said == [
        "rank 3 (device 7 of node1) makes each step take 2.2 times as long for 30 steps "
        "(it waits 30 ms for data, the median rank 5 ms)"
    ]


def test_after_a_restart_steps_are_counted_anew_and_nobody_is_named_twice(job):
    for _ in range(3):
        job.steps([25, 25, 45, 25])
    job.monitor.begin(1)
    job.step = 0
    for _ in range(3):
        job.steps([25, 45, 45, 25], folder="restart_1")
    assert [line[:6] for line in job.said] == ["rank 2", "rank 1"]
    assert [(row["rank"], row["attempt"]) for row in job.rows()] == [(2, 0), (1, 1)]


def test_a_rank_that_becomes_slow_late_in_an_attempt_is_not_forgiven_in_the_next(job):
    for _ in range(3):
        job.steps([25, 25, 25, 25])
    job.steps([25, 25, 45, 25], count=10)
    job.monitor.begin(1)
    job.step = 0
    for _ in range(2):
        job.steps([25, 25, 45, 25], folder="restart_1")
    assert len(job.said) == 1


def test_after_the_loss_of_a_host_a_number_is_that_of_another_rank(tmp_path):
    job = Job(tmp_path, hosts=["a", "a", "b", "b"])
    for _ in range(3):
        job.steps([25, 25, 45, 25])
    job.plan(4, ["a", "a", "c", "c"])
    job.monitor.begin(1)
    job.step = 0
    for _ in range(3):
        job.steps([25, 25, 45, 25], folder="restart_1")
    assert [line.split(" takes")[0] for line in job.said] == ["rank 2 (device 6 of b)", "rank 2 (device 6 of c)"]
    assert [(row["host"], row["attempt"]) for row in job.rows()] == [("b", 0), ("c", 1)]


def test_ranks_whose_logs_are_elsewhere_are_told_once_and_the_others_compared(tmp_path):
    job = Job(tmp_path, 6, hosts=["a", "a", "b", "b", "b", "b"])
    job.write(2, "(this rank's log is on b: /home/logs/rank_2.log)\n")
    for _ in range(6):
        job.steps([25, 45])
    assert job.said == [
        "rank 1 (device 5 of a) takes 1.8 times as long as the median rank for 30 steps (45 ms against 25 ms a step)",
        "--straggler does not see ranks 2-5: no log here has their numbers",
    ]


def test_a_rank_without_numbers_is_not_slow(job):
    for _ in range(3):
        job.write(3, "epoch: 1 step: nan, loss is nan\nstep time is\n")
        job.steps([25, 25, "nan"])
    assert job.said == []


def test_a_job_without_step_times_says_so_at_its_end_if_it_ends_well(job):
    job.write(0, "nothing\n")
    job.monitor.look(ended=1)
    assert job.said == []
    job.monitor.look(ended=0)
    assert job.said == ["--straggler had nothing to compare: no two logs have the time of a step; see docs/metrics.md"]


def test_many_slow_ranks_are_20_lines(tmp_path):
    job = Job(tmp_path, 100)
    for _ in range(2):
        job.steps([25] * 51 + [50] * 49)
    assert len(job.said) == MOST_LINES + 1 and job.said[-1].startswith("more ranks are slow")
    assert len(job.rows()) == 49


def test_a_folder_that_vanishes_ends_nothing(job):
    for _ in range(2):
        job.steps([25, 25, 45, 25])
    subprocess.run(["rm", "-r", job.folder], check=True)
    for _ in range(3):
        job.monitor.look()
    job.monitor.begin(1)
    job.monitor.look(ended=1)
    assert [line.split(": ")[-1] for line in job.said[1:]] == ["no such file", "No such file or directory"]


# --- the file


def test_a_full_disk_is_told_once_and_what_was_there_stays(tmp_path, monkeypatch):
    job = Job(tmp_path, 2, file="m.prom")
    job.steps([25, 25])
    old = Path(job.path).read_text()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tools.monitor.formats.os.replace", full)
    job.steps([25, 25])
    job.steps([25, 25])
    assert job.said == [f"--metrics {job.path}: cannot be written: No space left on device; the job goes on"]
    assert Path(job.path).read_text() == old and sorted(os.listdir(tmp_path)) == [RUN, "m.prom"]
    monkeypatch.undo()
    job.steps([25, 25])
    assert Path(job.path).read_text() != old


def test_a_line_that_has_no_room_is_taken_back(tmp_path, monkeypatch):
    file = MetricsFile(str(tmp_path / "m.jsonl"), RUN)
    file.write([], 0.0)
    old = (tmp_path / "m.jsonl").read_text()
    write = os.write
    monkeypatch.setattr("tools.monitor.formats.os.write", lambda to, data: write(to, data[:9]))
    with pytest.raises(OSError, match="no room"):
        file.write([], 1.0)
    assert (tmp_path / "m.jsonl").read_text() == old


def test_a_file_that_becomes_another_program_s_stays_as_it_is(tmp_path):
    job = Job(tmp_path, 2, file="m.prom")
    job.steps([25, 25])
    (tmp_path / "m.prom").write_text("mine\n")
    job.steps([25, 25])
    assert (tmp_path / "m.prom").read_text() == "mine\n" and len(job.said) == 1


def test_two_launches_with_one_file_are_told(tmp_path):
    job = Job(tmp_path, 2, file="m.prom")
    job.steps([25, 25])
    (tmp_path / "m.prom").write_text(f"{monitored.MARK}, run another\n")
    job.steps([25, 25])
    job.steps([25, 25])
    assert job.said == [f"--metrics {job.path}: another launch writes to it, too; each needs its own"]


def test_others_can_read_the_file_whatever_was_left_there(tmp_path):
    (tmp_path / f"m.prom.{RUN}.part").symlink_to("/dev/null")
    mask = os.umask(0o022)
    Job(tmp_path, file="m.prom").steps([25, 25])
    os.umask(mask)
    assert os.stat(tmp_path / "m.prom").st_mode & 0o777 == 0o644
    assert sorted(os.listdir(tmp_path)) == [RUN, "m.prom"]


def test_json_lines_are_added_at_times_and_when_something_happens(tmp_path):
    file = MetricsFile(str(tmp_path / "m.jsonl"), RUN)
    assert file.is_due(0.0)
    file.write([], 0.0)
    assert not file.is_due(EVERY - 1) and file.is_due(EVERY)
    job = Job(tmp_path, 2, file="n.jsonl")
    for _ in range(5):
        job.steps([25, 25])
    job.monitor.failed("1", 7)
    job.monitor.look(happened=True)
    first, second = map(json.loads, Path(job.path).read_text().splitlines())
    assert first["ranks"][0] == {
        **{"rank": 0, "host": "node1", "device": "4", "up": 0, "epoch": 1, "step": 30, "step_seconds": 0.025},
        **{"silence_seconds": 0.0, "slowness_ratio": 1.0},
    }
    assert first["mindspore_launch_metrics"] == 1 and first["running"] == 1 and "last_failure_info" not in first
    assert second["last_failure_info"]["exit_code"] == "7" and second["ranks_step"]["max"] == 150


@pytest.mark.parametrize("name", ["m.prom", "m.jsonl"])
def test_what_may_not_be_replaced_is_refused(tmp_path, name):
    path = tmp_path / name
    file = MetricsFile(str(path), RUN)
    assert monitored.fault_of(str(path)) == ""
    file.write([], 0.0)
    assert monitored.fault_of(str(path)) == ""  # one of ours
    path.write_text("")
    assert monitored.fault_of(str(path)) == ""
    path.write_text("precious\n")
    assert "has no metrics" in monitored.fault_of(str(path))
    with pytest.raises(Foreign):
        file.write([], 1.0)
    path.unlink()
    os.mkfifo(path)
    assert "not a regular file" in monitored.fault_of(str(path))
    with pytest.raises(Foreign):
        file.write([], 1.0)
    assert "not a regular file" in monitored.fault_of(str(tmp_path))
    assert "not a regular file" in monitored.fault_of("/dev/null")
    assert "there is no folder" in monitored.fault_of(str(tmp_path / "none" / name))
    (tmp_path / "link").symlink_to(tmp_path / "none" / name)
    assert "there is no folder" in monitored.fault_of(str(tmp_path / "link"))


@pytest.mark.parametrize(
    "text", ["1", "0", "-2", "nan", "inf", "1e3", "", "two", "1.5x", "1" * 400, "1.0", "١.٥", "1001"]
)
def test_a_factor_that_is_none_is_refused(text):
    with pytest.raises(Refusal, match="--straggler .*a number above 1"):
        monitored.factor(text)


@pytest.mark.parametrize(("text", "number"), [("1.5", 1.5), ("2", 2.0), ("1.05", 1.05), ("3.", 3.0)])
def test_a_factor(text, number):
    assert monitored.factor(text) == number


# --- the processes of ranks


def process(folder, pid, rank, began, job="job@here", state="S"):
    """A process as /proc shows it."""
    (folder / str(pid)).mkdir(exist_ok=True)
    (folder / str(pid) / "environ").write_bytes(f"A=LAUNCH_JOB={job}\0LAUNCH_JOB={job}\0RANK_ID={rank}\0".encode())
    numbers = " ".join(["0"] * 18)
    (folder / str(pid) / "stat").write_text(f"{pid} (a ) b) {state} {numbers} {began} 0 0\n")


def test_the_oldest_process_of_a_rank_is_the_rank(tmp_path):
    process(tmp_path, 12, 0, 200)
    for pid in (11, *range(21, 29)):
        process(tmp_path, pid, 0, 300)  # loaders of rank 0
    process(tmp_path, 13, 1, 200, job="other@here")
    process(tmp_path, 14, 99, 200)
    found = living.Living("job@here", {0: "a", 1: "a"}, str(tmp_path))
    assert found.look(0.0) == {0: True, 1: False}
    subprocess.run(["rm", "-r", tmp_path / "12"], check=True)
    assert found.look(100.0) == {0: False, 1: False}  # its loader still runs
    process(tmp_path, 15, 1, 400)
    assert found.look(1000.0) == {0: False, 1: True}
    process(tmp_path, 15, 1, 400, state="Z")
    assert found.look(1001.0) == {0: False, 1: False}


def test_a_training_that_a_start_script_has_left_is_the_rank(tmp_path):
    process(tmp_path, 12, 0, 200)
    (tmp_path / "12" / "cmdline").write_bytes(b"bash\0start.sh\0")
    found = living.Living("job@here", {0: "a"}, str(tmp_path))
    assert found.look(0.0) == {0: True}
    process(tmp_path, 13, 0, 300)
    (tmp_path / "13" / "cmdline").write_bytes(b"python\0train.py\0")
    subprocess.run(["rm", "-r", tmp_path / "12"], check=True)
    assert found.look(1.0) == {0: True}
    process(tmp_path, 14, 0, 400)
    (tmp_path / "14" / "cmdline").write_bytes(b"python\0train.py\0")  # a loader of it
    subprocess.run(["rm", "-r", tmp_path / "13"], check=True)
    assert found.look(2.0) == {0: False}


def test_whether_ranks_of_other_hosts_run_is_not_known(tmp_path):
    process(tmp_path, 12, 1, 200)
    found = living.Living("job@here", {0: "a", 1: "a", 2: "b"}, str(tmp_path))
    assert found.look(0.0) == {0: False, 1: True}


def test_a_process_number_that_is_used_again_is_another_process(tmp_path):
    process(tmp_path, 12, 0, 200)
    found = living.Living("job@here", {0: "a"}, str(tmp_path))
    assert found.look(0.0) == {0: True}
    process(tmp_path, 12, 0, 999)
    assert found.look(1.0) == {0: False}


def test_a_real_process_is_found():
    environment = {**os.environ, "LAUNCH_JOB": "job@there", "RANK_ID": "3"}
    with subprocess.Popen([sys.executable, "-c", "input()"], env=environment, stdin=subprocess.PIPE) as child:
        assert living.Living("job@there", {3: "a"}).look(0.0) == {3: True}
        child.communicate(b"\n")


# --- the process itself


def test_orders_come_in_pieces_and_end():
    there, here = os.pipe()
    orders = main.Orders(there)
    assert orders.wait(0.0) == []
    os.write(here, b"attempt 0\nfail")
    assert orders.wait(1.0) == [["attempt", "0"]]
    os.write(here, b"ed 3 7\n")
    assert orders.wait(1.0) == [["failed", "3", "7"]]
    os.close(here)
    assert orders.wait(1.0) is None
    os.close(there)


def test_a_terminal_that_takes_nothing_holds_up_nothing():
    there, here = os.pipe()
    os.set_blocking(here, False)
    with pytest.raises(BlockingIOError):
        while True:
            os.write(here, b"x" * 65536)
    os.set_blocking(here, True)
    voice = Voice("a.sh", "", here)
    voice.say("first\x1b[31m")
    while b"first" not in os.read(there, 1 << 20):
        voice.flush()
    voice.say("second")
    assert os.read(there, 1000) == b"a.sh: second\n"
    os.close(there)
    signalled = voice.say("nobody reads")
    assert signalled is None
    os.close(here)
