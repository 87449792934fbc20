#!/usr/bin/env python3
"""Generates a data set in CIFAR-10's binary format that a network can learn.

Ten classes of 32 x 32 colour images: stripes, whose direction and colour give the class; their position,
width, brightness and noise differ from image to image.  It replaces the original
(https://www.cs.toronto.edu/~kriz/cifar.html, the binary version) where that cannot be fetched, and does
not show how well a network recognizes photographs.  It has the original's size,
because MindSpore's Cifar10Dataset reads 10,000 images of each file, and refuses a file that has fewer.

  python tools/prepare_cifar10.py data/cifar10

Exit: 0 written, 2 usage, or FOLDER cannot be written.
"""

import os
import sys

if not __package__:  # run as a file: import the packages hccl_tools and tools from the project
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))

try:
    from hccl_tools.machine import interpreter
except ImportError:  # copied without the rest of the project
    sys.stderr.write("the rest of the project is not here; run it there: python PROJECT/tools/prepare_cifar10.py\n")
    sys.exit(2)

interpreter.check("numpy")

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from hccl_tools.common.language import tr
from tools.trainer import command
from tools.trainer.datasets import cifar10, generator

SIDE = 32  # pixels
AT_ONCE = 50  # images in memory as numbers, 12 KB each: together they fit into a processor's cache
NOISE = 1 << 20  # random numbers of a file; every image takes some that follow each other, from a random place on
COLOURS = np.array([[230, 70, 60], [70, 200, 90], [80, 110, 240], [230, 210, 70], [200, 90, 220]], np.float32)


def main(argv: "list[str] | None" = None) -> int:
    parser = generator.parser(tr(__doc__))
    parser.option("images", type=command.positive, default=cifar10.ORIGINAL)
    return generator.run(parser, argv, lambda options: write(options.folder, options.images))


def write(folder: str, images: int) -> str:
    """All files, with as many images each; returns what they hold."""
    for seed, name in enumerate([*cifar10.FILES["train"], *cifar10.FILES["test"]], 42):
        write_file(os.path.join(folder, name), images, seed)
    return tr("{images} images to train on, {held_out} held out", images=5 * images, held_out=images)


def write_file(path: str, images: int, seed: int = 42) -> None:
    """One file of `images` records, all classes as often as each other."""
    random = np.random.default_rng(seed)
    labels = random.permutation(np.arange(images) % cifar10.CLASSES).astype(np.uint8)
    noise = 25 * random.standard_normal(NOISE, np.float32)
    records = np.empty((images, cifar10.RECORD), np.uint8)
    records[:, 0] = labels
    for some in range(0, images, AT_ONCE):
        part = labels[some : some + AT_ONCE]
        records[some : some + AT_ONCE, 1:] = images_of(part, random, noise).reshape(len(part), -1)
    generator.write_file(path, records.tobytes())


def images_of(labels: np.ndarray, random: np.random.Generator, noise: np.ndarray) -> np.ndarray:
    """(n,) -> (n, 3, 32, 32) uint8: class c has direction c // 2 * 36 degrees, colour c % 5."""
    angle = labels // 2 * np.pi / 5
    waves = 2 * np.pi / random.uniform(6, 10, len(labels))  # their number in one pixel, as an angle
    across, down, phase = (
        each.astype(np.float32)[:, None, None]
        for each in (waves * np.cos(angle), waves * np.sin(angle), random.uniform(0, 2 * np.pi, len(labels)))
    )
    row, column = np.ogrid[0:SIDE, 0:SIDE]
    wave = 0.5 + 0.5 * np.sin(across * column.astype(np.float32) + (down * row.astype(np.float32) + phase))
    bright = random.uniform(0.6, 1.0, (len(labels), 1)).astype(np.float32)
    picture = wave[:, None] * (COLOURS[labels % 5] * bright)[:, :, None, None]
    pixels = picture[0].size
    starts = random.integers(0, len(noise) - pixels, len(labels))
    picture += sliding_window_view(noise, pixels)[starts].reshape(picture.shape)
    return np.clip(picture, 0, 255, out=picture).astype(np.uint8)


if __name__ == "__main__":
    sys.exit(main())
