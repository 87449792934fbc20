"""A small text detector after DBNet (Liao et al., 2019): which pixels are text, and where it ends."""

from __future__ import annotations

from mindspore import Tensor, nn, ops

from tools.trainer.models.crnn import convolution


class DBNet(nn.Cell):
    """(batch, 3, size, size) float32 -> (batch, 3, size, size): probability, threshold, approximate binary map.

    All three in 0..1.  size: a multiple of 8.  channels: of the finest level.  k: how steep the step
    between text and background is; 50 in the paper.
    """

    def __init__(self, channels: int = 16, k: float = 50) -> None:
        super().__init__()
        self.k = k
        self.half = convolution(3, channels, stride=2)
        self.quarter = nn.SequentialCell(
            convolution(channels, 2 * channels, stride=2), convolution(2 * channels, 2 * channels)
        )
        self.eighth = nn.SequentialCell(
            convolution(2 * channels, 4 * channels, stride=2), convolution(4 * channels, 4 * channels)
        )
        self.from_quarter = nn.Conv2d(2 * channels, 2 * channels, 1)
        self.from_eighth = nn.Conv2d(4 * channels, 2 * channels, 1)
        self.probability = self._head(2 * channels)
        self.threshold = self._head(2 * channels)

    @staticmethod
    def _head(channels: int) -> nn.Cell:
        """(b, channels, size / 4, size / 4) -> (b, 1, size, size) in 0..1."""
        return nn.SequentialCell(
            convolution(channels, channels),
            nn.Conv2dTranspose(channels, channels // 2, 2, 2),
            nn.BatchNorm2d(channels // 2),
            nn.ReLU(),
            nn.Conv2dTranspose(channels // 2, 1, 2, 2),
            nn.Sigmoid(),
        )

    def construct(self, x: Tensor) -> Tensor:
        quarter = self.quarter(self.half(x))
        eighth = self.from_eighth(self.eighth(quarter))
        # every pixel of the coarse level four times, beside the fine one
        coarse = eighth.repeat_interleave(2, 2).repeat_interleave(2, 3)
        fused = self.from_quarter(quarter) + coarse
        probability, threshold = self.probability(fused), self.threshold(fused)
        binary = ops.sigmoid(self.k * (probability - threshold))
        return ops.cat((probability, threshold, binary), 1)
