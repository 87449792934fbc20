"""The dense net of MindSpore's first tutorial."""

from __future__ import annotations

from mindspore import Tensor, nn


class DenseNet(nn.Cell):
    """Three dense layers for grey images: (batch, 1, size, size) float32 -> (batch, num_classes) logits.

    image_size: pixels a side.  512 units in the two inner layers, ReLU after each.
    """

    def __init__(self, num_classes: int = 10, image_size: int = 28) -> None:
        super().__init__()
        self.flatten = nn.Flatten()
        self.layers = nn.SequentialCell(
            nn.Dense(image_size * image_size, 512),
            nn.ReLU(),
            nn.Dense(512, 512),
            nn.ReLU(),
            nn.Dense(512, num_classes),
        )

    def construct(self, x: Tensor) -> Tensor:
        return self.layers(self.flatten(x))
