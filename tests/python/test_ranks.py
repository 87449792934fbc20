"""Training on several ranks equals training on one: real MindSpore processes on this machine's processors.

The tolerance everywhere is 1e-6 on weights of size 1: float32 sums in another order.

"""

import numpy as np
import pytest
import ranks

ranks.need_mindspore()
TOLERANCE = 1e-6


@pytest.fixture(scope="module")
def five_steps(tmp_path_factory):
    """five_steps(batch): a folder with data for 5 steps of a batch of that many samples in all."""
    root = tmp_path_factory.mktemp("data")
    return lambda batch: ranks.digits(root / str(batch), 5 * batch)


def trained(folder, job, count, config, data, batch, **more):
    """Trains one epoch on `count` ranks; returns the checkpoints' folder."""
    words = ranks.settings(data, folder / job, scheduler__num_epochs=1, train__loader__batch_size=batch, **more)
    ranks.train(folder, count, config, words)
    return folder / job


@pytest.mark.parametrize("mode", [0, 1])
def test_two_ranks_of_batch_b_equal_one_of_batch_2b_after_five_steps(tmp_path, five_steps, mode):
    config = ranks.config_without_eval("mnist/lenet5_digits.yaml", tmp_path)
    data = five_steps(16)
    one = ranks.weights(trained(tmp_path, "one", 1, config, data, 16, system__mode=mode))
    two = trained(tmp_path, "two", 2, config, data, 8, system__mode=mode)
    assert ranks.furthest(ranks.weights(two, 0), ranks.weights(two, 1)) == 0
    assert ranks.furthest(one, ranks.weights(two)) < TOLERANCE
    summed = trained(tmp_path, "summed", 1, config, data, 16, system__mode=mode, scheduler__lr=0.1)
    assert ranks.furthest(one, ranks.weights(summed)) > 1000 * TOLERANCE  # another learning rate would be seen


def test_added_gradients_are_those_of_twice_the_learning_rate(tmp_path, five_steps):
    config = ranks.config_without_eval("mnist/lenet5_digits.yaml", tmp_path)
    data = five_steps(16)
    one = trained(tmp_path, "one", 1, config, data, 16, scheduler__lr=0.02)
    two = trained(tmp_path, "two", 2, config, data, 8, scheduler__lr=0.01, parallel__gradients_mean=False)
    compared = ("conv1.weight", "fc3.bias")  # the moments have the other scale
    one, two = ranks.weights(one), ranks.weights(two)
    assert max(np.abs(one[name] - two[name]).max() for name in compared) < TOLERANCE


def test_a_batch_in_parts_is_the_batch_on_one_rank_and_on_two(tmp_path, five_steps):
    config = ranks.config_without_eval("mnist/lenet5_digits.yaml", tmp_path)
    data = five_steps(16)
    one = trained(tmp_path, "one", 1, config, data, 16)
    parts = trained(tmp_path, "parts", 1, config, data, 16, train__gradient_accumulation_steps=4)
    assert ranks.furthest(ranks.weights(one), ranks.weights(parts)) < TOLERANCE
    two = trained(tmp_path, "two", 2, config, data, 8, train__gradient_accumulation_steps=4)
    assert ranks.furthest(ranks.weights(two, 0), ranks.weights(two, 1)) == 0
    assert ranks.furthest(ranks.weights(one), ranks.weights(two)) < TOLERANCE


@pytest.mark.parametrize(("count", "mode"), [(2, 1), (4, 0)])
def test_layers_cut_by_hand_equal_the_undivided_net(tmp_path, five_steps, count, mode):
    config = ranks.config_without_eval("parallel/hybrid_digits.yaml", tmp_path)
    data = five_steps(16)
    whole = ranks.weights(trained(tmp_path, "whole", 1, config, data, 16))
    cut = trained(tmp_path, "cut", count, config, data, 16, system__mode=mode)
    parts = [ranks.weights(cut, rank) for rank in range(count)]
    for name, axis in (("fc1.weight", 1), ("fc1.bias", 0), ("fc2.weight", 0), ("moments.fc1.weight", 1)):
        assert parts[0][name].shape[axis] * count == whole[name].shape[axis]
        merged = np.concatenate([part[name] for part in parts], axis)
        assert np.abs(merged - whole[name]).max() < TOLERANCE, name
    for name in ("fc2.bias", "fc3.weight", "fc3.bias"):
        assert max(np.abs(part[name] - whole[name]).max() for part in parts) < TOLERANCE, name


@pytest.mark.parametrize("mode", [0, 1])
def test_two_stages_by_hand_equal_the_undivided_net(tmp_path, five_steps, mode):
    data = five_steps(16)
    whole = ranks.weights(
        trained(tmp_path, "whole", 1, ranks.config_without_eval("parallel/hybrid_digits.yaml", tmp_path), data, 16)
    )
    config = ranks.CONFIGS / "parallel" / "hand_pipeline_digits.yaml"
    cut = trained(tmp_path, "cut", 2, config, data, 16, system__mode=mode)
    first, last = ranks.weights(cut, 0), ranks.weights(cut, 1)
    assert "fc1.weight" in first and "fc1.weight" not in last
    for name, value in {**first, **last}.items():
        assert np.abs(value - whole[name]).max() < TOLERANCE, name
