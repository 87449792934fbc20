"""A job that is killed at a random moment and goes on afterwards ends as if nothing had happened.

KILL_MOMENTS in the environment says at how many moments (default: 1; each takes half a minute).
"""

import json
import os
import pathlib
import random
import re
import signal
import time

import jsonschema
import pytest
import ranks
from suite.needs import needs_packages

pytestmark = [needs_packages("mindspore", "sklearn"), pytest.mark.thorough, pytest.mark.trains]
SCHEMA = ranks.PROJECT / "schemas" / "launch.schema.json"
EPOCHS, SAMPLES, BATCH = 8, 160, 8
STEPS = SAMPLES // BATCH // 2  # of each of two ranks in an epoch
DEADLINE = 240  # seconds until a job has come so far


class Jobs:
    """What the tests train on: LeNet-5 for two ranks, and another net that two ranks share."""

    def __init__(self, folder):
        self.folder = folder
        self.data, self.fewer = ranks.digits(folder / "data", SAMPLES), ranks.digits(folder / "fewer", 80)
        self.least = ranks.digits(folder / "least", 16)
        (folder / "cut_by_hand").mkdir()
        self.lenet = ranks.config_without_eval("mnist/lenet5_digits.yaml", folder)
        self.dense = ranks.config_without_eval("parallel/hybrid_digits.yaml", folder / "cut_by_hand")

    def words(self, checkpoints=None, epochs=EPOCHS):
        """Those of the job that is killed; without a folder the run's own has the checkpoints."""
        more = {"scheduler__num_epochs": epochs, "train__loader__batch_size": BATCH, "train__loader__shuffle": True}
        by_steps = {"train__save_checkpoint_steps": 7, "train__keep_checkpoint_max": 3}
        found = ranks.settings(self.data, checkpoints, **by_steps, **more)
        return [word for word in found if checkpoints or not word.startswith("train.ckpt_save_dir=")]

    def shared(self, name, count, into, epochs, code=0, **more):
        """A job of the net that ranks share, for in_turn()."""
        more = {"train__loader__batch_size": 16, "train__loader__shuffle": True, **more}
        words = ranks.settings(self.fewer, self.folder / into, scheduler__num_epochs=epochs, **more)
        return ranks.job(name, count, self.dense, words, code)

    def again(self, name, code=0, more=(), **variables):
        """A job of one rank with RESUME=1, typed by a person, for in_turn()."""
        words = ranks.settings(self.least, self.folder / "typed", scheduler__num_epochs=1, train__loader__batch_size=8)
        variables = {"RESUME": "1", "LAUNCH_JOB": None, **variables}
        return ranks.job(name, 1, self.lenet, [*words, *more], code, **variables)


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    return Jobs(tmp_path_factory.mktemp("jobs"))


@pytest.fixture(scope="module")
def printed(jobs):
    """What the jobs printed that nobody kills."""
    folder = jobs.folder
    resumed = {"train__resume_from": folder / "merged"}
    done = ranks.in_turn(
        folder,
        2,
        [
            ranks.job("undisturbed", 2, jobs.lenet, jobs.words(folder / "undisturbed")),
            jobs.shared("shared, whole", 1, "whole", 2),
            jobs.shared("shared, cut", 2, "cut", 1),
            jobs.shared("shared, refused", 1, "refused", 2, 2, train__resume_from=folder / "cut"),
            ranks.conversion("merge", folder / "cut", folder / "merged", "--ranks", "1"),
            jobs.shared("shared, merged", 1, "alone", 2, **resumed),
            jobs.again("nothing saved", 2),
            jobs.again("restarted", LAUNCH_JOB="run@host"),
            jobs.again("all done"),
            jobs.again("another net", 2, ["model.name=dense"]),
        ],
    )
    return {name: texts[0] for name, texts in done.items()}


@pytest.fixture(scope="module")
def wanted(jobs, printed):
    """The final weights of both ranks of the job that nobody killed."""
    return [ranks.weights(jobs.folder / "undisturbed", rank) for rank in (0, 1)]


def saved(checkpoints, job, steps=1):
    """Waits until rank 0 has saved a checkpoint of that many steps."""
    end = time.monotonic() + DEADLINE
    while job.poll() is None and time.monotonic() < end:
        found = [re.search(r"-(\d+)_(\d+)\.ckpt$", path.name) for path in checkpoints.glob("rank_0/*.ckpt")]
        if any((int(whole[1]) - 1) * STEPS + int(whole[2]) >= steps for whole in filter(None, found)):
            return
        time.sleep(0.005)
    pytest.fail("the job did not save so much")


def pids_of_ranks(config):
    """{rank: process id} of the trainers of that config."""
    found = {}
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
            if str(config).encode() in command and b"tools/train.py" in command.split(b"\0", 3)[2]:
                environment = (process / "environ").read_bytes().split(b"\0")
                rank = next(word for word in environment if word.startswith(b"RANK_ID="))
                found[int(rank[len(b"RANK_ID=") :])] = int(process.name)
        except (OSError, IndexError, StopIteration):
            continue  # it has ended, or is not a rank
    return found


@pytest.mark.parametrize("moment", range(int(os.environ.get("KILL_MOMENTS", "1"))))
def test_a_killed_job_goes_on_as_if_nothing_had_happened_and_then_with_more_ranks(tmp_path, jobs, wanted, moment):
    """By the option --resume: two ranks, some of them killed, two ranks again, then four for one more epoch."""
    draw = random.Random(moment)
    config = tmp_path / "config.yaml"
    config.write_text(jobs.lenet.read_text())
    latest = tmp_path / "logs" / "latest"
    job = ranks.start(tmp_path, 2, config, jobs.words())
    saved(latest / "ckpt", job, draw.randrange(1, (EPOCHS - 1) * STEPS))
    time.sleep(draw.uniform(0, 0.05))  # no test of time: whenever it strikes, the outcome must be the same
    pids = pids_of_ranks(config)
    assert set(pids) == {0, 1}
    for rank in draw.choice([(0,), (1,), (0, 1)]):
        os.kill(pids[rank], signal.SIGKILL)
    assert job.wait(timeout=DEADLINE) == 137
    source = goes_on(tmp_path, 2, config, jobs.words())
    assert f"from {source}" in (tmp_path / "output.txt").read_text()
    for rank in (0, 1):
        assert ranks.furthest(ranks.weights(latest / "ckpt", rank), wanted[rank]) == 0
    if moment == 0:
        source = goes_on(tmp_path, 4, config, jobs.words(epochs=EPOCHS + 1))
        said = (tmp_path / "output.txt").read_text()
        assert f"continues after epoch {EPOCHS}, from {source}" in said and f"epoch: {EPOCHS + 1} step: 5" in said
        assert all(f"continues after epoch {EPOCHS}, from " in log.read_text() for log in latest.glob("rank_*.log"))


def goes_on(folder, count, config, words):
    """Goes on from the newest run by --resume; returns the folder, as messages show it, that it went on from."""
    latest = folder / "logs" / "latest"
    source = latest.resolve() / "ckpt"
    job = ranks.start(folder, count, config, words, options=["--resume"])
    assert job.wait(timeout=DEADLINE) == 0, (folder / "output.txt").read_text()
    document = json.loads((latest / "launch.json").read_text())
    jsonschema.validate(document, json.loads(SCHEMA.read_text()))
    assert document["resumed"]["folder"] == str(source) and document["resumed"]["ranks"] == 2
    return f"logs/{source.parent.name}/ckpt"


@ranks.slow
def test_the_launchers_restart_goes_on_from_the_last_checkpoint(tmp_path, jobs, wanted):
    checkpoints, config = tmp_path / "ckpt", tmp_path / "config.yaml"
    config.write_text(jobs.lenet.read_text())
    job = ranks.start(tmp_path, 2, config, jobs.words(checkpoints), options=["--max_restarts", "1"])
    saved(checkpoints, job)
    os.kill(pids_of_ranks(config)[1], signal.SIGKILL)
    assert job.wait(timeout=DEADLINE) == 0, (tmp_path / "output.txt").read_text()
    said = (tmp_path / "output.txt").read_text()
    assert "restart 1 of 1" in said and "continues after " in said
    for rank in (0, 1):
        assert ranks.furthest(ranks.weights(checkpoints, rank), wanted[rank]) == 0


def test_training_goes_on_with_another_number_of_ranks(jobs, printed):
    """One epoch on two ranks that share each layer, the slices merged, the second epoch on one rank."""
    said = printed["shared, refused"]
    assert "comes from a job of 2 ranks, but this job has 1" in said and "convert_ckpt.py" in said
    assert "continues after epoch 1" in printed["shared, merged"]
    undisturbed, alone = ranks.weights(jobs.folder / "whole"), ranks.weights(jobs.folder / "alone")
    assert ranks.furthest(undisturbed, alone) < 1e-6


def test_resume_1_without_a_checkpoint_is_refused_and_a_restart_by_the_launcher_begins_anew(printed):
    said = printed["nothing saved"]
    assert "train from the beginning without it and without RESUME=1" in said and "epoch:" not in said
    said = printed["restarted"]
    assert "no checkpoint that is whole on all ranks" in said and "epoch: 1 step: 2" in said
    said = printed["all done"]
    assert "continues after epoch 1" in said and "are done already" in said
    said = printed["another net"]
    assert "is for the network lenet5, but this config has dense" in said and "Traceback" not in said
