"""Images with words in them, and the places of the words: MindOCR's DetDataset.

A label is a JSON list of {"transcription": text, "points": [[x, y], ...]}; the text "###" marks one that is illegible.
A box is the upright rectangle around the points.  `make data` renders some in data/text/det (tools/prepare_text.py).
"""

from __future__ import annotations

import json

from hccl_tools.common.language import tr
from hccl_tools.common.words import one_line
from tools.config.modes import Part
from tools.trainer.datasets import label_file
from tools.trainer.datasets.errors import DataError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import numpy as np
    from mindspore.dataset import Dataset

    Box = tuple[float, float, float, float, bool]  # x0, y0, x1, y1, readable

UNREADABLE = "###"
SIZE = 128  # pixels a side, if the config does not state it
SHRINK = 0.4  # the paper's r: how much smaller the text's core is than its box
LOW, HIGH = 0.3, 0.7  # the threshold map far from a box's border, and on it


def count(section: dict, folder: str) -> int:
    """Images, once their labels can be read."""
    entries = label_file.read(section, folder)
    for _, label, place in entries:
        boxes(label, place)
    label_file.check_images(entries)
    return len(entries)


def boxes(label: str, place: str) -> list[Box]:
    """The boxes of a label, in pixels; `place`: its file and line."""
    try:
        return [
            (
                min(x for x, _ in item["points"]),
                min(y for _, y in item["points"]),
                max(x for x, _ in item["points"]),
                max(y for _, y in item["points"]),
                item["transcription"] != UNREADABLE,
            )
            for item in json.loads(label)
        ]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        text = tr(
            '{place}: expected after the tab [{{"transcription": TEXT, "points": [[X, Y], ...]}}, ...], found: {found}',
            place=place,
            found=one_line(label[:60]),
        )
        raise DataError(text) from error


def shrink_by(width: float, height: float) -> float:
    """The distance of a box's core from its border, in pixels: the paper's D = A (1 - r * r) / L."""
    return width * height * (1 - SHRINK**2) / (2 * (width + height))


def maps(found: list[Box], size: int) -> np.ndarray:
    """float32 (5, size, size): core of the text, its mask, threshold, its mask, number of the box.

    The masks are 0 where a box is unreadable or no threshold is wanted.  The last map numbers the boxes
    from 1 (an unreadable one: below 0), by which the metric knows where they were.
    """
    import numpy as np

    core, border, border_mask, number = np.zeros((4, size, size), np.float32)
    mask = np.ones((size, size), np.float32)
    row, column = np.mgrid[0:size, 0:size].astype(np.float32) + 0.5
    for index, (x0, y0, x1, y1, readable) in enumerate(found, 1):
        # from here: pixels inside the box are positive, by their distance to its border
        inside = np.minimum(np.minimum(column - x0, x1 - column), np.minimum(row - y0, y1 - row))
        number[inside > 0] = index if readable else -index
        if not readable:
            mask[inside > 0] = 0
            continue
        reach = max(1.0, shrink_by(x1 - x0, y1 - y0))
        core[inside > reach] = 1
        # outside, the distance counts from the corner too
        beyond = np.hypot(
            np.maximum(np.maximum(x0 - column, column - x1), 0), np.maximum(np.maximum(y0 - row, row - y1), 0)
        )
        distance = np.where(inside > 0, inside, beyond)
        near = np.clip(1 - distance / reach, 0, 1)
        border = np.maximum(border, near)
        border_mask[near > 0] = 1
    return np.stack([core, mask, border * (HIGH - LOW) + LOW, border_mask, number])


class Boxes(label_file.Source):
    """The images of a data set, with where their words are."""

    def __init__(self, section: dict, folder: str) -> None:
        super().__init__(label_file.read(section, folder))
        self.size = section.get("image_size", SIZE)

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        """image: float32 (3, size, size) in -1..1; label: see `maps`."""
        import numpy as np
        from PIL import Image

        path, label, place = self.entries[index]
        with Image.open(path) as picture:
            across, down = self.size / picture.width, self.size / picture.height
            colours = np.asarray(picture.convert("RGB").resize((self.size, self.size)), np.float32)
        found = [(x0 * across, y0 * down, x1 * across, y1 * down, ok) for x0, y0, x1, y1, ok in boxes(label, place)]
        return colours.transpose(2, 0, 1) / 127.5 - 1, maps(found, self.size)


def build(section: dict, loader: dict, folder: str, part: Part) -> Dataset:
    """Images float32 (batch, 3, size, size) in -1..1, labels float32 (batch, 5, size, size), see `maps`."""
    return label_file.batches(Boxes(section, folder), loader, part)
