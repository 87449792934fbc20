"""MindOCR's label files, of text lines and of text boxes: one line per image, with its name, a tab and its label."""

from __future__ import annotations

import os

from hccl_tools.common.language import tr
from hccl_tools.common.words import one_line
from tools.config.modes import Part
from tools.trainer.datasets import pipeline
from tools.trainer.datasets.errors import DataError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    import numpy as np
    from mindspore.dataset import Dataset

LOOKED_AT = 1000  # images that a check looks for on disk; a data set can have millions


def read(section: dict, folder: str) -> list[tuple[str, str, str]]:
    """[(absolute image path, label text, "FILE:LINE")] of a data set's label file."""
    path = os.path.join(folder, section["label_file"])
    shown, wanted = one_line(path), tr("it should have a line for each image: its name, a tab, its label")
    images = os.path.join(folder, section["data_dir"])
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except FileNotFoundError as error:
        raise DataError(tr("{path}: no such file; {wanted}", path=shown, wanted=wanted)) from error
    except (OSError, UnicodeDecodeError) as error:
        message = tr("{path} cannot be read as UTF-8 text: {error}", path=shown, error=one_line(error))
        raise DataError(message) from error
    entries = []
    for number, line in enumerate(lines, 1):
        name, tab, label = line.partition("\t")
        if not tab or not name:
            text = tr(
                "{path}:{number}: expected an image's name, a tab and its label, found: {line}",
                path=shown,
                number=number,
                line=one_line(line),
            )
            raise DataError(text)
        entries.append((os.path.join(images, name), label, f"{shown}:{number}"))
    if not entries:
        raise DataError(tr("{path} is empty; {wanted}", path=shown, wanted=wanted))
    return entries


class Source:
    """The source for GeneratorDataset: entry n is (image, label)."""

    def __init__(self, entries: Sequence[Any]) -> None:
        self.entries = entries

    def __len__(self) -> int:
        return len(self.entries)

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        """The entry, in the form that the data set's class describes."""
        raise NotImplementedError


def check_images(entries: list[tuple[str, str, str]]) -> None:
    """Refuses entries whose image is missing or empty; of very many, only an even sample is checked."""
    step = -(-len(entries) // LOOKED_AT)
    for path, _, place in entries[::step]:
        if not os.path.isfile(path) or os.path.getsize(path) == 0:
            what = tr("is empty") if os.path.isfile(path) else tr("is not there")
            text = tr(
                "{place}: the image {path} {what}; the data is not whole, fetch or make it again",
                place=place,
                path=one_line(path),
                what=what,
            )
            raise DataError(text)


def batches(source: Source, loader: dict, part: Part) -> Dataset:
    """The MindSpore dataset of `source`, whose items are (image, label): a part of them, in batches."""
    from mindspore.dataset import GeneratorDataset

    how = {**pipeline.order(loader, part), "num_parallel_workers": loader["num_workers"]}
    data = GeneratorDataset(source, ["image", "label"], python_multiprocessing=False, **how)
    return pipeline.batches(data, loader)
