"""The data sets that a config can name: one module a type.

Nothing here imports MindSpore at the top: `check` runs before that, so that a missing folder is
reported at once and not after every rank has started up.

Each module has two functions:

  count(section, folder)                       samples, once everything that can be seen from outside
                                               is seen to be good; raises DataError
  build(section, loader, folder, shard, shards) the MindSpore dataset: batches of (data, label)

A `section` is `train.dataset` or `eval.dataset` of a config, a `loader` the section of that name.
"""

import importlib
import os

from hccl_tools.common.words import one_line
from tools.trainer.datasets.errors import DataError
from tools.trainer.datasets.patches import WHOLE

PROJECT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))

# type in the config -> module; the text data sets have MindOCR's names, whose formats they read
TYPES = {"mnist": "mnist", "cifar10": "cifar10", "RecDataset": "text_lines", "DetDataset": "text_boxes"}


def locate(root):
    """The absolute folder for a config's dataset_root: from the current folder, else the project's."""
    for start in (os.getcwd(), PROJECT):
        if os.path.isdir(os.path.join(start, root)):
            return os.path.abspath(os.path.join(start, root))
    if os.path.isfile(root):
        raise DataError(f"{one_line(root)} is a file; the folder in which the data lies is wanted")
    raise DataError(
        f"dataset_root {one_line(root)}: no such folder in {one_line(os.getcwd())}; `make data` makes data/digits, "
        "data/cifar10 and data/text; where other data lies say DATA_PATH or -o train.dataset.dataset_root="
    )


def check(config, shards):
    """Refuses, with DataError, data of a config (filled) that is not there or too little for one batch a shard."""
    loader = config["train"]["loader"]
    _check_section(config["train"]["dataset"], loader["batch_size"] if loader["drop_remainder"] else 1, shards)
    check_held_out(config)


def check_held_out(config):
    """Refuses, with DataError, held-out data that is named and not there."""
    if "eval" in config:
        _check_section(config["eval"]["dataset"], 1, 1)


def _check_section(section, least, shards):
    """`least`: samples that each of the shards needs."""
    folder = locate(section["dataset_root"])
    samples = _module(section).count(section, folder)
    if samples // shards < least:
        raise DataError(
            f"{one_line(folder)} has {samples} samples, {samples // shards} for each of {shards} ranks: less than "
            f"one batch of {least}; lower loader.batch_size or take fewer ranks"
        )


def build(section, loader, shard=0, shards=1, patches=WHOLE):
    """The MindSpore dataset of a config's section: batches of (data, label), see its module.

    With `shards` > 1 it is the part number `shard` of that many equal parts; `patches`: of each image a patch.
    """
    workers = min(loader["num_workers"], os.cpu_count() or 1)  # MindSpore refuses more than there are processors
    loader = {**loader, "num_workers": workers}
    sliced = {} if patches == WHOLE else {"patches": patches}  # parallel.SLICED: the types that know it
    return _module(section).build(section, loader, locate(section["dataset_root"]), shard, shards, **sliced)


def _module(section):
    return importlib.import_module(f"tools.trainer.datasets.{TYPES[section['type']]}")
