"""The lines that training prints while it runs, and when it stops by itself.

The lines have a fixed form, which tools/plot_log.py and other tools read:

  epoch: 1 step: 156, loss is 2.0084016
  epoch: 1 step: 156, step time is 45.1 ms, 3.2 ms of it for data
  epoch: 1, accuracy on held-out data: 97.21%
"""

from __future__ import annotations

import math
import time

import mindspore as ms

from hccl_tools.common.refusal import BAD, Refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Progress(ms.Callback):
    """Prints loss and step time every `interval` steps; stops training when the loss is NaN or infinite.

    The step time is the mean of the steps since the last such line; the time for data is what a rank waited for
    its next batch, which shows a slow rank even where the others wait for it.  With dataset sink mode MindSpore
    calls back once an epoch only, for its last step, and the time for data cannot be told from the rest.
    """

    def __init__(
        self,
        interval: int,
        stop_at_nan: bool = True,
        rank: int = 0,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        super().__init__()
        self.interval = interval
        self.stop_at_nan = stop_at_nan
        self.rank = rank
        self.clock = clock
        self.printed = self.step_ended = 0.0  # when the last line was printed; when the last step ended
        self.printed_step = 0  # number of the step of the last line
        self.waited = 0.0  # seconds for data since then

    def on_train_epoch_begin(self, run_context: ms.RunContext) -> None:
        """Time between two epochs (evaluation, checkpoints) does not count for a step."""
        self.step_ended = self.printed = self.clock()
        self.printed_step = run_context.original_args().cur_step_num
        self.waited = 0.0

    def on_train_step_begin(self, run_context: ms.RunContext) -> None:
        self.waited += self.clock() - self.step_ended

    def on_train_step_end(self, run_context: ms.RunContext) -> None:
        """A step (in sink mode: an epoch) is done."""
        run = run_context.original_args()
        loss = loss_value(run.net_outputs)
        now = self.step_ended = self.clock()
        step = (run.cur_step_num - 1) % run.batch_num + 1
        if self.stop_at_nan and not math.isfinite(loss):
            raise Refusal(BAD, f"rank {self.rank}: {_advice(run, step, loss)}")
        steps = run.cur_step_num - self.printed_step
        if steps < self.interval and step < run.batch_num:
            return
        place = f"epoch: {run.cur_epoch_num} step: {step}"
        data = "" if run.dataset_sink_mode else f", {self.waited / steps * 1e3:.1f} ms of it for data"
        print(f"{place}, loss is {loss}", flush=True)
        print(f"{place}, step time is {(now - self.printed) / steps * 1e3:.1f} ms{data}", flush=True)
        self.printed, self.printed_step, self.waited = now, run.cur_step_num, 0.0


def loss_value(outputs: Any) -> float:
    """The loss among what a training step returns, as a float; some steps return more than the loss."""
    if isinstance(outputs, (tuple, list)):
        outputs = outputs[0]
    return float(outputs.asnumpy().mean()) if isinstance(outputs, ms.Tensor) else float(outputs)


def _advice(run: Any, step: int, loss: float) -> str:
    if run.dataset_sink_mode:
        where = f"at the end of epoch {run.cur_epoch_num} (train.dataset_sink_mode=False also shows the step)"
    else:
        where = f"in epoch {run.cur_epoch_num}, step {step} of {run.batch_num}"
    return (
        f"the loss is {loss} {where}; lower scheduler.lr, check the data, or continue in spite of it with "
        "train.stop_at_nan=False"
    )


class Evaluate(ms.Callback):
    """Measures `model` on the dataset `held_out` after every epoch, with one line per metric.

    Every rank measures all of it: a rank that went on alone would wait half a minute for this one, and then fail.
    """

    def __init__(self, model: ms.Model, held_out: ms.dataset.Dataset) -> None:
        super().__init__()
        self.model = model
        self.held_out = held_out

    def on_train_epoch_end(self, run_context: ms.RunContext) -> None:
        report(self.model, self.held_out, f"epoch: {run_context.original_args().cur_epoch_num}, ")


def report(model: ms.Model, held_out: ms.dataset.Dataset, place: str = "") -> None:
    """Prints a line for each of the model's metrics on the dataset `held_out`."""
    for name, value in model.eval(held_out, dataset_sink_mode=False).items():
        print(f"{place}{name} on held-out data: {value:.2%}", flush=True)
