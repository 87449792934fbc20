#!/usr/bin/env python3
"""Writes scikit-learn's 1,797 handwritten digits as MNIST's files: FOLDER/train and FOLDER/test.

The digits come with scikit-learn's package, so nothing is downloaded.  They are 8 x 8 pixels; like
MNIST's they are scaled to 20 x 20 and put in the middle of 28 x 28, so that everything that reads
MNIST reads them.  One in five, chosen by a fixed seed, is held out for the test.

  python tools/prepare_digits.py data/digits

Exit: 0 written, 2 usage, or FOLDER cannot be written.
"""

import importlib.util
import os
import struct
import sys

if not __package__:  # run as a file: import the packages hccl_tools and tools from the project
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))

try:
    from hccl_tools.machine import interpreter
except ImportError:  # copied without the rest of the project
    sys.stderr.write("the rest of the project is not here; run it there: python PROJECT/tools/prepare_digits.py\n")
    sys.exit(2)

interpreter.check("numpy", "PIL", "sklearn")

import numpy as np
from PIL import Image

from hccl_tools.common.language import tr
from tools.trainer.datasets import generator, mnist


def main(argv: "list[str] | None" = None) -> int:
    return generator.run(generator.parser(tr(__doc__)), argv, lambda options: write(options.folder))


def write(folder: str) -> str:
    """Both sets; returns what they hold."""
    table = digits()
    order = np.random.RandomState(42).permutation(len(table))
    images = np.stack([enlarge(row[:-1].reshape(8, 8)) for row in table[order]])
    labels = table[order, -1].astype(np.uint8)
    held_out = len(labels) // 5
    write_set(os.path.join(folder, "train"), "train", images[held_out:], labels[held_out:])
    write_set(os.path.join(folder, "test"), "test", images[:held_out], labels[:held_out])
    return tr("{digits} digits to train on, {held_out} held out", digits=len(labels) - held_out, held_out=held_out)


def digits() -> np.ndarray:
    """A row for each digit: its 64 pixels and what it is."""
    found = importlib.util.find_spec("sklearn")
    for folder in (found and found.submodule_search_locations) or ():
        path = os.path.join(folder, "datasets", "data", "digits.csv.gz")
        if os.path.exists(path):  # the import of sklearn.datasets takes a second
            return np.loadtxt(path, delimiter=",")
    from sklearn.datasets import load_digits

    data, target = load_digits(return_X_y=True)
    return np.column_stack([data, target])


def enlarge(image: np.ndarray) -> np.ndarray:
    """(8, 8) float in 0..16 -> (28, 28) uint8 in 0..255."""
    grey = Image.fromarray((image * 255 / 16).round().astype(np.uint8))
    return np.pad(np.asarray(grey.resize((20, 20), Image.Resampling.BILINEAR)), 4)


def write_set(folder: str, usage: str, images: np.ndarray, labels: np.ndarray) -> None:
    """One pair of IDX files: big-endian magic (its last byte the number of axes), sizes, bytes."""
    for kind, array in (("images-idx3", images), ("labels-idx1", labels)):
        header = struct.pack(f">{1 + array.ndim}I", 0x800 + array.ndim, *array.shape)
        path = os.path.join(folder, f"{mnist.PREFIXES[usage]}-{kind}-ubyte")
        generator.write_file(path, header + array.tobytes())


if __name__ == "__main__":
    sys.exit(main())
