"""Ends training on a request: all ranks after the same step, each with a checkpoint.

A signal reaches the ranks at different steps.  So they ask each other about once a second, and stop together if one of
them was asked.  They must ask after the same step: each time they agree on the step of the next time, too.
"""

from __future__ import annotations

import time

import mindspore as ms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tools.trainer.end_requests import Requests
    from tools.trainer.resume import SaveCheckpoints

ASK_EVERY = 1.0  # seconds
SAVED = "asked to end: the checkpoint is saved"  # tools/features/saving.py looks for this line


class SaveOnRequest(ms.Callback):
    """saves: the callback that saves; gather: the numbers of all ranks, one row each; None: there is one rank.

    Place it behind the callback that saves.  With dataset sink mode MindSpore calls back once an epoch, so the request
    is heeded at the end of the epoch.  ended: training has ended on request.
    """

    def __init__(
        self,
        requests: Requests,
        saves: SaveCheckpoints,
        gather: Callable[[list[int]], list[list[int]]] | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self.requests, self.saves, self.gather, self.clock = requests, saves, gather, clock
        self.ended = False
        self._next = 0  # the step after which the ranks ask each other
        self._last: tuple[int, float] | None = None  # the step of the last time, and when that was

    def on_train_begin(self, run_context: ms.RunContext) -> None:
        self.requests.heed()

    def on_train_step_end(self, run_context: ms.RunContext) -> None:
        run = run_context.original_args()
        if self.gather is not None and run.cur_step_num < self._next:
            return
        if self._are_asked(run.cur_step_num):
            self.ended = True
            if run.cur_step_num > self.saves.saved:
                self.saves.save(run_context)
            step = (run.cur_step_num - 1) % run.batch_num + 1
            print(f"epoch: {run.cur_epoch_num} step: {step}, {SAVED}", flush=True)
            run_context.request_stop()

    def _are_asked(self, step: int) -> bool:
        """Whether a rank was asked to end; also agrees on the next step after which this is called."""
        if self.gather is None:
            return self.requests.asked
        rows = self.gather([int(self.requests.asked), self._steps_until_next(step)])
        self._next = step + min(row[1] for row in rows)
        return any(row[0] for row in rows)

    def _steps_until_next(self, step: int) -> int:
        """About as many as fit into ASK_EVERY; at most twice those of the last time, because steps may become slow."""
        now, last = self.clock(), self._last
        self._last = step, now
        if last is None:
            return 1
        steps = step - last[0]
        took = (now - last[1]) / steps
        return max(1, min(2 * steps, int(ASK_EVERY / took) if took > 0 else 2 * steps))
