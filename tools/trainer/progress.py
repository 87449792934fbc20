"""Prints the lines of training while it runs, and when it stops by itself.

The lines have a fixed form, which tools/plot_log.py and other tools read:

  epoch: 1 step: 156, loss is 2.0084016
  epoch: 1 step: 156, step time is 45.1 ms, 3.2 ms of it for data, 1419.1 samples/s, ends in 0:03:21
  epoch: 1 step: 156, step time is 45.1 ms, 3.2 ms of it for data, 30.1 ms before the collective, 1419.1 samples/s
  epoch: 1, accuracy on held-out data: 97.21%
"""

from __future__ import annotations

import math
import time
from datetime import timedelta

import mindspore as ms

from hccl_tools.common.language import tr
from hccl_tools.common.refusal import BAD, Refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Progress(ms.Callback):
    """Prints loss and step time every `interval` steps of an epoch; stops when the loss is NaN or infinite.

    The step time is the mean of the steps since the last such line; the time for data is what a rank waited for
    its next batch, which shows a slow rank even where the others wait for it.  With dataset sink mode MindSpore
    calls back once an epoch only, for its last step, and the time for data cannot be told from the rest.

    epochs, batch: how many epochs there are in all, and samples in a step of all ranks together; without them no line
    states when training ends, and how many samples it takes a second.

    own_ended: when, by `clock`, the rank was done with its own part of the last step.  With it the lines say how long a
    step took until then, with its data: the time before the collective, which shows a slow rank.
    """

    def __init__(
        self,
        interval: int,
        stop_at_nan: bool = True,
        rank: int = 0,
        epochs: int | None = None,
        batch: int | None = None,
        own_ended: Callable[[], float] | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        super().__init__()
        self.interval = interval
        self.stop_at_nan = stop_at_nan
        self.rank = rank
        self.epochs = epochs
        self.batch = batch
        self.own_ended = own_ended
        self.clock = clock
        self.first: tuple[float, int] | None = None  # when the first line was printed, and the number of its step
        self.printed = self.step_ended = 0.0  # when the last line was printed; when the last step ended
        self.printed_step = 0  # number of the step of the last line
        self.waited = self.own = 0.0  # seconds since then for data, and for all before the collective

    def on_train_epoch_begin(self, run_context: ms.RunContext) -> None:
        """Time between two epochs (evaluation, checkpoints) does not count for a step."""
        self.step_ended = self.printed = self.clock()
        self.printed_step = run_context.original_args().cur_step_num
        self.waited = self.own = 0.0

    def on_train_step_begin(self, run_context: ms.RunContext) -> None:
        self.waited += self.clock() - self.step_ended

    def on_train_step_end(self, run_context: ms.RunContext) -> None:
        """A step (in sink mode: an epoch) is done."""
        run = run_context.original_args()
        loss = loss_value(run.net_outputs)
        if self.own_ended:
            self.own += self.own_ended() - self.step_ended
        now = self.step_ended = self.clock()
        step = (run.cur_step_num - 1) % run.batch_num + 1
        if self.stop_at_nan and not math.isfinite(loss):
            raise Refusal(BAD, f"rank {self.rank}: {_advice(run, step, loss)}")
        steps = run.cur_step_num - self.printed_step
        place = f"epoch: {run.cur_epoch_num} step: {step}"
        if (scale := skipped(run.net_outputs)) is not None:
            print(f"{place}, gradients are not finite: no weight changed; the loss scale is now {scale:g}", flush=True)
        if step % self.interval and step < run.batch_num:
            return
        took = (now - self.printed) / steps
        parts = "" if run.dataset_sink_mode else f", {self.waited / steps * 1e3:.1f} ms of it for data"
        if self.own_ended:
            parts += f", {self.own / steps * 1e3:.1f} ms before the collective"
        print(f"{place}, loss is {loss}", flush=True)
        print(f"{place}, step time is {took * 1e3:.1f} ms{parts}{self._pace(run, step, took)}", flush=True)
        self.printed, self.printed_step, self.waited, self.own = now, run.cur_step_num, 0.0, 0.0

    def _pace(self, run: Any, step: int, took: float) -> str:
        """Samples per second, and the time until the end: from the first line on, what a step took with all between."""
        if self.epochs is None or self.batch is None:
            return ""
        now, number = self.step_ended, run.cur_step_num
        rate = f", {self.batch / took:.1f} samples/s" if took else ""
        if self.first is None:
            self.first = now, number
        else:
            took = (now - self.first[0]) / (number - self.first[1])
        steps_left = (self.epochs - run.cur_epoch_num) * run.batch_num + run.batch_num - step
        return f"{rate}, ends in {timedelta(seconds=round(steps_left * took))}"


def skipped(outputs: Any) -> float | None:
    """The new loss scale where a step (tools/trainer/steps.py) changed no weight; None where it did."""
    if not isinstance(outputs, tuple) or len(outputs) != 3 or bool(outputs[1].asnumpy()):
        return None
    return float(outputs[2].asnumpy())


def loss_value(outputs: Any) -> float:
    """The loss among what a training step returns, as a float; some steps return more than the loss."""
    if isinstance(outputs, (tuple, list)):
        outputs = outputs[0]
    return float(outputs.asnumpy().mean()) if isinstance(outputs, ms.Tensor) else float(outputs)


def _advice(run: Any, step: int, loss: float) -> str:
    remedy = tr("lower scheduler.lr, check the data, or continue anyway with train.stop_at_nan=False")
    if run.dataset_sink_mode:
        return tr(
            "the loss is {loss} at the end of epoch {epoch} (train.dataset_sink_mode=False also shows the step); "
            "{remedy}",
            loss=loss,
            epoch=run.cur_epoch_num,
            remedy=remedy,
        )
    return tr(
        "the loss is {loss} in epoch {epoch}, step {step} of {steps}; {remedy}",
        loss=loss,
        epoch=run.cur_epoch_num,
        step=step,
        steps=run.batch_num,
        remedy=remedy,
    )
