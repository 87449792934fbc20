"""Loss lines in upstream's form, step times, and the end of a training that has gone wrong."""

import types

import pytest
from suite.needs import Later, needs_packages

from hccl_tools.common.refusal import Refusal
from tools.progress import counting, lines, series

ms, np, progress = Later("mindspore"), Later("numpy"), Later("tools.trainer.progress")

pytestmark = [needs_packages("mindspore", "numpy"), pytest.mark.thorough, pytest.mark.trains]


class Run:
    """Plays MindSpore: calls a callback back for epochs of `losses`, on a clock that the test moves."""

    def __init__(self, interval, sink=False, **how):
        self.now = 100.0
        self.progress = progress.Progress(interval, clock=lambda: self.now, **how)
        self.state = types.SimpleNamespace(cur_step_num=0, cur_epoch_num=0, dataset_sink_mode=sink)
        self.state.original_args = lambda: self.state

    def epoch(self, losses, data=0.25, step=1.0):
        """One epoch whose batches come after `data` seconds and take `step` seconds each."""
        state, sink = self.state, self.state.dataset_sink_mode
        state.cur_epoch_num += 1
        state.batch_num = len(losses)
        self.progress.on_train_epoch_begin(state)
        for loss in losses[-1:] if sink else losses:
            self.now += data
            state.cur_step_num += len(losses) if sink else 1
            self.progress.on_train_step_begin(state)
            self.now += step
            state.net_outputs = ms.Tensor(np.float32(loss))
            self.progress.on_train_step_end(state)


def test_lines_are_as_upstream_and_plot_log_know_them(capsys):
    run = Run(interval=2)
    run.epoch([4.0, 3.0, 2.0])
    run.now += 50  # evaluation and checkpoints between two epochs do not count for a step
    run.epoch([1.5, 1.0, 0.5])
    printed = capsys.readouterr().out
    assert printed.splitlines()[:4] == [
        "epoch: 1 step: 2, loss is 3.0",
        "epoch: 1 step: 2, step time is 1250.0 ms, 250.0 ms of it for data",
        "epoch: 1 step: 3, loss is 2.0",
        "epoch: 1 step: 3, step time is 1250.0 ms, 250.0 ms of it for data",
    ]
    log = series.Reader(lines.load({})).of_lines(printed.splitlines())
    assert [counting.axis_of([log.counted]).at(place) for place in log.places] == [2, 3, 5, 6]
    assert log.columns == {"loss": [3.0, 2.0, 1.0, 0.5], "step_ms": [1250.0] * 4, "data_ms": [250.0] * 4}


def test_a_line_says_how_long_a_rank_took_before_it_waited_for_the_others(capsys):
    run = Run(interval=2)
    run.progress.own_ended = lambda: run.now - 0.75  # of a step of one second
    run.epoch([4.0, 3.0, 2.0])
    parts = "step time is 1250.0 ms, 250.0 ms of it for data, 500.0 ms before the collective"
    printed = capsys.readouterr().out.splitlines()
    assert printed[1::2] == [f"epoch: 1 step: {step}, {parts}" for step in (2, 3)]
    log = series.Reader(lines.load({})).of_lines(printed)
    assert log.places == [(1, 2), (1, 3)]
    times = {"step_ms": [1250.0] * 2, "data_ms": [250.0] * 2, "before_ms": [500.0] * 2}
    assert log.columns == {"loss": [3.0, 2.0], **times}


def test_with_data_sinking_there_is_one_line_an_epoch(capsys):
    run = Run(interval=1, sink=True)
    run.epoch([4.0, 3.0, 2.0, 1.0], data=0, step=8)
    assert capsys.readouterr().out == "epoch: 1 step: 4, loss is 1.0\nepoch: 1 step: 4, step time is 2000.0 ms\n"


@pytest.mark.parametrize("loss", [float("nan"), float("inf"), float("-inf")])
def test_a_loss_that_is_no_number_stops_training_at_its_step_even_between_two_lines(loss):
    run = Run(interval=100)
    with pytest.raises(Refusal, match=rf"rank 0: the loss is {loss} in epoch 1, step 2 of 3; lower scheduler.lr"):
        run.epoch([1.0, loss, 1.0])


def test_in_sink_mode_the_message_says_how_to_learn_the_step():
    run = Run(interval=100, sink=True)
    with pytest.raises(Refusal, match=r"at the end of epoch 1 \(train.dataset_sink_mode=False also shows the step"):
        run.epoch([1.0, float("nan")])


def test_who_asks_for_it_goes_on(capsys):
    run = Run(interval=2, stop_at_nan=False)
    run.epoch([1.0, float("nan"), 1.0])
    assert "epoch: 1 step: 2, loss is nan" in capsys.readouterr().out


def test_of_what_a_step_returns_the_loss_comes_first():
    assert progress.loss_value((ms.Tensor([1.0, 3.0]), ms.Tensor(False))) == 2.0


def test_lines_say_samples_per_second_of_all_ranks_and_when_training_ends(capsys):
    run = Run(interval=2, epochs=3, batch=50)
    run.epoch([4.0, 3.0, 2.0, 1.0])
    run.now += 20  # measurement and a checkpoint
    run.epoch([1.5, 1.0, 0.5, 0.5])
    printed = [line.partition("of it for data, ")[2] for line in capsys.readouterr().out.splitlines()[1::2]]
    # a step of 1.25 s; from the first line on: 2.5 s for 2 steps, then 25 s for 4, and 27.5 s for 6
    left = ["0:00:12", "0:00:10", "0:00:38", "0:00:18"]
    assert printed == [f"40.0 samples/s, ends in {time}" for time in left]


def test_a_step_that_changed_no_weight_is_named_even_between_two_lines(capsys):
    run = Run(interval=3)
    tensors = [(ms.Tensor(1.0, ms.float32), ms.Tensor(good), ms.Tensor(512.0, ms.float32)) for good in (True, False)]
    assert [progress.skipped(outputs) for outputs in tensors] == [None, 512]
    assert progress.skipped(tensors[0][0]) is None
    run.state.batch_num, run.state.cur_epoch_num, run.state.net_outputs = 3, 1, tensors[1]
    run.progress.on_train_epoch_begin(run.state)
    run.state.cur_step_num = 1
    run.progress.on_train_step_end(run.state)
    said = "epoch: 1 step: 1, gradients are not finite: no weight changed; the loss scale is now 512\n"
    assert capsys.readouterr().out == said
