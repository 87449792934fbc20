"""The general entry of configs/progress.yaml: forms of lines with a place and a loss, and logs that have none."""

from pathlib import Path

import pytest
import yaml
from suite.cases import for_each

from tools.progress import counting, lines, series

PATTERNS = lines.load({})

DATA = yaml.safe_load((Path(__file__).parent / "progress_forms.yaml").read_text(encoding="utf-8"))
FORMS = [(form["line"], form["says"]) for form in DATA["forms"]]


@for_each("line, says", FORMS)
def test_a_place_and_a_loss_are_read_in_any_form(line, says):
    assert lines.last_of(line, PATTERNS) == pytest.approx(says, nan_ok=True)


@for_each("line, says", [form for form in FORMS if "\r" not in form[0]])
def test_a_second_line_of_the_kind_costs_no_search_and_says_its_own_numbers(line, says):
    kinds = lines.Kinds(PATTERNS)
    twice = line.encode() + b"\n" + line.replace("5", "6").encode()
    (_, first), (_, second) = kinds.of_block(twice)
    assert first == pytest.approx(says, nan_ok=True)
    assert second == pytest.approx(lines.last_of(line.replace("5", "6"), PATTERNS), nan_ok=True)
    assert len(kinds._kinds) == 1


@for_each("name", DATA["none"])
def test_a_log_without_progress_has_no_numbers(name):
    text = DATA["none"][name]
    for line in text.split("\n"):
        assert lines.last_of(line, PATTERNS) == {}, line
    assert lines.last_of(text, PATTERNS) == {}
    assert lines.Kinds(PATTERNS).losses_of(text) == []


ODD = [
    *("loss " * 800, "epoch 1 " + "a" * 3990, "epoch " * 600 + "loss", "step [" * 600 + "loss: ", "loss" + " " * 3900),
    *("1%| | 1/2 [" + "9" * 3980, "1%| | 1/2 [" + "9." * 1990),
]


@pytest.mark.parametrize("line", ODD, ids=range(len(ODD)))
def test_an_odd_line_takes_no_time(line):
    """An expression that tries again and again would take minutes: the suite's limit of time ends it."""
    assert lines.last_of(line, PATTERNS) == {}


def test_the_table_tells_no_digits_apart():
    """Lines that differ in digits only would each cost a search."""
    assert lines.Kinds(PATTERNS)._remembers


def _series(text):
    return series.Reader(PATTERNS).of_lines(text.split("\n"))


def _steps(text):
    log = _series(text)
    axis = counting.axis_of([log.counted])
    return [axis.at(place) for place in log.places]


def test_a_trainer_with_a_line_for_each_epoch_has_a_curve():
    log = _series("epoch: 1 train loss: 2.5\nepoch: 2 train loss: 1.5\n")
    assert (log.places, log.columns) == ([(1, 1), (2, 1)], {"loss": [2.5, 1.5]})
    assert _steps("epoch: 1 train loss: 2.5\nepoch: 2 train loss: 1.5\n") == [1, 2]


def test_the_mean_at_the_end_of_an_epoch_does_not_replace_the_loss_of_its_last_step():
    log = _series("epoch: 1 step: 9, loss is 2.5\nepoch 1: epoch time: 90, per step time: 10.5, avg loss: 7.5\n")
    assert log.columns == {"loss": [2.5], "step_ms": [10.5]}


def test_epochs_may_begin_at_0():
    assert _steps("epoch 0 step 3/3 loss 3\nepoch 1 step 1/3 loss 2\nepoch 2 step 2/3 loss 1") == [3, 4, 8]


def test_steps_may_count_on_through_the_epochs():
    assert _steps("epoch 1 step 5 loss 3\nepoch 1 step 9 loss 2\nepoch 2 step 12 loss 1\nepoch 3 step 30 loss 1") == [
        5,
        9,
        12,
        30,
    ]
    assert _steps("epoch[0], iter[5], loss:3\nepoch[1], iter[12], loss:2\nepoch[2], iter[20], loss:1") == [5, 12, 20]


def test_a_text_says_the_place_of_its_last_step_although_a_mean_follows():
    text = "epoch: 2 step: 9, loss is 2.5\nepoch: 2 train loss: 7.5 epoch time: 3 s\n"
    assert lines.last_of(text, PATTERNS) == {"epoch": 2, "step": 9, "loss": 7.5}
