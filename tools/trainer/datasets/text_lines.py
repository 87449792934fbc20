"""Images with one line of text each, and the text: MindOCR's RecDataset.

`make data` renders some in data/text/rec (tools/prepare_text.py).
"""

from __future__ import annotations

from hccl_tools.common.language import tr
from hccl_tools.common.words import one_line
from tools.config.modes import Part
from tools.trainer.datasets import label_file
from tools.trainer.datasets.errors import DataError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    import numpy as np
    from mindspore.dataset import Dataset

HEIGHT = 32
WIDTH = 128  # if the config does not state it
COLUMN = 4  # pixels of width that the network makes one column of


def count(section: dict, folder: str) -> int:
    """Lines, once each can be written with the section's characters and fits the image's width."""
    entries = label_file.read(section, folder)
    check_texts(((text, place) for _, text, place in entries), section)
    label_file.check_images(entries)
    return len(entries)


def check_texts(texts: Iterable[tuple[str, str]], section: dict) -> None:
    """Refuses a text that the network cannot learn; texts: each with its place."""
    known = set(section["characters"])
    for text, place in texts:
        fault = _fault(text, known, section)
        if fault:
            raise DataError(tr("{place}: the label {label} {fault}", place=place, label=one_line(text), fault=fault))


def _fault(text: str, known: set[str], section: dict) -> str | None:
    """What makes a text unfit to be learned, or None."""
    width, most = section.get("image_width", WIDTH), section.get("max_text_len")
    strange = sorted(set(text) - known)
    if strange:
        return tr(
            "has {strange}, which dataset.characters lacks; add it there or leave the line out",
            strange=one_line(strange[0]),
        )
    if not text:
        return tr("has no text; leave the line out")
    if most is not None and len(text) > most:
        return tr(
            "has {number} characters, more than dataset.max_text_len, {most}; leave the line out, or raise that",
            number=len(text),
            most=most,
        )
    # CTC needs one column per character, and one more between two that are the same.
    needed = len(text) + sum(one == other for one, other in zip(text, text[1:]))
    if needed > width // COLUMN:
        return tr(
            "needs {needed} columns, an image of {width} pixels has {columns}; raise dataset.image_width",
            needed=needed,
            width=width,
            columns=width // COLUMN,
        )
    return None


class Lines(label_file.Source):
    """The samples of a data set; entries: see label_file.read; longest: characters that a text has at most."""

    def __init__(self, section: dict, entries: Sequence[Any], longest: int) -> None:
        super().__init__(entries)
        self.width = section.get("image_width", WIDTH)
        self.number = {character: index for index, character in enumerate(section["characters"], 1)}
        self.longest = longest

    def sample(self, index: int) -> tuple[Any, str]:
        """(what Pillow opens as the image, its text)."""
        path, text, _ = self.entries[index]
        return path, text

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        """image: float32 (1, 32, width) in 0..1; label: int32 (longest,), 0 after the text's end."""
        import numpy as np
        from PIL import Image

        image, text = self.sample(index)
        with Image.open(image) as picture:
            wide = min(self.width, max(1, round(picture.width * HEIGHT / picture.height)))
            grey = np.asarray(picture.convert("L").resize((wide, HEIGHT)), np.float32)
        # Bright on dark or dark on bright: the background becomes 0, and writing positive either way.
        contrast = np.abs(grey - np.median(grey))
        image = np.pad(contrast / max(1.0, contrast.max()), ((0, 0), (0, self.width - wide)))
        label = np.zeros(self.longest, np.int32)
        label[: len(text)] = [self.number[character] for character in text]
        return image[None], label


def build(section: dict, loader: dict, folder: str, part: Part) -> Dataset:
    """Images float32 (batch, 1, 32, width) in 0..1, labels int32 (batch, longest): characters' numbers from 1."""
    entries = label_file.read(section, folder)
    longest = section.get("max_text_len") or max(len(text) for _, text, _ in entries)
    return label_file.batches(Lines(section, entries, longest), loader, part)
