"""The time before the collective: which jobs take it.  tests/trainer/test_ranks.py says that nothing else changes."""

import pytest
import ranks

from tools.config import config_file as configs
from tools.trainer import before_collective

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
