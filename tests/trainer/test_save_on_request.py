"""A job that is asked to end saves on all ranks after the same step, and goes on as if nobody had asked.

SAVE_REQUESTS in the environment says at how many random steps (default: 1; each takes half a minute).  For each the
test prints the step, and the seconds from the signal to the last file.
"""

import json
import os
import random
import re
import signal
import time

import pytest
import ranks
from suite.needs import needs_packages

pytestmark = [needs_packages("mindspore", "sklearn"), pytest.mark.thorough, pytest.mark.trains]
EPOCHS, SAMPLES, BATCH = 20, 160, 8  # 10 steps an epoch for each of two ranks
STEPS = 10
DEADLINE = 240
ASKS = ranks.PROJECT / "tests" / "fixtures" / "trainers" / "asks_to_end.py"
LINE = re.compile(r"^epoch: (\d+) step: (\d+), loss is (\S+)$", re.MULTILINE)


def words(data, epochs=EPOCHS):
    more = {"scheduler__num_epochs": epochs, "train__loader__batch_size": BATCH, "scheduler__scheduler": "cosine_decay"}
    found = ranks.settings(data, "", train__loader__shuffle=True, **more)
    return [word for word in found if not word.startswith("train.ckpt_save_dir")]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """(config, data, the loss of each step, the last weights of both ranks)."""
    folder = tmp_path_factory.mktemp("undisturbed")
    config, data = ranks.config_without_eval("mnist/lenet5_digits.yaml", folder), ranks.digits(folder / "data", SAMPLES)
    ranks.train(folder, 2, config, words(data))
    return config, data, losses(folder), weights(folder)


def losses(folder):
    """{(epoch, step): loss as text} of each rank of the latest run."""
    logs = [(folder / "logs" / "latest" / f"rank_{rank}.log").read_text() for rank in (0, 1)]
    return [{(int(epoch), int(step)): loss for epoch, step, loss in LINE.findall(log)} for log in logs]


def weights(folder):
    return [ranks.weights(folder / "logs" / "latest" / "ckpt", rank) for rank in (0, 1)]


def wait_for(condition, job, what):
    end = time.monotonic() + DEADLINE
    while not condition():
        assert job.poll() is None, f"the job has ended before {what}"
        assert time.monotonic() < end, what
        time.sleep(0.005)


def asked_at(folder, config, data, epoch, step, number):
    """Runs a job that gets the signal once rank 0 has done that step; returns (seconds to the last file, outcome)."""
    asks = {"STUB_ASKS_AFTER": f"epoch: {epoch} step: {step}, loss", "STUB_ASKS_BY": str(int(number))}
    file = folder / "launcher.pid"
    options = ["--grace", "60", "--console", "none"]
    job = ranks.start(folder, 2, config, words(data), options, ASKS, STUB_ASKS_FILE=str(file), **asks)
    file.write_text(str(job.pid))
    assert job.wait(timeout=DEADLINE) == -number, (folder / "output.txt").read_text()
    labels = [path.stat().st_mtime for path in (folder / "logs" / "latest" / "ckpt").glob("rank_*/*.json")]
    outcome = json.loads((folder / "logs" / "latest" / "launch.json").read_text())["outcome"]
    return max(labels) - file.stat().st_mtime, outcome


@pytest.mark.parametrize("moment", range(int(os.environ.get("SAVE_REQUESTS", "1"))))
def test_a_job_that_is_asked_to_end_goes_on_as_if_nobody_had_asked(tmp_path, undisturbed, moment):
    config, data, wanted, last = undisturbed
    draw = random.Random(moment)
    epoch, step = draw.randint(1, EPOCHS - 4), draw.randint(1, STEPS)
    number = signal.SIGUSR1 if moment % 2 else signal.SIGTERM
    seconds, outcome = asked_at(tmp_path, config, data, epoch, step, number)
    asked = outcome["asked"]
    print(f"moment {moment}: {signal.Signals(number).name} after step {step} of epoch {epoch}, saved after step "
          f"{asked['step']} of epoch {asked['epoch']}, {seconds:.2f} s to the last file")  # fmt: skip
    assert asked["saved"] == [0, 1] and asked["not_saved"] == [] and outcome["first_failure"] is None
    assert outcome["stopped_by"] == signal.Signals(number).name and outcome["exit"] == 128 + number
    assert [outcome["members"][rank]["status"] for rank in "01"] == [0, 0]
    before = losses(tmp_path)
    ends = [max(found) for found in before]
    assert ends[0] == ends[1] == (asked["epoch"], asked["step"])
    run = (tmp_path / "logs" / "latest").resolve()
    options = [f"--resume={run}", "--console", "none"]
    job = ranks.start(tmp_path, 2, config, words(data), options)
    assert job.wait(timeout=DEADLINE) == 0, (tmp_path / "output.txt").read_text()
    after = losses(tmp_path)
    for rank in (0, 1):
        assert not set(before[rank]) & set(after[rank])  # no step twice
        assert {**before[rank], **after[rank]} == wanted[rank]
    assert [ranks.furthest(one, other) for one, other in zip(weights(tmp_path), last)] == [0, 0]


def test_a_trainer_alone_saves_after_sigterm(tmp_path):
    config, data = ranks.config_without_eval("mnist/lenet5_digits.yaml", tmp_path), ranks.digits(tmp_path / "data", 64)
    job = ranks.start(tmp_path, 1, config, [*words(data, 1000), f"train.ckpt_save_dir={tmp_path / 'ckpt'}"])
    output = tmp_path / "output.txt"
    wait_for(lambda: "epoch: 2 step: 3, loss" in output.read_text(), job, "the step")
    os.kill(job.pid, signal.SIGTERM)
    assert job.wait(timeout=DEADLINE) == 0, output.read_text()
    *_, before, told = output.read_text().splitlines()
    place = before.partition(", step time")[0]
    assert told == f"{place}, asked to end: the checkpoint is saved"
    epoch, step = re.findall(r"\d+", place)
    assert (tmp_path / "ckpt" / "rank_0" / f"lenet5-{epoch}_{step}.json").exists()


def test_a_failure_ends_the_others_without_a_wait(tmp_path):
    """Rank 0 waits inside MindSpore for rank 1, which is gone; it must not wait for the grace time."""
    config, data = ranks.config_without_eval("mnist/lenet5_digits.yaml", tmp_path), ranks.digits(tmp_path / "data", 64)
    job = ranks.start(tmp_path, 2, config, words(data, 1000), options=["--grace", "200", "--console", "none"])
    latest = tmp_path / "logs" / "latest"
    wait_for(lambda: (latest / "rank_0.log").exists() and "epoch: 2 " in (latest / "rank_0.log").read_text(), job, "it")
    killed = re.search(r"LAUNCH_JOB=(\S+)", (latest / "rank_1.env").read_text())[1].strip("'\"")
    os.kill(pid_of_rank(killed, 1), signal.SIGKILL)
    assert job.wait(timeout=100) == 137, (tmp_path / "output.txt").read_text()
    outcome = json.loads((latest / "launch.json").read_text())["outcome"]
    assert (outcome["members"]["0"]["status"], outcome["first_failure"]) == (143, "1") and "asked" not in outcome


def pid_of_rank(mark, rank):
    """The process of a rank of the job with this mark."""
    for process in os.listdir("/proc"):
        if process.isdigit():
            try:
                with open(f"/proc/{process}/environ", "rb") as file:
                    found = file.read().split(b"\0")
            except OSError:
                continue  # it is gone, or another user's
            if f"LAUNCH_JOB={mark}".encode() in found and f"RANK_ID={rank}".encode() in found:
                return int(process)
    raise AssertionError(f"no process of rank {rank} of {mark}")
