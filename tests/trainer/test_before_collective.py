"""The time before the collective: which jobs take it, and that taking it changes nothing else."""

import re

import pytest
import ranks
from needs import needs_packages

from tools.config import config_file as configs
from tools.trainer import before_collective

TOLERANCE = 1e-6
ASKED = {before_collective.VARIABLE: "1.3"}
REASONS = {
    "one rank waits for no other": (1, []),
    "in mode semi_auto_parallel MindSpore puts collectives between the layers": (
        4,
        ["parallel.mode=semi_auto_parallel"],
    ),
    "hybrid_parallel_net exchanges values between its layers": (
        2,
        ["parallel.mode=hybrid_parallel", "model={name: hybrid_parallel_net}"],
    ),
    "hand_pipeline_net exchanges values between its layers": (
        2,
        ["parallel.mode=hybrid_parallel", "model={name: hand_pipeline_net}"],
    ),
    "with train.dataset_sink_mode the device runs a whole epoch by itself; write False": (
        2,
        ["train.dataset_sink_mode=True"],
    ),
}


def config(*words):
    return configs.read(str(ranks.CONFIGS / "mnist" / "lenet5_digits.yaml"), list(words)).filled


def test_it_is_taken_where_the_launcher_or_the_config_asks_for_it():
    assert not before_collective.is_measured(config(), 8, {})
    assert not before_collective.is_measured(config(), 8, {before_collective.VARIABLE: ""})
    assert before_collective.is_measured(config(), 8, ASKED)
    assert before_collective.is_measured(config("train.time_before_collective=True"), 8, {})
    recipe = ["loss_scaler={type: dynamic, loss_scale: 1024}", "train.clip_grad=True"]
    assert before_collective.is_measured(config(*recipe, "train.gradient_accumulation_steps=2"), 8, ASKED)
    assert before_collective.note(config(), 8, ASKED) == ""


@pytest.mark.parametrize("reason", REASONS)
def test_a_job_that_cannot_take_it_says_why_and_only_if_it_was_asked(reason):
    count, words = REASONS[reason]
    asked = config(*words, "train.time_before_collective=True")
    assert not before_collective.is_measured(asked, count, {})
    line = f"the lines have no time before the collective: {reason}"
    assert before_collective.note(asked, count, {}) == before_collective.note(config(*words), count, ASKED) == line
    assert before_collective.note(config(*words), count, {}) == ""


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return ranks.digits(tmp_path_factory.mktemp("data") / "digits", 80)


def trained(folder, job, data, resume=False, **more):
    """Trains on two ranks; returns the losses in rank 1's log, its lines of times, and the weights of both."""
    yaml = ranks.config_without_eval("mnist/lenet5_digits.yaml", folder)
    words = ranks.settings(data, folder / job, train__loader__batch_size=8, **more)
    ranks.train(folder, 2, yaml, words, resume=resume)
    log = (folder / "logs" / "latest" / "rank_1.log").read_text()
    times = [line for line in log.splitlines() if "step time is" in line]
    losses = [float(text) for text in re.findall(r"step: \d+, loss is (\S+)", log)]
    return losses, times, [ranks.weights(folder / job, rank) for rank in (0, 1)]


@needs_packages("mindspore", "sklearn")
@pytest.mark.thorough
@pytest.mark.trains
@pytest.mark.parametrize(
    "more", [{}, pytest.param({"loss_scaler": "{type: dynamic, loss_scale: 1024}"}, marks=ranks.slow)]
)
def test_two_ranks_train_the_same_with_it_and_go_on_without_it(tmp_path, data, more):
    """But for the tolerance of test_ranks.py; the sum of two ranks' gradients has one order."""
    losses, times, (whole, _) = trained(tmp_path, "whole", data, scheduler__num_epochs=2, **more)
    assert len(losses) == 10 and not any("before the collective" in line for line in times)
    asked = {**more, "train__time_before_collective": True}
    first, times, _ = trained(tmp_path, "in_two", data, scheduler__num_epochs=1, **asked)
    assert len(times) == 5 and all(re.search(r" data, \d+\.\d ms before the collective, ", line) for line in times)
    rest, times, (one, other) = trained(tmp_path, "in_two", data, resume=True, scheduler__num_epochs=2, **more)
    assert first + rest == pytest.approx(losses, abs=TOLERANCE) and not any(
        "before the collective" in line for line in times
    )
    assert ranks.furthest(one, other) == 0
    assert ranks.furthest(one, whole) < TOLERANCE
