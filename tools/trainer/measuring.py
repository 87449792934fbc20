"""Measures a network on held-out data: during training, at its end, and alone; stops training that no longer helps."""

from __future__ import annotations

import math

import mindspore as ms

from tools.config import modes
from tools.trainer import agreement, datasets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tools.trainer.build import Run
    from tools.trainer.metrics import Count


class HeldOut:
    """The measurement of `model` on held-out data, of which `part` is this rank's, see `datasets.held_out`.

    metrics: the model's, by name; sums: adds what the ranks counted, where each has a part.  All ranks measure at the
    same time, and get the same values: a rank that went on alone would wait half a minute for this one, and then fail.
    """

    def __init__(
        self,
        model: ms.Model,
        part: tuple[ms.dataset.Dataset, int] | None,
        metrics: dict[str, Count],
        sums: Callable[[list[int]], list[int]] | None = None,
    ) -> None:
        self.model = model
        self.part = part
        self.metrics = metrics
        self.sums = sums

    def values(self) -> dict[str, float]:
        """The value of each metric on all of the data."""
        for metric in self.metrics.values():
            metric.clear()
        if self.part:
            data, samples = self.part
            for metric in self.metrics.values():
                metric.limit = samples
            self.model.eval(data, dataset_sink_mode=False)
        for metric in self.metrics.values():
            if self.sums:
                metric.counts = self.sums(metric.counts)
        return {name: metric.eval() for name, metric in self.metrics.items()}

    def report(self, place: str = "") -> dict[str, float]:
        """Prints a line for each metric; returns the values."""
        values = self.values()
        for name, value in values.items():
            print(f"{place}{name} on held-out data: {value:.2%}", flush=True)
        return values


class Evaluate(ms.Callback):
    """Measures after every epoch, with one line per metric, and ends training when that shows no improvement.

    early_stop: the section of a config, or None.  The ranks stop together, because they measure the same.
    """

    def __init__(self, held_out: HeldOut, early_stop: dict | None = None) -> None:
        super().__init__()
        self.held_out = held_out
        self.early_stop = early_stop
        self.best = -math.inf
        self.best_epoch = 0

    def on_train_epoch_end(self, run_context: ms.RunContext) -> None:
        if run_context.get_stop_requested():
            return  # somebody waits for the end
        epoch = run_context.original_args().cur_epoch_num
        value = next(iter(self.held_out.report(f"epoch: {epoch}, ").values()))
        if self.early_stop is None:
            return
        if value > self.best + self.early_stop["min_delta"] or self.best == -math.inf:
            self.best, self.best_epoch = value, epoch
        elif epoch - self.best_epoch >= self.early_stop["patience"]:
            best = f"{self.best:.2%} of epoch {self.best_epoch}"
            print(f"epoch: {epoch}, early_stop ends the training: no improvement on the {best}", flush=True)
            run_context.request_stop()


def of(config: dict, run: Run, rank: int, ranks: int) -> HeldOut | None:
    """The measurement that the section `eval` of a config describes, on rank `rank` of `ranks`; None without one."""
    if "eval" not in config:
        return None
    share = modes.held_out_ranks(config, ranks)
    part = datasets.held_out(config, rank % share, share)
    return HeldOut(run.measure, part, run.metrics, agreement.sums if share > 1 else None)
