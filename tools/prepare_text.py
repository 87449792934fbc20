#!/usr/bin/env python3
"""Renders images of text for training recognition and detection, in MindOCR's formats.

FOLDER/rec/{train,test}: images of one word; rec_gt.txt next to them has one line per image, "name<TAB>text".
FOLDER/det/{train,test}: images with words in them; det_gt.txt: "name<TAB>[{"transcription", "points"}, ...]".
Words are random characters, in the font that comes with Pillow, on a noisy background.

  python tools/prepare_text.py data/text

Exit: 0 written, 2 usage, or FOLDER cannot be written.
"""

import json
import os
import sys
from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable

if not __package__:  # run as a file: import the packages hccl_tools and tools from the project
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))

try:
    from hccl_tools.machine import interpreter
except ImportError:  # copied without the rest of the project
    sys.stderr.write("the rest of the project is not here; run it there: python PROJECT/tools/prepare_text.py\n")
    sys.exit(2)

interpreter.check("numpy", "PIL")

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from hccl_tools.common.language import tr
from tools.trainer import command
from tools.trainer.datasets import generator

CHARACTERS = "0123456789abcdefghijklmnopqrstuvwxyz"
SIDE = 128  # pixels of an image to find words in
NOISE = 1 << 20  # random numbers; every image takes some that follow each other, from a random place on


def main(argv: "list[str] | None" = None) -> int:
    parser = generator.parser(tr(__doc__))
    parser.option("words", type=command.positive, default=2000)
    parser.option("scenes", type=command.positive, default=300)
    parser.option("font", type=font_file)
    parser.option("characters", default=CHARACTERS)
    return generator.run(parser, argv, write)


def font_file(path: str) -> str:
    """The type of --font: a file that Pillow can read."""
    try:
        ImageFont.truetype(path, 20)
    except OSError as error:
        raise ArgumentTypeError(f"{path}: {error}") from error
    return path


def write(options: Namespace) -> str:
    """All sets; returns what they hold."""
    writer = Writer(options.characters, options.font)
    for kind, draw, count in (("rec", writer.word_image, options.words), ("det", writer.scene, options.scenes)):
        for part, images in (("train", count), ("test", max(1, count // 10))):
            write_set(os.path.join(options.folder, kind, part), f"{kind}_gt.txt", draw, images)
    return tr(
        "{words} words and {scenes} scenes to train on, a tenth as many held out",
        words=options.words,
        scenes=options.scenes,
    )


class Writer:
    """Draws words, different ones each time; two Writers draw the same sequence."""

    def __init__(self, characters: str, font: "str | None") -> None:
        self.characters = characters
        self.font = font
        self.random = np.random.RandomState(42)
        self.noise = 8 * np.random.default_rng(42).standard_normal(NOISE, np.float32)
        self.loaded: dict[int, ImageFont.FreeTypeFont | ImageFont.ImageFont] = {}  # the font in each size

    def fonts(self, size: int) -> "ImageFont.FreeTypeFont | ImageFont.ImageFont":
        if size not in self.loaded:
            self.loaded[size] = ImageFont.truetype(self.font, size) if self.font else ImageFont.load_default(size)
        return self.loaded[size]

    def word(self) -> str:
        """Three to six random characters."""
        length = self.random.randint(3, 7)
        return "".join(self.characters[number] for number in self.random.randint(0, len(self.characters), length))

    def background(self, width: int, height: int) -> "tuple[Image.Image, bool]":
        """A noisy colour image, and how dark it is: True where writing must be bright."""
        dark = bool(self.random.randint(2))
        base = self.random.uniform(10, 80, 3) if dark else self.random.uniform(175, 245, 3)
        numbers = height * width * 3
        start = self.random.randint(NOISE - numbers)
        picture = self.noise[start : start + numbers].reshape(height, width, 3) + base.astype(np.float32)
        return Image.fromarray(np.clip(picture, 0, 255, out=picture).astype(np.uint8)), dark

    def ink(self, dark: bool) -> "tuple[int, ...]":
        """A colour that can be read on such a background."""
        return tuple(
            int(value) for value in (self.random.uniform(180, 255, 3) if dark else self.random.uniform(0, 75, 3))
        )

    def word_image(self) -> "tuple[Image.Image, str]":
        """(an image 32 pixels high with one word, the word)."""
        text = self.word()
        font = self.fonts(self.random.randint(18, 25))
        left, top, right, bottom = map(int, font.getbbox(text))
        picture, dark = self.background(right - left + self.random.randint(4, 16), 32)
        at = (self.random.randint(1, 4) - left, (32 - bottom + top) // 2 - top + self.random.randint(-2, 3))
        ImageDraw.Draw(picture).text(at, text, font=font, fill=self.ink(dark))
        return picture, text

    def scene(self) -> "tuple[Image.Image, str]":
        """(an image with one to four words that do not touch, their boxes as JSON)."""
        picture, dark = self.background(SIDE, SIDE)
        draw = ImageDraw.Draw(picture)
        labels, taken = [], np.zeros((SIDE, SIDE), bool)
        for _ in range(self.random.randint(1, 5)):
            text, font = self.word(), self.fonts(self.random.randint(16, 29))
            left, top, right, bottom = map(int, font.getbbox(text))
            width, height = right - left, bottom - top
            if width > SIDE - 8:
                continue
            x, y = self.random.randint(4, SIDE - width - 3), self.random.randint(4, SIDE - height - 3)
            if taken[max(0, y - 6) : y + height + 6, max(0, x - 6) : x + width + 6].any():
                continue
            taken[y : y + height, x : x + width] = True
            draw.text((x - left, y - top), text, font=font, fill=self.ink(dark))
            corners = [[x, y], [x + width, y], [x + width, y + height], [x, y + height]]
            labels.append({"transcription": text, "points": [[int(a), int(b)] for a, b in corners]})
        return picture, json.dumps(labels, ensure_ascii=False)


def write_set(folder: str, label_file: str, draw: "Callable[[], tuple[Image.Image, str]]", count: int) -> None:
    """`count` images by draw() -> (image, label), and their label file, last: with it the set is whole."""
    os.makedirs(folder, exist_ok=True)
    lines = []
    for number in range(count):
        picture, label = draw()
        name = f"{number:05d}.png"
        picture.save(os.path.join(folder, name), compress_level=0)  # noise hardly gets smaller, and takes long
        lines.append(f"{name}\t{label}\n")
    generator.write_file(os.path.join(folder, label_file), "".join(lines).encode())


if __name__ == "__main__":
    sys.exit(main())
