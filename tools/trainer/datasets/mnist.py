"""MNIST and other data in its IDX format: a file of grey images and a file of labels."""

from __future__ import annotations

import math
import os
import struct

from hccl_tools.common.language import tr
from hccl_tools.common.words import one_line
from tools.config.modes import Part
from tools.trainer.datasets import pipeline
from tools.trainer.datasets.errors import DataError, NoData

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mindspore.dataset import Dataset

IMAGES, LABELS = 0x803, 0x801  # the magic numbers; the last digit is the number of axes
PREFIXES = {"train": "train", "test": "t10k"}


def count(section: dict, folder: str) -> int:
    """Samples in the two files; both must be there, whole, and of one length."""
    folder = _folder_with_files(folder, section.get("usage"))
    if not any(_file(folder, section.get("usage"), kind) for kind in ("images-idx3", "labels-idx1")):
        raise _missing(folder, section.get("usage"), "images-idx3")
    images = _header(folder, section.get("usage"), "images-idx3", IMAGES, 3)[0]
    labels = _header(folder, section.get("usage"), "labels-idx1", LABELS, 1)[0]
    if images != labels:
        text = tr(
            "{folder} has {images} images but {labels} labels; the two files are of two data sets",
            folder=one_line(folder),
            images=images,
            labels=labels,
        )
        raise DataError(text)
    return images


def build(section: dict, loader: dict, folder: str, part: Part) -> Dataset:
    """Images float32 (batch, 1, size, size) in [0, 1], labels int32 (batch,); size: section's image_size."""
    from mindspore.dataset import MnistDataset, vision

    usage, order = section.get("usage"), pipeline.order(loader, part, section.get("num_samples"))
    folder = _folder_with_files(folder, usage)
    data = MnistDataset(folder, usage=usage, num_parallel_workers=loader["num_workers"], **order)
    size = section.get("image_size", 32)
    images = [vision.Resize((size, size)), vision.Rescale(1 / 255, 0.0)]
    return pipeline.image_batches(data, images, loader, part)


def _folder_with_files(root: str, usage: str | None) -> str:
    """`root`, or the folder train or test in it or beside it: the tutorials lay MNIST out in all these ways."""
    if usage is None or _file(root, usage, "images-idx3"):
        return root
    for folder in (os.path.join(root, usage), os.path.join(os.path.dirname(root), usage)):
        if _file(folder, usage, "images-idx3"):
            return folder
    return root  # where the missing file is looked for, and named


def _file(folder: str, usage: str | None, kind: str) -> str | None:
    """The path of the file of that kind, or None."""
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    wanted = f"{PREFIXES[usage]}-{kind}-ubyte" if usage else f"{kind}-ubyte"
    fitting = [name for name in names if (name == wanted if usage else name.endswith("-" + wanted))]
    return os.path.join(folder, fitting[0]) if fitting else None


def _header(folder: str, usage: str | None, kind: str, magic: int, axes: int) -> tuple[int, ...]:
    """The sizes of the axes of an IDX file, once the file is seen to be as long as they state."""
    path = _file(folder, usage, kind)
    if path is None:
        raise _missing(folder, usage, kind, DataError)
    with open(path, "rb") as file:
        header = file.read(4 + 4 * axes)
    shown = one_line(path)
    if len(header) < 4 + 4 * axes or struct.unpack(">I", header[:4])[0] != magic:
        text = tr(
            "{path} is not in MNIST's IDX format: it should begin with the bytes {wanted}, not "
            "{found}; was it unpacked?",
            path=shown,
            wanted=magic.to_bytes(4, "big").hex(" "),
            found=header[:4].hex(" ") or tr("end at once"),
        )
        raise DataError(text)
    sizes = struct.unpack(f">{axes}I", header[4:])
    expected, found = len(header) + math.prod(sizes), os.path.getsize(path)
    if found != expected:
        text = tr(
            "{path} has {number} bytes, its header promises {expected} ({samples} samples); the "
            "file is not whole: fetch it again",
            path=shown,
            number=found,
            expected=expected,
            samples=sizes[0],
        )
        raise DataError(text)
    return sizes


def _missing(folder: str, usage: str | None, kind: str, error: type[DataError] = NoData) -> DataError:
    """The error for a folder without the file of that kind."""
    wanted = f"{PREFIXES[usage] if usage else '*'}-{kind}-ubyte"
    packed = sorted(name for name in os.listdir(folder) if name.endswith("-ubyte.gz"))
    packed = [name for name in packed if usage is None or name.startswith(PREFIXES[usage])]
    if packed:
        text = tr(
            "{folder} has no file {wanted}, but {packed}: unpack it with gunzip",
            folder=one_line(folder),
            wanted=wanted,
            packed=one_line(packed[0]),
        )
        return DataError(text)
    text = tr("{folder} has no file {wanted}; MNIST's files go there, unpacked", folder=one_line(folder), wanted=wanted)
    return error(text)
