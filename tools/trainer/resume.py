"""When a training run saves, and from where it goes on."""

import os
import sys

import mindspore as ms
from mindspore import dataset as datasets

from hccl_tools.common.words import one_line
from tools.trainer import checkpoints


class SaveCheckpoints(ms.Callback):
    """Saves a labelled checkpoint after every epoch, and removes the run's oldest.

    network: the training step with network and optimizer in it; label: {field: value} of
    checkpoints.Label as far as all checkpoints of this rank share it; prefix: how file names begin.
    """

    def __init__(self, network, folder, prefix, label, keep, integrated):
        super().__init__()
        self.network = network
        self.folder = folder
        self.prefix = prefix
        self.label = label
        self.keep = keep
        self.integrated = integrated

    def on_train_epoch_end(self, run_context):
        """An epoch is done."""
        run = run_context.original_args()
        label = {**self.label, "epoch": run.cur_epoch_num, "steps": run.batch_num}
        try:
            checkpoints.save(self.network, self.folder, self.prefix, label, self.integrated)
        except OSError as error:
            sys.exit(f"train.py: no checkpoint could be saved in {one_line(self.folder)}: {error.strerror}")
        checkpoints.remove_old(self.folder, self.label["run"], self.keep)


class Continuation:
    """Where a run stands when it starts: the epochs that are done, and the callback that saves the next.

    With RESUME=1 in the environment it goes on from this run's own checkpoints, with
    train.resume_from from another folder's; what it finds in neither it starts from the beginning.
    """

    def __init__(self, config, rank, ranks):
        self.config = config
        self.rank = rank
        self.ranks = ranks
        self.root = checkpoints.folder_of(config)
        self.folder = checkpoints.rank_folder(self.root, rank)
        self.checkpoint, self.label = self._choose() or (None, None)
        self.epochs = self.label.epoch if self.label else 0

    def _choose(self):
        gather = checkpoints.gather_points if self.ranks > 1 else None
        roots = [self.root] if os.environ.get("RESUME") == "1" else []
        if "resume_from" in self.config["train"]:
            roots.append(self.config["train"]["resume_from"])
        for root in roots:
            found = checkpoints.choose(root, self.rank, self.ranks, self.config["model"]["name"], gather)
            if found:
                print(f"continues after epoch {found[1].epoch}, from {one_line(found[0])}", flush=True)
                return found
            print(f"no checkpoint that is whole on all ranks in {one_line(root)}", flush=True)
        return None

    def load(self, network, optimizer, data):
        """Brings the network, the optimizer and the order of the data to where the run stands."""
        pretrained = self.config["train"].get("pretrained")
        if self.checkpoint:
            checkpoints.load(self.checkpoint, network, optimizer)
            # Without this the data would begin with the first epoch's order again; the quick way of going
            # on would draw other random augmentations than an undisturbed run.
            datasets.config.set_fast_recovery(False)
            data.set_init_step(self.epochs * data.get_dataset_size())
        elif pretrained:
            checkpoints.load(pretrained, network)

    def saving(self, network):
        """The callback that saves; a run that starts from the beginning is marked as the newest."""
        config = self.config
        if self.label:
            run = self.label.run
            prefix = os.path.basename(self.checkpoint).rpartition("-")[0]
        else:
            run = checkpoints.common_time(self.ranks)
            prefix = checkpoints.free_prefix(self.folder, config["model"]["name"])
        checkpoints.begin(self.folder, run)
        label = {
            "model": config["model"]["name"],
            "mode": config["parallel"]["mode"],
            "run": run,
            "rank": self.rank,
            "ranks": self.ranks,
        }
        section = config["train"]
        return SaveCheckpoints(
            network, self.folder, prefix, label, section["keep_checkpoint_max"], section["integrated_save"]
        )
