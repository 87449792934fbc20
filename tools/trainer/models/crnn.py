"""A small CRNN (Shi et al., 2015): convolutions read the image of a line of text, an LSTM reads its columns."""

from __future__ import annotations

from mindspore import Tensor, nn, ops


def convolution(inside: int, outside: int, kernel: int = 3, stride: int = 1) -> nn.Cell:
    """A convolution with batch normalisation and ReLU that keeps the size but for its stride."""
    return nn.SequentialCell(
        nn.Conv2d(inside, outside, kernel, stride, pad_mode="pad", padding=kernel // 2),
        nn.BatchNorm2d(outside),
        nn.ReLU(),
    )


class CRNN(nn.Cell):
    """(batch, 1, 32, width) float32 -> (batch, width / 4, num_classes) logarithms of probabilities.

    Class 0 is CTC's blank; the others are the characters.  hidden_size: of the LSTM, each direction.
    """

    def __init__(self, num_classes: int = 37, hidden_size: int = 64) -> None:
        super().__init__()
        self.features = nn.SequentialCell(
            convolution(1, 16),
            nn.MaxPool2d(2, 2),  # 16 x width/2
            convolution(16, 32),
            nn.MaxPool2d(2, 2),  # 8 x width/4
            convolution(32, 64),
            nn.MaxPool2d((2, 1), (2, 1)),  # from here the width stays: it is the text's time
            convolution(64, 64),
            nn.MaxPool2d((4, 1), (4, 1)),  # 1 x width/4
        )
        self.read = nn.LSTM(64, hidden_size, bidirectional=True, batch_first=True)
        self.classify = nn.Dense(2 * hidden_size, num_classes)

    def construct(self, x: Tensor) -> Tensor:
        columns = self.features(x).squeeze(2).transpose(0, 2, 1)
        columns, _ = self.read(columns)
        return ops.log_softmax(self.classify(columns), -1)
