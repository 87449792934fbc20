"""The learning rate of every step, from the section `scheduler` of a config; nothing here imports MindSpore."""

from __future__ import annotations

import math


def learning_rate(section: dict, steps: int) -> float | list[float]:
    """The learning rate, or a list of one for each step; `steps`: steps an epoch."""
    if section["scheduler"] == "constant":
        return float(section["lr"])
    if section["scheduler"] == "cosine_decay":
        return _by_epochs(section, steps)
    return _warmup_cosine(section, steps)


def _by_epochs(section: dict, steps: int) -> list[float]:
    """Half a cosine from lr towards min_lr, constant within an epoch, as MindSpore's nn.cosine_decay_lr."""
    epochs = section["num_epochs"]
    return [_cosine(section, epoch / epochs) for epoch in range(epochs) for _ in range(steps)]


def _warmup_cosine(section: dict, steps: int) -> list[float]:
    """A line from warmup_factor * lr up to lr, half a cosine down to min_lr, then min_lr, as MindOCR computes them."""
    epochs, warm = section["num_epochs"], section["warmup_epochs"]
    rise, fall = warm * steps, section.get("decay_epochs", epochs - warm) * steps
    low = section["warmup_factor"]
    line = [section["lr"] * (low + (1 - low) * step / rise) for step in range(rise)]
    return line + [_cosine(section, min(1.0, step / fall)) for step in range(epochs * steps - rise)]


def _cosine(section: dict, share: float) -> float:
    """The learning rate after that share of the way, 0 to 1."""
    low = section["min_lr"]
    return float(low + (section["lr"] - low) * (1 + math.cos(math.pi * share)) / 2)
