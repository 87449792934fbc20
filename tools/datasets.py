"""The data sets that a config can name.

Nothing here imports MindSpore at the top: `check` runs before that, so that a missing folder is
reported at once and not after every rank has started up.
"""

import glob
import os
import struct

from hccl_tools.problem import one_line

PROJECT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))


class DataError(Exception):
    """The data cannot be used: the text names the file, what was expected, and what to do."""


def locate(root):
    """The absolute folder for a config's dataset_root: from the current folder, else the project's."""
    for start in (os.getcwd(), PROJECT):
        if os.path.isdir(os.path.join(start, root)):
            return os.path.abspath(os.path.join(start, root))
    raise DataError(
        f"dataset_root {one_line(root)}: no such folder in {one_line(os.getcwd())}; "
        "`make data` makes data/digits, for other data name its folder: -o train.dataset.dataset_root=FOLDER"
    )


def check(section, batch_size, shards):
    """Refuses, with DataError, data that is not there or too little for one batch a shard."""
    folder = locate(section["dataset_root"])
    samples = _count_mnist(folder)
    if samples // shards < batch_size:
        raise DataError(
            f"{one_line(folder)} has {samples} samples, {samples // shards} for each of {shards} ranks: less than "
            f"one batch of {batch_size}; lower loader.batch_size or take fewer ranks"
        )


def _count_mnist(folder):
    """Samples in a folder with MNIST's two IDX files; both must be there and of one length."""
    counts = {}
    for kind, magic in (("images-idx3", 0x803), ("labels-idx1", 0x801)):
        names = glob.glob(os.path.join(glob.escape(folder), f"*{kind}-ubyte"))
        if not names:
            raise DataError(f"{one_line(folder)} has no file *-{kind}-ubyte; MNIST's files go there, unpacked")
        with open(names[0], "rb") as file:
            header = file.read(8)
        if len(header) < 8 or struct.unpack(">I", header[:4])[0] != magic:
            raise DataError(f"{one_line(names[0])} is not in MNIST's IDX format; was it unpacked?")
        counts[kind] = struct.unpack(">I", header[4:])[0]
    if counts["images-idx3"] != counts["labels-idx1"]:
        raise DataError(f"{one_line(folder)} has {counts['images-idx3']} images but {counts['labels-idx1']} labels")
    return counts["images-idx3"]


def build(section, loader, shard=0, shards=1):
    """The MindSpore dataset of a config's section: batches of (images, labels).

    Images are float32 (batch, 1, 32, 32) in [0, 1], labels int32 (batch,).  With `shards` > 1 it is
    the part number `shard` of that many equal parts.
    """
    import mindspore as ms
    from mindspore.dataset import MnistDataset, transforms, vision

    workers = loader["num_workers"]
    data = MnistDataset(
        locate(section["dataset_root"]),
        shuffle=loader["shuffle"],
        num_shards=shards,
        shard_id=shard,
        num_parallel_workers=workers,
    )
    images = [vision.Resize((32, 32)), vision.Rescale(1 / 255, 0.0), vision.HWC2CHW()]
    data = data.map(images, "image", num_parallel_workers=workers)
    data = data.map(transforms.TypeCast(ms.int32), "label", num_parallel_workers=workers)
    return data.batch(loader["batch_size"], drop_remainder=loader["drop_remainder"])
