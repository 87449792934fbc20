"""Training on several ranks equals training on one: real MindSpore processes on this machine's processors.

The tolerance everywhere is 1e-6 on weights of size 1: float32 sums in another order.  Two ranks do all jobs of two and
of one in turn, in one launch.  With SLOW_TESTS=1 in the environment all kinds are tried; without it one of each.
"""

import os
import re

import pytest
import ranks
from suite.needs import Later, needs_packages

np = Later("numpy")

pytestmark = [needs_packages("mindspore", "sklearn"), pytest.mark.thorough, pytest.mark.trains]
TOLERANCE = 1e-6
SLOW = os.environ.get("SLOW_TESTS") == "1"
LENET, DENSE = ranks.CONFIGS / "mnist" / "lenet5_digits.yaml", ranks.CONFIGS / "parallel" / "hybrid_digits.yaml"
BY_HAND = ranks.CONFIGS / "parallel" / "hand_pipeline_digits.yaml"
IN_PARTS = {"train__gradient_accumulation_steps": 4}
SCALED = {"loss_scaler": "{type: dynamic, loss_scale: 1024}"}
TIMED = {"train__time_before_collective": True}
# AdamW, warm-up and cosine, clipping, a dynamic loss scale; 23 held-out images in batches of 4.
RECIPE = {
    "optimizer": "{opt: adamw, weight_decay: 0.01, eps: 0.001}",
    "scheduler": "{scheduler: warmup_cosine_decay, lr: 0.02, num_epochs: 5, warmup_epochs: 1}",
    "loss_scaler": "{type: dynamic, loss_scale: 1024, scale_window: 4}",
    "train__clip_grad": True,
    "system__val_while_train": True,
    "early_stop": "{patience: 1, min_delta: 1}",
    "eval__loader__batch_size": 4,
}


class Jobs:
    """Jobs on the same 80 digits, five steps of 16 in all, that save in a folder below `folder`."""

    def __init__(self, folder):
        self.folder, self.data = folder, ranks.digits(folder / "data", 80)
        self.held_out = ranks.digits(folder / "held_out", 23, "t10k")
        self.jobs = []
        self.configs = {}

    def without_eval(self, config):
        if config not in self.configs:
            folder = self.folder / config.stem
            folder.mkdir()
            self.configs[config] = ranks.config_without_eval(config.relative_to(ranks.CONFIGS), folder)
        return self.configs[config]

    def add(self, name, count, config, batch, into=None, variables=None, **more):
        """A job of `count` ranks, of one epoch by default; it saves in the folder `into`, or `name`."""
        if "scheduler" not in more:
            more.setdefault("scheduler__num_epochs", 1)
        words = ranks.settings(self.data, self.folder / (into or name), train__loader__batch_size=batch, **more)
        self.jobs.append(ranks.job(name, count, config, words, **(variables or {})))

    def lenet(self, name, count, **more):
        """The same for LeNet-5 and a batch of 16 in all."""
        self.add(name, count, self.without_eval(LENET), 16 // count, **more)


class Done:
    """What the jobs printed, and their weights."""

    def __init__(self, folder, printed):
        self.folder, self.printed = folder, printed

    def weights(self, name, count=1):
        return [ranks.weights(self.folder / name, rank) for rank in range(count)]

    def lines(self, name, having):
        """For each rank, its lines with these words."""
        return [[line for line in text.splitlines() if having in line] for text in self.printed[name]]


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """All jobs of two ranks and of one, done."""
    jobs = Jobs(tmp_path_factory.mktemp("ranks"))
    for mode in (0, 1):
        jobs.lenet(f"one {mode}", 1, system__mode=mode)
        jobs.lenet(f"two {mode}", 2, system__mode=mode)
    for count in (1, 2):
        jobs.lenet(f"parts of {count}", count, **IN_PARTS)
        more = {**RECIPE, "eval__dataset__dataset_root": jobs.held_out}
        jobs.add(f"recipe of {count}", count, LENET, 16 // count, **more)
    scaler = {"loss_scaler": "{type: dynamic, loss_scale: 8388608}"}
    jobs.lenet("overflows", 2, scheduler__num_epochs=3, system__amp_level="O2", **scaler)
    jobs.add("undivided", 1, jobs.without_eval(DENSE), 16)
    for mode in (0, 1) if SLOW else (0,):
        jobs.add(f"stages {mode}", 2, BY_HAND, 16, system__mode=mode)
    for mode, broadcast in ((1, True), (0, True), (0, False)) if SLOW else ((1, True),):
        more = {"system__mode": mode, "parallel__parameter_broadcast": broadcast, "system__seed": "{rank}"}
        jobs.lenet(f"seeds {mode} {broadcast}", 2, **more)
    for name, more in (("plain", {}), ("scaled", SCALED)) if SLOW else (("plain", {}),):
        jobs.lenet(f"{name} whole", 2, scheduler__num_epochs=2, **more)
        jobs.lenet(f"{name} first", 2, into=f"{name} in two", **more, **TIMED)
        again = {"into": f"{name} in two", "variables": {"RESUME": "1"}}
        jobs.lenet(f"{name} rest", 2, scheduler__num_epochs=2, **again, **more)
    if SLOW:
        jobs.add("cut of 2 1", 2, jobs.without_eval(DENSE), 16, system__mode=1)
        jobs.lenet("twice the rate", 1, scheduler__lr=0.02)
        jobs.lenet("added", 2, scheduler__lr=0.01, parallel__gradients_mean=False)
    return Done(jobs.folder, ranks.in_turn(jobs.folder, 2, jobs.jobs))


@pytest.fixture(scope="module")
def four(tmp_path_factory):
    """The job of four ranks, done."""
    jobs = Jobs(tmp_path_factory.mktemp("four"))
    jobs.add("cut of 4 0", 4, jobs.without_eval(DENSE), 16)
    return Done(jobs.folder, ranks.in_turn(jobs.folder, 4, jobs.jobs))


@pytest.mark.parametrize("mode", [0, 1])
def test_two_ranks_of_batch_b_equal_one_of_batch_2b_after_five_steps(done, mode):
    (one,) = done.weights(f"one {mode}")
    two = done.weights(f"two {mode}", 2)
    assert ranks.furthest(*two) == 0
    assert ranks.furthest(one, two[0]) < TOLERANCE
    assert np.abs(one["fc3.bias"]).max() > 1000 * TOLERANCE  # it began with 0, so it has learnt


def test_a_whole_recipe_on_two_ranks_is_that_on_one_and_all_end_early_together(done):
    (alone,), found = done.weights("recipe of 1"), done.weights("recipe of 2", 2)
    for name in ("recipe of 1", "recipe of 2"):
        assert "epoch: 2, early_stop ends the training: no improvement on the " in done.printed[name][0]
    measured, *others = done.lines("recipe of 1", "held-out") + done.lines("recipe of 2", "held-out")
    assert len(measured) == 3 and others == [measured, measured]
    assert "samples/s, ends in 0:" in done.printed["recipe of 2"][0]
    assert found[0]["loss_scale.value"] == 4096  # ten good steps
    assert ranks.furthest(*found) == 0
    assert ranks.furthest(alone, found[0]) < TOLERANCE


def test_ranks_with_different_overflows_skip_the_same_steps(done):
    skipped = done.lines("overflows", "gradients are not finite")
    assert skipped[0] == skipped[1] and 0 < len(skipped[0]) < 15, done.printed["overflows"]
    one, other = done.weights("overflows", 2)
    assert ranks.furthest(one, other) == 0
    assert one["loss_scale.value"] == 8388608 / 2 ** len(skipped[0])
    assert one["global_step"] == 15 - len(skipped[0])


@ranks.slow
def test_added_gradients_are_those_of_twice_the_learning_rate(done):
    compared = ("conv1.weight", "fc3.bias")  # the moments have the other scale
    (one,), (two, _) = done.weights("twice the rate"), done.weights("added", 2)
    assert max(np.abs(one[name] - two[name]).max() for name in compared) < TOLERANCE


def test_a_batch_in_parts_is_the_batch_on_one_rank_and_on_two(done):
    (one,), (parts,), two = done.weights("one 0"), done.weights("parts of 1"), done.weights("parts of 2", 2)
    assert ranks.furthest(one, parts) < TOLERANCE
    assert ranks.furthest(*two) == 0
    assert ranks.furthest(one, two[0]) < TOLERANCE


@pytest.mark.parametrize(("count", "mode"), [pytest.param(2, 1, marks=ranks.slow), (4, 0)])
def test_layers_cut_by_hand_equal_the_undivided_net(done, four, count, mode):
    (whole,) = done.weights("undivided")
    parts = (four if count == 4 else done).weights(f"cut of {count} {mode}", count)
    for name, axis in (("fc1.weight", 1), ("fc1.bias", 0), ("fc2.weight", 0), ("moments.fc1.weight", 1)):
        assert parts[0][name].shape[axis] * count == whole[name].shape[axis]
        merged = np.concatenate([part[name] for part in parts], axis)
        assert np.abs(merged - whole[name]).max() < TOLERANCE, name
    for name in ("fc2.bias", "fc3.weight", "fc3.bias"):
        assert max(np.abs(part[name] - whole[name]).max() for part in parts) < TOLERANCE, name


@pytest.mark.parametrize("mode", [0, pytest.param(1, marks=ranks.slow)])
def test_two_stages_by_hand_equal_the_undivided_net(done, mode):
    (whole,), (first, last) = done.weights("undivided"), done.weights(f"stages {mode}", 2)
    assert "fc1.weight" in first and "fc1.weight" not in last
    for name, value in {**first, **last}.items():
        assert np.abs(value - whole[name]).max() < TOLERANCE, name


@pytest.mark.parametrize(
    ("mode", "broadcast"), [(1, True), *[pytest.param(0, b, marks=ranks.slow) for b in (True, False)]]
)
def test_ranks_that_begin_with_different_weights_are_made_equal_by_broadcast(done, mode, broadcast):
    """Their seeds are their numbers.  In PyNative mode MindSpore's own parameter_broadcast would do nothing."""
    apart = ranks.furthest(*done.weights(f"seeds {mode} {broadcast}", 2))
    assert apart == 0 if broadcast else apart > 0.01


@pytest.mark.parametrize("name", ["plain", pytest.param("scaled", marks=ranks.slow)])
def test_two_ranks_train_the_same_with_the_time_before_the_collective_and_go_on_without_it(done, name):
    """The time is test_before_collective.py's.  The sum of two ranks' gradients has one order."""
    times = {part: done.lines(f"{name} {part}", "step time is")[1] for part in ("whole", "first", "rest")}
    losses = {part: losses_in(done.printed[f"{name} {part}"][1]) for part in times}
    assert [(part, len(lines)) for part, lines in times.items()] == [("whole", 10), ("first", 5), ("rest", 5)]
    assert all(re.search(r" data, \d+\.\d ms before the collective, ", line) for line in times["first"])
    assert not any("before the collective" in line for line in times["whole"] + times["rest"])
    assert losses["first"] + losses["rest"] == pytest.approx(losses["whole"], abs=TOLERANCE)
    assert len(losses["whole"]) == 10
    (whole, _), (one, other) = done.weights(f"{name} whole", 2), done.weights(f"{name} in two", 2)
    assert ranks.furthest(one, other) == 0
    assert ranks.furthest(one, whole) < TOLERANCE


def losses_in(text):
    return [float(loss) for loss in re.findall(r"step: \d+, loss is (\S+)", text)]
