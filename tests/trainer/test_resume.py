"""A job that is killed at a random moment and started again with RESUME=1 ends as if nothing had happened.

KILL_MOMENTS in the environment says at how many moments (default: 1; each takes half a minute).
"""

import functools
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import pytest
import ranks
from needs import needs_packages

from tools import convert_ckpt

pytestmark = [needs_packages("mindspore", "sklearn"), pytest.mark.thorough, pytest.mark.trains]
SCHEMA = ranks.PROJECT / "schemas" / "launch.schema.json"
EPOCHS, SAMPLES, BATCH = 20, 160, 8
DEADLINE = 120  # seconds until a job that starts has saved something


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """(words of the job without its checkpoints' folder, config, final weights of both ranks, seconds of training)."""
    folder = tmp_path_factory.mktemp("undisturbed")
    config = ranks.config_without_eval("mnist/lenet5_digits.yaml", folder)
    data = ranks.digits(folder / "data", SAMPLES)

    def words(checkpoints):
        more = {"scheduler__num_epochs": EPOCHS, "train__loader__batch_size": BATCH, "train__loader__shuffle": True}
        by_steps = {"train__save_checkpoint_steps": 7, "train__keep_checkpoint_max": 3}  # of 10 in an epoch
        return ranks.settings(data, checkpoints, **by_steps, **more)

    checkpoints = folder / "ckpt"
    job = ranks.start(folder, 2, config, words(checkpoints))
    begun = saved(checkpoints, job)
    assert job.wait(timeout=DEADLINE) == 0, (folder / "output.txt").read_text()
    last = max(path.stat().st_mtime for path in checkpoints.glob("rank_*/*.ckpt"))
    return words, config, [ranks.weights(checkpoints, rank) for rank in (0, 1)], last - begun


def saved(checkpoints, job):
    """Waits until rank 0 has begun to save; returns the time of that (seconds since 1970)."""
    end = time.monotonic() + DEADLINE
    while job.poll() is None and time.monotonic() < end:
        if list(checkpoints.glob("rank_0/*.ckpt")):
            return time.time()
        time.sleep(0.005)
    pytest.fail("the job saved nothing")


def pids_of_ranks(checkpoints):
    """{rank: process id} of the trainers that save in that folder."""
    found = {}
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
            if str(checkpoints).encode() in command and b"tools/train.py" in command.split(b"\0", 3)[2]:
                environment = (process / "environ").read_bytes().split(b"\0")
                rank = next(word for word in environment if word.startswith(b"RANK_ID="))
                found[int(rank[len(b"RANK_ID=") :])] = int(process.name)
        except (OSError, IndexError, StopIteration):
            continue  # it has ended, or is not a rank
    return found


@pytest.mark.parametrize("moment", range(int(os.environ.get("KILL_MOMENTS", "1"))))
def test_a_killed_job_goes_on_as_if_nothing_had_happened(tmp_path, undisturbed, moment):
    words, config, wanted, seconds = undisturbed
    draw = random.Random(moment)
    checkpoints = tmp_path / "ckpt"
    job = ranks.start(tmp_path, 2, config, words(checkpoints))
    saved(checkpoints, job)
    time.sleep(draw.uniform(0, seconds))  # no test of time: whenever it strikes, the outcome must be the same
    pids = pids_of_ranks(checkpoints)
    for rank in draw.choice([(0,), (1,), (0, 1)]):
        if rank in pids:
            os.kill(pids[rank], signal.SIGKILL)
    job.wait(timeout=DEADLINE)
    output = ranks.train(tmp_path, 2, config, words(checkpoints), resume=True)
    print(f"moment {moment}: {[line for line in output.splitlines() if 'continues' in line or 'all 20' in line]}")
    assert "continues after step" in output or "continues after epoch" in output
    for rank in (0, 1):
        assert ranks.furthest(ranks.weights(checkpoints, rank), wanted[rank]) == 0


@ranks.slow
def test_the_launchers_restart_goes_on_from_the_last_checkpoint(tmp_path, undisturbed):
    words, config, wanted, _ = undisturbed
    checkpoints = tmp_path / "ckpt"
    job = ranks.start(tmp_path, 2, config, words(checkpoints), options=["--max_restarts", "1"])
    saved(checkpoints, job)
    os.kill(pids_of_ranks(checkpoints)[1], signal.SIGKILL)
    assert job.wait(timeout=DEADLINE) == 0, (tmp_path / "output.txt").read_text()
    said = (tmp_path / "output.txt").read_text()
    assert "restart 1 of 1" in said and "continues after " in said
    for rank in (0, 1):
        assert ranks.furthest(ranks.weights(checkpoints, rank), wanted[rank]) == 0


def test_training_goes_on_with_another_number_of_ranks(tmp_path):
    """One epoch on two ranks that share each layer, the slices merged, the second epoch on one rank."""
    data = ranks.digits(tmp_path / "data", 80)
    config = ranks.config_without_eval("parallel/hybrid_digits.yaml", tmp_path)
    more = {"train__loader__batch_size": 16, "train__loader__shuffle": True}

    def words(folder, epochs, **other):
        return ranks.settings(data, tmp_path / folder, scheduler__num_epochs=epochs, **more, **other)

    ranks.train(tmp_path, 1, config, words("undisturbed", 2))
    ranks.train(tmp_path, 2, config, words("cut", 1))
    said = ranks.train(tmp_path, 1, config, words("refused", 2, train__resume_from=tmp_path / "cut"), code=2)
    assert "is of a job of 2 ranks, this one has 1" in said and "convert_ckpt.py" in said
    assert convert_ckpt.main([str(tmp_path / "cut"), str(tmp_path / "merged"), "--ranks", "1"]) == 0
    said = ranks.train(tmp_path, 1, config, words("alone", 2, train__resume_from=tmp_path / "merged"))
    assert "continues after epoch 1" in said
    undisturbed, alone = ranks.weights(tmp_path / "undisturbed"), ranks.weights(tmp_path / "alone")
    assert ranks.furthest(undisturbed, alone) < 1e-6


def test_resume_1_without_a_checkpoint_is_refused_and_a_restart_by_the_launcher_begins_anew(tmp_path, monkeypatch):
    data = ranks.digits(tmp_path / "data", 16)
    config = ranks.config_without_eval("mnist/lenet5_digits.yaml", tmp_path)
    words = ranks.settings(data, tmp_path / "ckpt", scheduler__num_epochs=1, train__loader__batch_size=8)
    said = ranks.train(tmp_path, 1, config, words, resume=True, code=2)
    assert "train from the beginning without it and without RESUME=1" in said and "epoch:" not in said
    with monkeypatch.context() as of_launcher:
        of_launcher.setattr(ranks, "_environment", functools.partial(dict, ranks._environment(), LAUNCH_JOB="run@host"))
        said = ranks.train(tmp_path, 1, config, words, resume=True)
    assert "no checkpoint that is whole on all ranks" in said and "epoch: 1 step: 2" in said
    said = ranks.train(tmp_path, 1, config, words, resume=True)
    assert "continues after epoch 1" in said and "are done already" in said
    said = ranks.train(tmp_path, 1, config, [*words, "model.name=dense"], resume=True, code=2)
    assert "is of the network lenet5, this config's is dense" in said and "Traceback" not in said


def test_the_option_resume_goes_on_from_the_newest_run_and_with_more_ranks(tmp_path):
    """Two ranks, stopped by Ctrl-C once they have saved; then two ranks, then four."""
    data = ranks.digits(tmp_path / "data", 64)
    config = ranks.config_without_eval("mnist/lenet5_digits.yaml", tmp_path)

    def words(epochs):
        found = {"train.dataset.dataset_root": data, "train.loader.batch_size": 8, "scheduler.num_epochs": epochs}
        return [f"{key}={value}" for key, value in found.items()]

    latest = tmp_path / "logs" / "latest"
    job = ranks.start(tmp_path, 2, config, words(1000))
    assert saved(latest / "ckpt", job)
    wait_for(lambda: list(latest.glob("ckpt/rank_0/*-2_*.json")) and list(latest.glob("ckpt/rank_1/*-2_*.json")))
    os.kill(job.pid, signal.SIGINT)
    assert job.wait(timeout=DEADLINE) == -signal.SIGINT
    first = latest.resolve()
    epoch = json.loads(max(first.glob("ckpt/rank_0/*_4.json"), key=os.path.getmtime).read_text())["epoch"]
    for number, more in ((2, 1), (4, 2)):
        source = latest.resolve() / "ckpt"
        job = ranks.start(tmp_path, number, config, words(epoch + more), options=["--resume"])
        assert job.wait(timeout=DEADLINE) == 0, (tmp_path / "output.txt").read_text()
        said = (tmp_path / "output.txt").read_text()
        document = json.loads((latest / "launch.json").read_text())
        schema_check = [sys.executable, "-m", "check_jsonschema", "--schemafile", SCHEMA, latest / "launch.json"]
        assert subprocess.run(schema_check, check=False).returncode == 0
        assert document["resumed"]["folder"] == str(source) and document["resumed"]["ranks"] == 2
        assert f"continues after epoch {document['resumed']['epoch']}, from logs/{source.parent.name}/ckpt" in said
        assert f"continues after epoch {document['resumed']['epoch']}, from " in said


def wait_for(condition):
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)
