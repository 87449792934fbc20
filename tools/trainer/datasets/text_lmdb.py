"""Images with one line of text each, and the text, in LMDB folders: MindOCR's LMDBDataset.

    dataset_root/data_dir/.../data.mdb      any number of such folders, read in the order of their names
    num-samples                             how many samples it has, in decimal digits
    image-000000001, label-000000001        the first one: a file of an image, and its text in UTF-8

The package lmdb reads them.  It is needed only for configs that name such data.
"""

from __future__ import annotations

import bisect
import functools
import importlib
import io
import itertools
import os

from hccl_tools.common.language import tr
from hccl_tools.common.numbers import whole_number
from hccl_tools.common.words import one_line, short
from tools.config.modes import Part
from tools.trainer.datasets import label_file, text_lines
from tools.trainer.datasets.errors import DataError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from mindspore.dataset import Dataset


def count(section: dict, folder: str) -> int:
    """Samples, once each text can be written with the section's characters and fits the image's width."""
    text_lines.check_texts(_texts(_sizes(section, folder)), section)
    return sum(_sizes(section, folder).values())


def _sizes(section: dict, folder: str) -> dict[str, int]:
    """{path: how many samples it has} of all LMDB folders of a section."""
    root = os.path.join(folder, section["data_dir"])
    paths = sorted(path for path, _, names in os.walk(root, followlinks=True) if "data.mdb" in names)
    if not paths:
        text = tr(
            "{root}: there is no file data.mdb in it, nor below it; name the folder of the LMDB", root=one_line(root)
        )
        raise DataError(text)
    return {path: _size(path) for path in paths}


def _texts(sizes: dict[str, int]) -> Iterator[tuple[str, str]]:
    """(text, place for messages) of all samples."""
    for path, size in sizes.items():
        with _environment(path).begin() as reader:
            for number in range(1, size + 1):
                yield _label(reader, path, number), _place(path, number)


def _place(path: str, number: int) -> str:
    return tr("{path}, sample {number}", path=one_line(path), number=number)


@functools.cache  # a process can open a file once
def _environment(path: str) -> Any:
    """The LMDB in the folder `path`."""
    try:
        lmdb = importlib.import_module("lmdb")
    except ImportError as error:
        raise DataError(tr("data of type LMDBDataset needs the package lmdb; install it: pip install lmdb")) from error
    try:
        return lmdb.open(path, readonly=True, lock=False, readahead=False, meminit=False)
    except lmdb.Error as error:
        text = tr("{path} cannot be read as LMDB: {error}", path=one_line(path), error=one_line(error))
        raise DataError(text) from error


def _size(path: str) -> int:
    """How many samples an LMDB states that it has."""
    with _environment(path).begin() as reader:
        text = (reader.get(b"num-samples") or b"").decode("latin-1")
    size = whole_number(text)
    if size is None:
        message = tr(
            "{path}: num-samples should be a whole number, found: {found}", path=one_line(path), found=short(text)
        )
        raise DataError(message)
    return size


def _label(reader: Any, path: str, number: int) -> str:
    content = reader.get(b"label-%09d" % number)
    if content is None:
        text = tr(
            "{place}: {key} is missing; the data is not whole, fetch or make it again",
            place=_place(path, number),
            key=f"label-{number:09d}",
        )
        raise DataError(text)
    try:
        return str(content, "utf-8")
    except UnicodeDecodeError as error:
        message = tr("{place}: label-{number:09d} is not UTF-8 text", place=_place(path, number), number=number)
        raise DataError(message) from error


class Lines(text_lines.Lines):
    """The samples of all LMDB folders of a section, one folder after the other; each is read when it is asked for."""

    def __init__(self, section: dict, folder: str) -> None:
        sizes = _sizes(section, folder)
        self.paths, self.ends = list(sizes), list(itertools.accumulate(sizes.values()))
        longest = section.get("max_text_len") or max(len(text) for text, _ in _texts(sizes))
        super().__init__(section, range(self.ends[-1]), longest)

    def sample(self, index: int) -> tuple[Any, str]:
        """(what Pillow opens as the image, its text)."""
        part = bisect.bisect_right(self.ends, index)
        path, number = self.paths[part], index + 1 - (self.ends[part - 1] if part else 0)
        with _environment(path).begin() as reader:  # one of its own, because several threads read
            content, text = reader.get(b"image-%09d" % number), _label(reader, path, number)
        if content is None:
            message = tr(
                "{place}: {key} is missing; the data is not whole, fetch or make it again",
                place=_place(path, number),
                key=f"image-{number:09d}",
            )
            raise DataError(message)
        return io.BytesIO(content), text


def build(section: dict, loader: dict, folder: str, part: Part) -> Dataset:
    """Builds the dataset as text_lines.build does."""
    return label_file.batches(Lines(section, folder), loader, part)
