#!/usr/bin/env python3
"""Writes scikit-learn's 1,797 handwritten digits as MNIST's files: FOLDER/train and FOLDER/test.

The digits come with scikit-learn's package, so nothing is downloaded.  They are 8 x 8 pixels; like
MNIST's they are scaled to 20 x 20 and put in the middle of 28 x 28, so that everything that reads
MNIST reads them.  One in five, chosen by a fixed seed, is held out for the test.

  python tools/prepare_digits.py data/digits

Exit: 0 written, 2 usage, or FOLDER cannot be written.
"""

import argparse
import os
import struct
import sys

if not __package__:  # run as a file: import the packages hccl_tools and tools from the project
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))

from hccl_tools.machine import interpreter

interpreter.check("numpy", "PIL", "sklearn")

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits


def main(argv=None):
    """Runs the command; returns its exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="FOLDER", help="where to write; files of these names are replaced")
    folder = parser.parse_args(argv).folder
    digits = load_digits()
    order = np.random.RandomState(42).permutation(len(digits.target))
    images = np.stack([enlarge(image) for image in digits.images[order]])
    labels = digits.target[order].astype(np.uint8)
    held_out = len(labels) // 5
    try:
        write_set(os.path.join(folder, "train"), "train", images[held_out:], labels[held_out:])
        write_set(os.path.join(folder, "test"), "t10k", images[:held_out], labels[:held_out])
    except OSError as error:
        parser.error(f"{error.filename or folder} cannot be written: {error.strerror}")
    print(
        f"prepare_digits.py: {len(labels) - held_out} digits to train on, {held_out} held out, in {folder}",
        file=sys.stderr,
    )
    return 0


def enlarge(image):
    """(8, 8) float in 0..16 -> (28, 28) uint8 in 0..255."""
    grey = Image.fromarray((image * 255 / 16).round().astype(np.uint8))
    return np.pad(np.asarray(grey.resize((20, 20), Image.Resampling.BILINEAR)), 4)


def write_set(folder, prefix, images, labels):
    """One pair of IDX files: big-endian magic (its last byte the number of axes), sizes, bytes."""
    os.makedirs(folder, exist_ok=True)
    for kind, array in (("images-idx3", images), ("labels-idx1", labels)):
        path = os.path.join(folder, f"{prefix}-{kind}-ubyte")
        with open(path + ".part", "wb") as file:
            file.write(struct.pack(">I", 0x800 + array.ndim))
            file.write(struct.pack(f">{array.ndim}I", *array.shape))
            file.write(array.tobytes())
        os.replace(path + ".part", path)


if __name__ == "__main__":
    sys.exit(main())
