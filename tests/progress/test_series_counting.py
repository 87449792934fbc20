"""tools/progress/counting.py: where a step is in a run, whether steps count on through the epochs or begin anew."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tools.progress import counting, lines, series

READER = series.Reader(lines.load({}))


def steps_of(*logs):
    """The numbers of all steps in the run, log by log."""
    read = [READER.of_lines(log) for log in logs]
    axis = counting.axis_of(one.counted for one in read)
    return [[axis.at(place) for place in one.places] for one in read]


def on(*steps, length=10):
    """Lines of a trainer that counts the steps of the run."""
    return [f"epoch: {(step - 1) // length + 1} step: {step}, loss is 1.5" for step in steps]


def anew(*steps, length=10):
    """Lines of a trainer that counts the steps of each epoch; steps: of the run."""
    return [f"epoch: {(step - 1) // length + 1} step: {(step - 1) % length + 1}, loss is 1.5" for step in steps]


PARTS = {
    "all steps": [range(1, 31)],
    "every seventh": [range(1, 60, 7)],
    "one epoch each": [range(1, 11), range(11, 21), range(21, 31)],
    "two attempts, the second from the middle of an epoch": [range(1, 16), range(12, 31)],
    "two attempts, each in one epoch": [range(1, 11), range(11, 21)],
    "the same steps again in one log": [[*range(1, 26), *range(11, 31)]],
    "one rank stopped in the first epoch": [range(1, 31), range(1, 6)],
}


@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
@pytest.mark.parametrize("written", [on, anew])
def test_steps_are_those_of_the_run(written, parts):
    if written is anew and not any(len(set(part)) > 10 for part in parts):
        parts = [*parts, range(8, 13)]  # one log goes from an epoch to the next
    found = steps_of(*(written(*part) for part in parts))
    assert found == [sorted(set(part)) for part in parts]


def test_a_log_that_is_cut_between_the_epochs_has_no_hole():
    log = series._Log()
    for part in (range(1, 11), range(11, 21), range(21, 31)):  # as blocks of a large log
        log.take("\n".join(on(*part)).encode(), False, READER)
    axis = counting.axis_of([log.series(1, 1).counted])
    assert [axis.at(place) for place in log.series(1, 1).places] == list(range(1, 31))


def test_a_total_of_the_epoch_that_is_exceeded():
    log = [f"Epoch: [{(step - 1) // 10 + 1}/3], batch: [{step}/10], loss: 1.0, lr: 0.1" for step in (5, 17, 29)]
    assert steps_of(log) == [[5, 17, 29]]


def test_a_total_of_the_run():
    log = [f"Epoch: [{(step - 1) // 10 + 1}/3], batch: [{step}/30], loss: 1.0, lr: 0.1" for step in (5, 17, 29)]
    assert steps_of(log) == [[5, 17, 29]]


def test_a_total_of_the_epoch_that_is_kept_says_that_steps_begin_anew():
    log = [f"Epoch: [{epoch}/2], batch: [{step}/30], loss: 1.0, lr: 0.1" for epoch, step in ((1, 5), (2, 7))]
    assert steps_of(log) == [[5, 37]]


def test_epochs_from_zero():
    assert steps_of([f"epoch: {step // 10} step: {step}, loss is 1" for step in range(30)]) == [list(range(30))]
    assert steps_of([f"epoch: {step // 10} step: {step % 10}, loss is 1" for step in range(30)]) == [list(range(30))]


def test_a_counter_that_begins_again_after_a_restart_is_still_one_of_the_run():
    again = [f"epoch: {epoch} step: {step}, loss is 1" for epoch, step in ((2, 1), (2, 2), (3, 3), (3, 4))]
    assert steps_of(on(*range(1, 16)), again)[0] == list(range(1, 16))


def test_bars_of_an_evaluation_do_not_make_steps_begin_anew():
    bars = [f"50%|# | {step}/5 [00:10<00:10,  2.0s/it]" for step in range(1, 6)]
    (found,) = steps_of([*on(*range(1, 11)), *bars, *on(*range(11, 21))])
    assert found[:5] == [1, 2, 3, 4, 5] and found[-1] == 20


def test_ranks_with_a_line_for_each_epoch_only_do_not_decide():
    found = steps_of(on(*range(1, 31)), [f"epoch: {epoch} train loss: 1.75" for epoch in (1, 2, 3)])
    assert found[0] == list(range(1, 31))


PART = st.tuples(st.integers(1, 60), st.integers(1, 40), st.integers(1, 5))


@pytest.mark.slow
@given(st.integers(1, 15), st.lists(PART, min_size=1, max_size=4))
def test_steps_of_the_run_stay_whatever_part_a_log_has(length, parts):
    logs = [range(begin, begin + number, every) for begin, number, every in parts]
    assert steps_of(*(on(*log, length=length) for log in logs)) == [list(log) for log in logs]


@pytest.mark.slow
@given(st.integers(2, 15), st.lists(PART, min_size=1, max_size=4))
def test_steps_of_epochs_are_put_one_after_the_other(length, parts):
    whole = range(1, 2 * length + 1)  # one log has it all, so the length of an epoch is known
    logs = [whole, *(range(begin, begin + number, every) for begin, number, every in parts)]
    assert steps_of(*(anew(*log, length=length) for log in logs)) == [list(log) for log in logs]


@pytest.mark.slow
@given(st.integers(2, 15), st.lists(st.tuples(st.integers(1, 4), st.integers(1, 15)), min_size=1, max_size=12))
def test_any_places_have_numbers_and_different_ones(length, places):
    log = [f"epoch: {epoch} step: {min(step, length)}, loss is 1" for epoch, step in places]
    (found,) = steps_of(log)
    union = {(epoch, min(step, length)) for epoch, step in places}
    assume(any(a < b and s >= t for a, s in union for b, t in union))
    assert len(found) == len(set(found)) == len(union) and found == sorted(found)
