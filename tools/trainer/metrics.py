"""Metrics of a network on held-out data; each metric is updated with (output of the network, label).

A metric counts, so that several ranks can measure a part each: their counts are added up.
"""

from __future__ import annotations

import sys

import numpy as np
from mindspore.train import Metric
from scipy import ndimage

from tools.trainer.datasets import text_boxes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mindspore import Tensor

    Rectangle = tuple[float, float, float, float]  # x0, y0, x1, y1


class Count(Metric):
    """A metric by what it counts; larger is better."""

    COUNTS: tuple[str, ...]  # names of its attributes

    def __init__(self) -> None:
        super().__init__()
        self.limit = sys.maxsize  # samples that count; those behind them fill up the last batch
        self.clear()

    def clear(self) -> None:
        self.counts = [0] * len(self.COUNTS)
        self.seen = 0

    def update(self, *inputs: Tensor) -> None:
        """Counts a batch: the outputs of the network, and the labels."""
        outputs, labels = (array.asnumpy()[: self.limit - self.seen] for array in inputs)
        self.seen += len(labels)
        self.add(outputs, labels)

    def add(self, outputs: np.ndarray, labels: np.ndarray) -> None:
        """Adds to the counts what these samples have."""
        raise NotImplementedError

    @property
    def counts(self) -> list[int]:
        """The counts since `clear`."""
        return [int(getattr(self, name)) for name in self.COUNTS]

    @counts.setter
    def counts(self, values: list[int]) -> None:
        for name, value in zip(self.COUNTS, values):
            setattr(self, name, value)


class Accuracy(Count):
    """The share of samples whose likeliest class is the right one; outputs are (batch, classes), labels (batch,)."""

    COUNTS = ("right", "samples")

    def add(self, outputs: np.ndarray, labels: np.ndarray) -> None:
        self.right += int((outputs.argmax(1) == labels).sum())
        self.samples += len(labels)

    def eval(self) -> float:
        """The accuracy so far."""
        return self.right / max(1, self.samples)


class CharacterAccuracy(Count):
    """1 - edits / characters: edits are characters to insert, remove or change until the texts are right.

    Outputs are log probabilities (batch, columns, classes), labels (batch, longest) with 0 after the end.
    """

    COUNTS = ("edits", "characters")

    def add(self, outputs: np.ndarray, labels: np.ndarray) -> None:
        for output, label in zip(outputs, labels):
            text = [int(number) for number in label if number]
            self.edits += edit_distance(greedy_text(output), text)
            self.characters += len(text)

    def eval(self) -> float:
        """The accuracy so far; below 0 it is 0."""
        return max(0.0, 1 - self.edits / max(1, self.characters))


def greedy_text(log_probabilities: np.ndarray) -> list[int]:
    """(columns, classes) -> the likeliest class of each column, repeats merged, blanks (0) left out."""
    best = log_probabilities.argmax(-1)
    changed = np.insert(best[1:] != best[:-1], 0, True)
    return [int(number) for number in best[changed] if number]


def edit_distance(one: Sequence[object], other: Sequence[object]) -> int:
    """Levenshtein's distance of two sequences."""
    row = list(range(len(other) + 1))
    for index, left in enumerate(one, 1):
        diagonal, row[0] = row[0], index
        for place, right in enumerate(other, 1):
            diagonal, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, diagonal + (left != right))
    return row[-1]


class Hmean(Count):
    """Harmonic mean of precision and recall of text boxes; a box is found when one covers it by IoU 0.5.

    Outputs and labels are maps, see tools.trainer.models.dbnet.DBNet and tools.trainer.datasets.text_boxes.maps.
    """

    OVERLAP = 0.5
    COUNTS = ("matched", "found", "wanted")

    def add(self, outputs: np.ndarray, labels: np.ndarray) -> None:
        for output, label in zip(outputs, labels):
            numbers = label[4].astype(int)
            unreadable = rectangles(np.maximum(-numbers, 0))
            found = [
                box for box in text_rectangles(output[0]) if all(iou(box, other) < self.OVERLAP for other in unreadable)
            ]
            wanted = rectangles(np.maximum(numbers, 0))
            self.found += len(found)
            self.wanted += len(wanted)
            self.matched += matches(found, wanted, self.OVERLAP)

    def eval(self) -> float:
        """The harmonic mean so far, 2 matched / (found + wanted)."""
        return 2 * self.matched / max(1, self.found + self.wanted)


def rectangles(numbers: np.ndarray) -> list[Rectangle]:
    """The rectangle around each number above 0 of an int array (h, w)."""
    return [
        (columns.start, rows.start, columns.stop, rows.stop)
        for rows, columns in filter(None, ndimage.find_objects(numbers))
    ]


def text_rectangles(probability: np.ndarray, pixel: float = 0.3, box: float = 0.6) -> list[Rectangle]:
    """The boxes of text in a probability map (h, w): cores of sure pixels, grown back by what they were shrunk."""
    height, width = probability.shape
    cores, _ = ndimage.label(probability > pixel)
    found = []
    for number, (x0, y0, x1, y1) in enumerate(rectangles(cores), 1):
        if probability[cores == number].mean() < box:
            continue
        grow = grow_by(x1 - x0, y1 - y0)
        found.append((max(0, x0 - grow), max(0, y0 - grow), min(width, x1 + grow), min(height, y1 + grow)))
    return found


def grow_by(width: float, height: float) -> float:
    """The distance d by which a core of width x height was shrunk: text_boxes.shrink_by(width + 2d, height + 2d) = d.

    That equation, with share s = (1 - r * r) / 2, is (4 - 4s) d d + (1 - 2s) (w + h) d - s w h = 0.
    """
    share = (1 - text_boxes.SHRINK**2) / 2
    square, linear, constant = 4 - 4 * share, (1 - 2 * share) * (width + height), -share * width * height
    return (-linear + (linear**2 - 4 * square * constant) ** 0.5) / (2 * square)


def iou(one: Rectangle, other: Rectangle) -> float:
    """Common area of two rectangles by the area of both together."""
    across = min(one[2], other[2]) - max(one[0], other[0])
    down = min(one[3], other[3]) - max(one[1], other[1])
    if across <= 0 or down <= 0:
        return 0.0
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (one, other)]
    return across * down / (sum(areas) - across * down)


def matches(found: list[Rectangle], wanted: list[Rectangle], overlap: float) -> int:
    """The number of pairs, each box in one of them at most, the best first."""
    pairs = sorted(
        ((iou(one, other), i, j) for i, one in enumerate(found) for j, other in enumerate(wanted)), reverse=True
    )
    taken: set[int] = set()
    given: set[int] = set()
    for value, i, j in pairs:
        if value >= overlap and i not in taken and j not in given:
            taken.add(i)
            given.add(j)
    return len(taken)


METRICS = {
    "CrossEntropyLoss": ("accuracy", Accuracy),
    "SoftmaxCrossEntropyExpand": ("accuracy", Accuracy),
    "CTCLoss": ("character accuracy", CharacterAccuracy),
    "DBLoss": ("hmean", Hmean),
}


def build(loss: str) -> dict[str, Count]:
    """{name: metric} of what is learned with the loss of that name."""
    name, metric = METRICS[loss]
    return {name: metric()}
