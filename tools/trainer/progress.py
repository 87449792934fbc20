"""What training says while it runs, and when it stops by itself.

The lines have a fixed form, which tools/plot_log.py and other tools read:

  epoch: 1 step: 156, loss is 2.0084016
  epoch: 1 step: 156, step time is 45.1 ms, 3.2 ms of it for data
  epoch: 1, accuracy on held-out data: 97.21%
"""

import math
import time

import mindspore as ms


class LossNotFinite(Exception):
    """Training has gone wrong: the text names epoch and step."""


class Progress(ms.Callback):
    """Prints loss and step time every `interval` steps; stops training when the loss is no finite number.

    The step time is the mean of the steps since the last such line; the time for data is what a rank waited for
    its next batch, which shows a slow rank even where the others wait for it.  With dataset sink mode MindSpore
    calls back once an epoch only, for its last step, and the time for data cannot be told from the rest.
    """

    def __init__(self, interval, stop_at_nan=True, clock=time.perf_counter):
        super().__init__()
        self.interval = interval
        self.stop_at_nan = stop_at_nan
        self.clock = clock
        self.mark = self.step_ended = None  # when the last line was printed; when the last step ended
        self.said = 0  # number of the step of the last line
        self.waited = 0.0  # seconds for data since then

    def on_train_epoch_begin(self, run_context):
        """What lies between two epochs (evaluation, checkpoints) is no step's time."""
        self.step_ended = self.mark = self.clock()
        self.said = run_context.original_args().cur_step_num
        self.waited = 0.0

    def on_train_step_begin(self, run_context):
        """A batch has come."""
        self.waited += self.clock() - self.step_ended

    def on_train_step_end(self, run_context):
        """A step (in sink mode: an epoch) is done."""
        run = run_context.original_args()
        loss = loss_value(run.net_outputs)
        now = self.step_ended = self.clock()
        step = (run.cur_step_num - 1) % run.batch_num + 1
        if self.stop_at_nan and not math.isfinite(loss):
            raise LossNotFinite(_advice(run, step, loss))
        steps = run.cur_step_num - self.said
        if steps < self.interval and step < run.batch_num:
            return
        place = f"epoch: {run.cur_epoch_num} step: {step}"
        data = "" if run.dataset_sink_mode else f", {self.waited / steps * 1e3:.1f} ms of it for data"
        print(f"{place}, loss is {loss}", flush=True)
        print(f"{place}, step time is {(now - self.mark) / steps * 1e3:.1f} ms{data}", flush=True)
        self.mark, self.said, self.waited = now, run.cur_step_num, 0.0


def loss_value(outputs):
    """The loss among what a training step returns, as a float; some steps return more than the loss."""
    if isinstance(outputs, (tuple, list)):
        outputs = outputs[0]
    return float(outputs.asnumpy().mean()) if isinstance(outputs, ms.Tensor) else float(outputs)


def _advice(run, step, loss):
    if run.dataset_sink_mode:
        where = f"at the end of epoch {run.cur_epoch_num} (with train.dataset_sink_mode=False the step can be told)"
    else:
        where = f"in epoch {run.cur_epoch_num}, step {step} of {run.batch_num}"
    return (
        f"the loss is {loss} {where}; lower scheduler.lr, look at the data, or go on all the same with "
        "train.stop_at_nan=False"
    )


class Evaluate(ms.Callback):
    """Measures `model` on the dataset `held_out` after every epoch, with one line a metric.

    Every rank measures all of it: ranks that went on alone would wait for this one no longer than half a minute.
    """

    def __init__(self, model, held_out):
        super().__init__()
        self.model = model
        self.held_out = held_out

    def on_train_epoch_end(self, run_context):
        """An epoch is done."""
        report(self.model, self.held_out, f"epoch: {run_context.original_args().cur_epoch_num}, ")


def report(model, held_out, place=""):
    """Prints a line for each of the model's metrics on the dataset `held_out`."""
    for name, value in model.eval(held_out, dataset_sink_mode=False).items():
        print(f"{place}{name} on held-out data: {value:.2%}", flush=True)
