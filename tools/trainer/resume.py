"""Saves checkpoints during training and on a request to end, and resumes a run from them."""

from __future__ import annotations

import os
import time

import mindspore as ms
from mindspore import dataset as datasets

from hccl_tools.common.language import tr
from hccl_tools.common.words import one_line
from tools.config import modes
from tools.trainer import agreement, checkpoints
from tools.trainer.checkpoints import choosing, labels, saving, strategies

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mindspore import nn

    from tools.trainer.end_requests import Requests

ASK_EVERY = 1.0  # seconds
SAVED = "asked to end: the checkpoint is saved"  # tools/features/saving.py looks for this line


class SaveCheckpoints(ms.Callback):
    """Saves a labelled checkpoint after every epoch, or every N steps, and removes the run's oldest.

    network: the training step with network and optimizer in it; label: what all checkpoints of this rank
    share; prefix: how file names begin; section: the config's `train`; done: steps done before this training.

    Steps count from the beginning of the run.  With dataset sink mode MindSpore calls back once an epoch, so
    a checkpoint that falls into an epoch is saved at its end.
    """

    def __init__(
        self, network: nn.Cell, folder: str, prefix: str, label: labels.Label, section: dict, done: int = 0
    ) -> None:
        super().__init__()
        self.network = network
        self.folder = folder
        self.prefix = prefix
        self.label = label
        self.section = section
        self.saved = done  # the step of the newest checkpoint
        self.every = section.get("save_checkpoint_steps")

    def on_train_begin(self, run_context: ms.RunContext) -> None:
        """MindSpore would count the steps of a continued run from 0."""
        run_context.original_args().cur_step_num = self.saved

    def on_train_step_end(self, run_context: ms.RunContext) -> None:
        if self.every and run_context.original_args().cur_step_num // self.every > self.saved // self.every:
            self.save(run_context)

    def on_train_epoch_end(self, run_context: ms.RunContext) -> None:
        if not self.every and run_context.original_args().cur_step_num > self.saved:
            self.save(run_context)

    def on_train_end(self, run_context: ms.RunContext) -> None:
        """The last weights are saved, whatever step that is."""
        if run_context.original_args().cur_step_num > self.saved:
            self.save(run_context)

    def save(self, run_context: ms.RunContext) -> None:
        """Saves a checkpoint of the step that was done last."""
        run = run_context.original_args()
        self.saved = run.cur_step_num
        steps = (run.cur_step_num - 1) % run.batch_num + 1
        label = self.label.replace(epoch=run.cur_epoch_num, steps=steps, epoch_steps=run.batch_num)
        with saving.into(self.folder):
            saving.save(self.network, self.folder, self.prefix, label, self.section["integrated_save"])
            # Another rank may end before it has saved this one: then all go on from the one before.
            least = 2 if self.label.ranks > 1 else 1
            saving.remove_old(self.folder, self.label.run, max(least, self.section["keep_checkpoint_max"]))


class Continuation:
    """The point from which a run starts: the finished epochs and steps, and the callback that saves the next.

    With RESUME=1 in the environment it goes on from this run's own checkpoints, with
    train.resume_from from another folder's.  What it finds in neither it refuses; after a restart by the launcher it
    starts from the beginning, for the first attempt may have ended before it saved.
    """

    def __init__(self, config: dict, rank: int, ranks: int, epoch_steps: int) -> None:
        self.config = config
        self.rank = rank
        self.ranks = ranks
        self.epoch_steps = epoch_steps
        self.root = checkpoints.folder_of(config)
        self.folder = checkpoints.rank_folder(self.root, rank)
        self.found = self._choose()
        self.epochs, self.steps = self.found[1].done(epoch_steps) if self.found else (0, 0)
        if self.found and self.steps and config["train"]["dataset_sink_mode"]:
            text = tr(
                "{path} was saved after step {steps} of {epoch_steps} of an epoch, and with "
                "dataset sink mode training can only go on from the end of an epoch; continue "
                "with -o train.dataset_sink_mode=False",
                path=one_line(self.found[0]),
                steps=self.steps,
                epoch_steps=epoch_steps,
            )
            raise checkpoints.CheckpointError(text)

    @property
    def steps_done(self) -> int:
        """The steps of all epochs that are done."""
        return self.epochs * self.epoch_steps + self.steps

    def _choose(self) -> tuple[str, labels.Label] | None:
        gather = agreement.gather_points if self.ranks > 1 else None
        roots = [self.root] if os.environ.get("RESUME") == "1" else []
        if "resume_from" in self.config["train"]:
            roots.append(self.config["train"]["resume_from"])
        for root in roots:
            found = choosing.choose(
                root, self.rank, self.ranks, self.config["model"]["name"], gather, checkpoints.earlier_sizes()
            )
            if found:
                message = tr(
                    "continues after {point}, from {path}", point=self._shown(found[1]), path=one_line(found[0])
                )
                print(message, flush=True)
                return found
            print(tr("no checkpoint that is whole on all ranks in {root}", root=one_line(root)), flush=True)
        by_user = "LAUNCH_JOB" not in os.environ  # a launcher has checked RESUME=1 of its user
        if roots and ("resume_from" in self.config["train"] or by_user):
            text = tr(
                "no checkpoint that is whole on all ranks is in {folders}; name another folder in "
                "train.resume_from, or train from the beginning without it and without RESUME=1",
                folders=tr(" or in ").join(map(one_line, roots)),
            )
            raise checkpoints.CheckpointError(text)
        return None

    def _shown(self, label: labels.Label) -> str:
        epochs, steps = label.done(self.epoch_steps)
        return (
            tr("step {steps} of epoch {epochs}", steps=steps, epochs=epochs + 1)
            if steps
            else tr("epoch {epochs}", epochs=epochs)
        )

    def load(self, network: nn.Cell, state: nn.Cell, data: datasets.Dataset) -> None:
        """Brings the network, its state (tools.trainer.build.Run) and the order of the data to where the run starts."""
        pretrained = self.config["train"].get("pretrained")
        if self.found:
            self._check_whole(*self.found)
            saving.load(self.found[0], network, state)
            # Without this the data would begin with the first epoch's order again; the quick way of going
            # on would draw other random augmentations than an undisturbed run.
            datasets.config.set_fast_recovery(False)
            data.set_init_step(self.steps_done)
        elif pretrained:
            saving.load(pretrained, network)

    def _check_whole(self, path: str, label: labels.Label) -> None:
        """Refuses slices where MindSpore itself will cut the network: it does so later, from whole weights."""
        section = self.config["parallel"]
        if section["mode"] in modes.BY_MINDSPORE and section["pipeline_stages"] == 1 and not label.whole:
            root = os.path.dirname(os.path.dirname(path))
            strategy = strategies.beside(root)
            text = tr(
                "{path} has a slice of the network, and training in mode {mode} starts from "
                "the whole; merge it with python tools/convert_ckpt.py {source} NEW_FOLDER "
                "--src_strategy {strategy} --ranks {ranks} and continue with -o "
                "train.resume_from=NEW_FOLDER",
                path=one_line(path),
                mode=section["mode"],
                source=one_line(root),
                strategy=one_line(strategy),
                ranks=self.ranks,
            )
            raise checkpoints.CheckpointError(text)

    def saving(self, network: nn.Cell) -> SaveCheckpoints:
        """The callback that saves; a run that starts from the beginning is marked as the newest."""
        model = self.config["model"]["name"]
        if self.found:
            run = self.found[1].run
            prefix = os.path.basename(self.found[0]).rpartition("-")[0]
        else:
            run = agreement.common_time(self.ranks)
            prefix = saving.free_prefix(self.folder, self.config["train"].get("ckpt_prefix", model))
        with saving.into(self.folder):
            labels.begin(self.folder, run)
        whole = int(modes.saves_whole(self.config))
        mode = self.config["parallel"]["mode"]
        label = labels.Label(model=model, mode=mode, run=run, rank=self.rank, ranks=self.ranks, whole=whole)
        return SaveCheckpoints(network, self.folder, prefix, label, self.config["train"], self.steps_done)


# ---- Ends training on a request: all ranks after the same step, each with a checkpoint.
#
# A signal reaches the ranks at different steps.  So they ask each other about once a second, and stop together if one
# of them was asked.  They must ask after the same step: each time they agree on the step of the next time, too.


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
