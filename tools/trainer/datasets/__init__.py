"""The data sets that a config can name: one module per type.

Nothing here imports MindSpore at the top: `check` runs before that. So a missing folder is reported at once and not
after every rank has started.

Each module has two functions:

  count(section, folder)                the number of samples; raises DataError for faults that can be seen from
                                        outside
  build(section, loader, folder, part)  the MindSpore dataset: batches of (data, label)

A `section` is `train.dataset` or `eval.dataset` of a config, a `loader` the section of that name; `part` is a
tools.config.modes.Part.
"""

from __future__ import annotations

import importlib
import os

from hccl_tools.common import project
from hccl_tools.common.language import tr
from hccl_tools.common.words import one_line
from tools.config.modes import EVERYTHING, Part
from tools.trainer.datasets import pipeline
from tools.trainer.datasets.errors import DataError, NoData

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from mindspore.dataset import Dataset

__all__ = ["DataError", "build", "check", "check_held_out", "held_out", "locate"]

# type in the config -> module; the text data sets have MindOCR's names, whose formats they read
TYPES = {
    "mnist": "mnist",
    "cifar10": "cifar10",
    "RecDataset": "text_lines",
    "LMDBDataset": "text_lmdb",
    "DetDataset": "text_boxes",
}


def locate(root: str) -> str:
    """The absolute folder for a config's dataset_root: from the current folder, otherwise the project's."""
    for start in (os.getcwd(), project.ROOT):
        if os.path.isdir(os.path.join(start, root)):
            folder = os.path.abspath(os.path.join(start, root))
            if not os.access(folder, os.R_OK | os.X_OK):
                raise DataError(tr("the data in {path} cannot be read; check its permissions", path=one_line(folder)))
            return folder
    if os.path.isfile(root):
        raise DataError(tr("{path} is a file; name the folder that has the data", path=one_line(root)))
    text = tr(
        "dataset_root {path}: no such folder in {folder}; `make data` makes data/digits, "
        "data/cifar10 and data/text; name another folder with DATA_PATH or -o "
        "train.dataset.dataset_root=",
        path=one_line(root),
        folder=one_line(os.getcwd()),
    )
    raise DataError(text)


def check(config: dict, shards: int, by_data_path: bool = False) -> str | None:
    """Refuses, with DataError, data of a config (filled) that is not there or too little for one batch per shard.

    `by_data_path`: DATA_PATH names the folder.  The tutorials' has the data to train on only; then the section `eval`
    is removed from the config, and a line that states this is returned.
    """
    _check_section(config["train"], shards)
    try:
        check_held_out(config)
    except NoData:
        if not by_data_path:
            raise
        folder = locate(config.pop("eval")["dataset"]["dataset_root"])
        if config.pop("early_stop", None):
            return tr(
                "DATA_PATH {folder} has no held-out data, so the accuracy is not measured, and early_stop does nothing",
                folder=one_line(folder),
            )
        return tr("DATA_PATH {folder} has no held-out data, so the accuracy is not measured", folder=one_line(folder))
    return None


def check_held_out(config: dict) -> None:
    """Refuses, with DataError, held-out data that is named and not there."""
    if "eval" in config:
        _check_section(config["eval"], 1)


def _check_section(section: dict, shards: int) -> None:
    """Checks the section `train` or `eval`: each of the shards needs a batch."""
    dataset, loader = section["dataset"], section["loader"]
    least = loader["batch_size"] if loader["drop_remainder"] else 1
    folder = locate(dataset["dataset_root"])
    samples = _module(dataset).count(dataset, folder)
    limit = dataset.get("num_samples", samples)
    where = one_line(folder)
    said = (
        tr("{where} has {samples} samples", where=where, samples=samples)
        if samples <= limit
        else tr("{where}: dataset.num_samples is {limit}", where=where, limit=limit)
    )
    each = min(samples, limit) // shards
    if each < least:
        text = tr(
            "{said}, {each} for each of {shards} ranks: less than one batch of {least}; lower "
            "loader.batch_size or take fewer ranks",
            said=said,
            each=each,
            shards=shards,
            least=least,
        )
        raise DataError(text)


def build(section: dict, loader: dict, part: Part = EVERYTHING) -> Dataset:
    """The MindSpore dataset of a config's section, or a part of it: batches of (data, label), see its module."""
    workers = min(loader["num_workers"], os.cpu_count() or 1)  # MindSpore refuses more than there are processors
    return _module(section).build(section, {**loader, "num_workers": workers}, locate(section["dataset_root"]), part)


def held_out(config: dict, rank: int = 0, ranks: int = 1) -> tuple[Dataset, int] | None:
    """The batches of the section `eval` that rank `rank` of `ranks` measures, in order, and how many samples they have.

    None: this rank has no batches.  Every batch is measured by one rank, so all ranks together measure what one rank
    alone would.  Copies of a sample fill up a smaller batch after full ones: MindSpore would compile the network once
    more for it.
    """
    section, loader = config["eval"]["dataset"], config["eval"]["loader"]
    size = loader["batch_size"]
    samples = _module(section).count(section, locate(section["dataset_root"]))
    samples = min(samples, section.get("num_samples", samples))
    batches = samples // size if loader["drop_remainder"] else -(-samples // size)
    first, end = rank * batches // ranks, (rank + 1) * batches // ranks
    if first == end:
        return None
    count = min(end * size, samples) - first * size
    data = build(section, loader, Part(samples=(first * size, count)))
    return (data if count < size or count % size == 0 else pipeline.filled_up(data, size)), count


def _module(section: dict) -> ModuleType:
    return importlib.import_module(f"tools.trainer.datasets.{TYPES[section['type']]}")
