"""Training on several ranks equals training on one: real MindSpore processes on this machine's processors.

The tolerance everywhere is 1e-6 on weights of size 1: float32 sums in another order.  With SLOW_TESTS=1
in the environment all of them run; without it one of each kind, since a job takes about ten seconds.
"""

import functools

import pytest
import ranks
from needs import Later, needs_packages

np = Later("numpy")

pytestmark = [needs_packages("mindspore", "sklearn"), pytest.mark.thorough, pytest.mark.trains]
TOLERANCE = 1e-6


@pytest.fixture(scope="module")
def five_steps(tmp_path_factory):
    """five_steps(batch): a folder with data for 5 steps of a batch of that many samples in all."""
    root = tmp_path_factory.mktemp("data")
    return lambda batch: ranks.digits(root / str(batch), 5 * batch)


@pytest.fixture(scope="module")
def undivided(tmp_path_factory, five_steps):
    """The weights of the dense net after the five steps on one rank."""
    folder = tmp_path_factory.mktemp("undivided")
    config = ranks.config_without_eval("parallel/hybrid_digits.yaml", folder)
    return ranks.weights(trained(folder, "whole", 1, config, five_steps(16), 16))


@pytest.fixture(scope="module")
def alone(tmp_path_factory, five_steps):
    """alone(mode): the weights of LeNet-5 after the five steps on one rank, in graph mode (0) or PyNative mode (1)."""

    @functools.cache
    def weights(mode):
        folder = tmp_path_factory.mktemp("alone")
        config = ranks.config_without_eval("mnist/lenet5_digits.yaml", folder)
        return ranks.weights(trained(folder, "one", 1, config, five_steps(16), 16, system__mode=mode))

    return weights


def trained(folder, job, count, config, data, batch, **more):
    """Trains one epoch on `count` ranks; returns the checkpoints' folder."""
    words = ranks.settings(data, folder / job, scheduler__num_epochs=1, train__loader__batch_size=batch, **more)
    ranks.train(folder, count, config, words)
    return folder / job


@pytest.mark.parametrize("mode", [0, 1])
def test_two_ranks_of_batch_b_equal_one_of_batch_2b_after_five_steps(tmp_path, five_steps, alone, mode):
    config = ranks.config_without_eval("mnist/lenet5_digits.yaml", tmp_path)
    one = alone(mode)
    two = trained(tmp_path, "two", 2, config, five_steps(16), 8, system__mode=mode)
    assert ranks.furthest(ranks.weights(two, 0), ranks.weights(two, 1)) == 0
    assert ranks.furthest(one, ranks.weights(two)) < TOLERANCE
    assert np.abs(one["fc3.bias"]).max() > 1000 * TOLERANCE  # it began with 0, so it has learnt


def test_a_whole_recipe_on_two_ranks_is_that_on_one_and_all_end_early_together(tmp_path, five_steps):
    """AdamW, warm-up and cosine, clipping, a dynamic loss scale; 23 held-out images in batches of 4 for two ranks."""
    more = {
        "optimizer": "{opt: adamw, weight_decay: 0.01, eps: 0.001}",
        "scheduler": "{scheduler: warmup_cosine_decay, lr: 0.02, num_epochs: 5, warmup_epochs: 1}",
        "loss_scaler": "{type: dynamic, loss_scale: 1024, scale_window: 4}",
        "train__clip_grad": True,
        "system__val_while_train": True,
        "early_stop": "{patience: 1, min_delta: 1}",
        "eval__dataset__dataset_root": ranks.digits(tmp_path / "held_out", 23, "t10k"),
        "eval__loader__batch_size": 4,
    }
    config = ranks.CONFIGS / "mnist" / "lenet5_digits.yaml"
    measured, found = [], {}
    for count in (1, 2):
        job = {**more, "train__loader__batch_size": 16 // count}
        words = ranks.settings(five_steps(16), tmp_path / f"of_{count}", **job)
        output = ranks.train(tmp_path, count, config, words)
        assert "epoch: 2, early_stop ends the training: no improvement on the " in output
        measured.append([line for line in output.splitlines() if "held-out" in line])
        found[count] = [ranks.weights(tmp_path / f"of_{count}", rank) for rank in range(count)]
    assert measured[0] == measured[1] and len(measured[0]) == 3
    logs = [(tmp_path / "logs" / "latest" / f"rank_{rank}.log").read_text() for rank in (0, 1)]
    assert all([line for line in log.splitlines() if "held-out" in line] == measured[0] for log in logs)
    assert "samples/s, ends in 0:" in logs[0]
    assert found[2][0]["loss_scale.value"] == 4096  # ten good steps
    assert ranks.furthest(*found[2]) == 0
    assert ranks.furthest(found[1][0], found[2][0]) < TOLERANCE


def test_ranks_with_different_overflows_skip_the_same_steps(tmp_path, five_steps):
    config = ranks.config_without_eval("mnist/lenet5_digits.yaml", tmp_path)
    scaler = "{type: dynamic, loss_scale: 8388608}"
    more = {"train__loader__batch_size": 8, "system__amp_level": "O2", "loss_scaler": scaler}
    words = ranks.settings(five_steps(16), tmp_path / "ckpt", scheduler__num_epochs=3, **more)
    ranks.train(tmp_path, 2, config, words)
    logs = [(tmp_path / "logs" / "latest" / f"rank_{rank}.log").read_text() for rank in (0, 1)]
    skipped = [[line for line in log.splitlines() if "gradients are not finite" in line] for log in logs]
    assert skipped[0] == skipped[1] and 0 < len(skipped[0]) < 15, logs
    one, other = (ranks.weights(tmp_path / "ckpt", rank) for rank in (0, 1))
    assert ranks.furthest(one, other) == 0
    assert one["loss_scale.value"] == 8388608 / 2 ** len(skipped[0])
    assert one["global_step"] == 15 - len(skipped[0])


@ranks.slow
def test_added_gradients_are_those_of_twice_the_learning_rate(tmp_path, five_steps):
    config = ranks.config_without_eval("mnist/lenet5_digits.yaml", tmp_path)
    data = five_steps(16)
    one = trained(tmp_path, "one", 1, config, data, 16, scheduler__lr=0.02)
    two = trained(tmp_path, "two", 2, config, data, 8, scheduler__lr=0.01, parallel__gradients_mean=False)
    compared = ("conv1.weight", "fc3.bias")  # the moments have the other scale
    one, two = ranks.weights(one), ranks.weights(two)
    assert max(np.abs(one[name] - two[name]).max() for name in compared) < TOLERANCE


def test_a_batch_in_parts_is_the_batch_on_one_rank_and_on_two(tmp_path, five_steps, alone):
    config = ranks.config_without_eval("mnist/lenet5_digits.yaml", tmp_path)
    data = five_steps(16)
    one = alone(0)
    parts = trained(tmp_path, "parts", 1, config, data, 16, train__gradient_accumulation_steps=4)
    assert ranks.furthest(one, ranks.weights(parts)) < TOLERANCE
    two = trained(tmp_path, "two", 2, config, data, 8, train__gradient_accumulation_steps=4)
    assert ranks.furthest(ranks.weights(two, 0), ranks.weights(two, 1)) == 0
    assert ranks.furthest(one, ranks.weights(two)) < TOLERANCE


@pytest.mark.parametrize(("count", "mode"), [pytest.param(2, 1, marks=ranks.slow), (4, 0)])
def test_layers_cut_by_hand_equal_the_undivided_net(tmp_path, five_steps, undivided, count, mode):
    config = ranks.config_without_eval("parallel/hybrid_digits.yaml", tmp_path)
    data, whole = five_steps(16), undivided
    cut = trained(tmp_path, "cut", count, config, data, 16, system__mode=mode)
    parts = [ranks.weights(cut, rank) for rank in range(count)]
    for name, axis in (("fc1.weight", 1), ("fc1.bias", 0), ("fc2.weight", 0), ("moments.fc1.weight", 1)):
        assert parts[0][name].shape[axis] * count == whole[name].shape[axis]
        merged = np.concatenate([part[name] for part in parts], axis)
        assert np.abs(merged - whole[name]).max() < TOLERANCE, name
    for name in ("fc2.bias", "fc3.weight", "fc3.bias"):
        assert max(np.abs(part[name] - whole[name]).max() for part in parts) < TOLERANCE, name


@pytest.mark.parametrize("mode", [0, pytest.param(1, marks=ranks.slow)])
def test_two_stages_by_hand_equal_the_undivided_net(tmp_path, five_steps, undivided, mode):
    data, whole = five_steps(16), undivided
    config = ranks.CONFIGS / "parallel" / "hand_pipeline_digits.yaml"
    cut = trained(tmp_path, "cut", 2, config, data, 16, system__mode=mode)
    first, last = ranks.weights(cut, 0), ranks.weights(cut, 1)
    assert "fc1.weight" in first and "fc1.weight" not in last
    for name, value in {**first, **last}.items():
        assert np.abs(value - whole[name]).max() < TOLERANCE, name


@pytest.mark.parametrize(
    ("mode", "broadcast"), [(1, True), *[pytest.param(0, b, marks=ranks.slow) for b in (True, False)]]
)
def test_ranks_that_begin_with_different_weights_are_made_equal_by_broadcast(tmp_path, five_steps, mode, broadcast):
    """In PyNative mode MindSpore's own parameter_broadcast would do nothing."""
    trainer = tmp_path / "trainer.py"
    trainer.write_text(
        "import os, sys\n"
        f"sys.path[0] = {str(ranks.PROJECT)!r}\n"
        "from tools import train\n"
        "sys.exit(train.main([*sys.argv[1:], '-o', 'system.seed=' + os.environ['RANK_ID']]))\n"
    )
    config = ranks.config_without_eval("mnist/lenet5_digits.yaml", tmp_path)
    more = {"system__mode": mode, "parallel__parameter_broadcast": broadcast, "train__loader__batch_size": 8}
    words = ranks.settings(five_steps(16), tmp_path / "ckpt", scheduler__num_epochs=1, **more)
    ranks.train(tmp_path, 2, config, words, trainer=trainer)
    apart = ranks.furthest(ranks.weights(tmp_path / "ckpt", 0), ranks.weights(tmp_path / "ckpt", 1))
    assert apart == 0 if broadcast else apart > 0.01
