"""CIFAR-10 in the original's binary format: records of 3,073 bytes, a label and 32 x 32 x RGB.

The original (cifar-10-binary.tar.gz, https://www.cs.toronto.edu/~kriz/cifar.html) unpacks to the folder
cifar-10-batches-bin: data_batch_1.bin to data_batch_5.bin for training, test_batch.bin for evaluation. `make data`
generates a set of the same form and size in data/cifar10 (tools/prepare_cifar10.py).
"""

from __future__ import annotations

import os

from hccl_tools.common.language import tr
from hccl_tools.common.words import one_line
from tools.config.modes import Part
from tools.trainer.datasets import pipeline
from tools.trainer.datasets.errors import DataError, NoData

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mindspore.dataset import Dataset

RECORD = 1 + 3 * 32 * 32
ORIGINAL = 10000  # records of each of the original's files; MindSpore's Cifar10Dataset reads as many of each file
CLASSES = 10
FILES = {"train": [f"data_batch_{number}.bin" for number in range(1, 6)], "test": ["test_batch.bin"]}

# Red, green, blue, of the original's pixels in [0, 1]. MindSpore's tutorial has the same numbers, blue first;
# the images come red first.
MEAN, DEVIATION = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)


def count(section: dict, folder: str) -> int:
    """Samples in the files of the section's usage; each must be there and whole."""
    folder = _folder_with_files(folder)
    counts = {name: _count_file(folder, name) for name in _names(section, folder)}
    most = max(counts, key=counts.__getitem__)
    for name, records in counts.items():
        if records != counts[most]:
            text = tr(
                "{path} has {records} records, {other} has {wanted}; all of CIFAR-10's files "
                "have the same number: fetch it again",
                path=one_line(os.path.join(folder, name)),
                records=records,
                other=most,
                wanted=counts[most],
            )
            raise DataError(text)
    return sum(counts.values())


def _names(section: dict, folder: str) -> list[str]:
    usage = section.get("usage")
    if usage:
        return FILES[usage]
    # Without a usage MindSpore reads what is there.
    found = [name for name in FILES["train"] + FILES["test"] if os.path.exists(os.path.join(folder, name))]
    return found or FILES["train"]


def _folder_with_files(root: str) -> str:
    """`root`, or the original's folder in it."""
    inner = os.path.join(root, "cifar-10-batches-bin")
    return inner if os.path.isdir(inner) else root


def _count_file(folder: str, name: str) -> int:
    path = os.path.join(folder, name)
    shown = one_line(path)
    if not os.path.isfile(path):
        message = tr(
            "{folder} has no file {name}; {instead}", folder=one_line(folder), name=name, instead=_instead(folder)
        )
        raise NoData(message)
    size = os.path.getsize(path)
    if size == 0 or size % RECORD:
        text = tr(
            "{path} has {number} bytes, not a multiple of the {wanted} bytes of a record (one "
            "label, then 32 x 32 red, green and blue); fetch it again: the original's files have "
            "30730000 bytes each",
            path=shown,
            number=size,
            wanted=RECORD,
        )
        raise DataError(text)
    with open(path, "rb") as file:
        labels = file.read(100 * RECORD)[::RECORD]
    if max(labels) >= CLASSES:
        record = next(index for index, label in enumerate(labels) if label >= CLASSES)
        text = tr(
            "{path}: record {number} begins with the label {label}, CIFAR-10 has 0 to "
            "{most}; this is another data set or another format",
            path=shown,
            number=record + 1,
            label=labels[record],
            most=CLASSES - 1,
        )
        raise DataError(text)
    return size // RECORD


def _instead(folder: str) -> str:
    """What to do, by what lies in the folder instead."""
    names = os.listdir(folder)
    if "data_batch_1" in names:
        return tr("this is CIFAR-10's Python version; fetch the binary version, cifar-10-binary.tar.gz")
    packed = sorted(name for name in names if name.startswith("cifar-10") and name.endswith(".tar.gz"))
    if packed:
        return tr(
            "unpack {packed} with: tar -xzf, and name the folder cifar-10-batches-bin", packed=one_line(packed[0])
        )
    if "data_batch_1.bin" in names:
        return tr("the download is not whole: the original has data_batch_1.bin to data_batch_5.bin and test_batch.bin")
    return tr("name the folder cifar-10-batches-bin of CIFAR-10's binary version; `make data` makes such a set")


def build(section: dict, loader: dict, folder: str, part: Part) -> Dataset:
    """Images float32 (batch, 3, size, size), normalised; labels int32 (batch,).

    size: the section's image_size.  With `augment` the images are cropped at random from a border of
    four pixels and mirrored at random, as in MindSpore's tutorial.
    """
    from mindspore.dataset import vision

    data = _source(section, _folder_with_files(folder), loader, part)
    images = []
    if section.get("augment", False):
        images += [vision.RandomCrop((32, 32), (4, 4, 4, 4)), vision.RandomHorizontalFlip()]
    size = section.get("image_size", 32)
    if size != 32:
        images.append(vision.Resize((size, size)))
    images += [vision.Rescale(1 / 255, 0.0), vision.Normalize(MEAN, DEVIATION)]
    return pipeline.image_batches(data, images, loader, part)


def _source(section: dict, folder: str, loader: dict, part: Part) -> Dataset:
    """The dataset of columns image, uint8 (32, 32, 3), and label."""
    from mindspore.dataset import Cifar10Dataset, NumpySlicesDataset

    order, names = pipeline.order(loader, part, section.get("num_samples")), _names(section, folder)
    if all(os.path.getsize(os.path.join(folder, name)) == ORIGINAL * RECORD for name in names):
        return Cifar10Dataset(folder, usage=section.get("usage"), num_parallel_workers=loader["num_workers"], **order)
    # MindSpore's own reader takes no smaller files; prepare_cifar10.py --images makes such ones.
    import numpy as np

    records = np.concatenate([np.fromfile(os.path.join(folder, name), np.uint8) for name in names]).reshape(-1, RECORD)
    images = np.ascontiguousarray(records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
    return NumpySlicesDataset({"image": images, "label": records[:, 0].astype(np.uint32)}, **order)
