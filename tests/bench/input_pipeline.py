#!/usr/bin/env python3
"""Images per second of the trainer's input pipelines with one rank, beside the same written directly on MindSpore.

Each is read for a fixed number of epochs, the median of several runs, in turns so that both meet the
same machine.  The ratio is ours divided by MindSpore's; the aim is 0.97 or more.

  make bench
"""

import os
import statistics
import sys
import tempfile
import time

PROJECT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.path.append(PROJECT)

import figures
import mindspore as ms
from mindspore import dataset as direct
from mindspore.dataset import transforms, vision

from tools import prepare_cifar10
from tools.trainer import datasets

RUNS = 9
EPOCHS = 3
LOADER = {"batch_size": 32, "shuffle": True, "drop_remainder": True, "num_workers": 1}


def mnist():
    """LeNet-5's digits, as configs/mnist/lenet5_digits.yaml reads them."""
    folder = os.path.join(PROJECT, "data", "digits")
    section = {"type": "mnist", "dataset_root": folder, "usage": "train"}

    def written_directly():
        data = direct.MnistDataset(os.path.join(folder, "train"), usage="train", shuffle=True, num_parallel_workers=1)
        images = [vision.Resize((32, 32)), vision.Rescale(1 / 255, 0.0), vision.HWC2CHW()]
        data = data.map(images, "image", num_parallel_workers=1)
        return data.map(transforms.TypeCast(ms.int32), "label", num_parallel_workers=1).batch(32, drop_remainder=True)

    return section, written_directly


def cifar10(folder):
    """10,000 images as configs/cls/resnet/resnet50_cifar10.yaml reads them, at 32 x 32."""
    section = {"type": "cifar10", "dataset_root": folder, "usage": "test", "augment": True}

    def written_directly():
        data = direct.Cifar10Dataset(folder, usage="test", shuffle=True, num_parallel_workers=1)
        images = [
            vision.RandomCrop((32, 32), (4, 4, 4, 4)),
            vision.RandomHorizontalFlip(),
            vision.Rescale(1 / 255, 0.0),
            vision.Normalize((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
            vision.HWC2CHW(),
        ]
        data = data.map(images, "image", num_parallel_workers=1)
        return data.map(transforms.TypeCast(ms.int32), "label", num_parallel_workers=1).batch(32, drop_remainder=True)

    return section, written_directly


def images_per_second(data):
    """How many images come out of a dataset in a second."""
    iterator = data.create_tuple_iterator(num_epochs=EPOCHS, output_numpy=True)
    sum(1 for _ in iterator)  # an epoch to warm up: the pipeline is built and its threads run
    images, began = 0, time.perf_counter()
    for _ in range(EPOCHS - 1):
        images += sum(len(batch[0]) for batch in iterator)
    return images / (time.perf_counter() - began)


def measure(name, section, written_directly):
    """One row: images per second of both, and their ratio."""
    ours, theirs = [], []
    for _ in range(RUNS):
        ours.append(images_per_second(datasets.build(section, LOADER)))
        theirs.append(images_per_second(written_directly()))
    ratio = statistics.median(one / other for one, other in zip(ours, theirs))
    return [name, f"{statistics.median(ours):,.0f}", f"{statistics.median(theirs):,.0f}", f"{ratio:.3f}"]


def tables():
    """Measures; yields one figures.Table."""
    with tempfile.TemporaryDirectory() as folder:
        prepare_cifar10.write_file(os.path.join(folder, "test_batch.bin"), 10000)
        rows = [measure("MNIST", *mnist()), measure("CIFAR-10", *cifar10(folder))]
    columns = ["images per second", "tools/trainer/datasets", "directly on MindSpore", "ratio"]
    yield figures.Table("Input pipelines, 1 rank", columns, rows, f"Medians of {RUNS} runs; the ratio is of pairs.")


if __name__ == "__main__":
    sys.exit(figures.show(tables()))
