"""ResNet-50 (He et al., 2015), version 1.5: the stride of a block is in its 3 x 3 convolution."""

from __future__ import annotations

from mindspore import Tensor, nn
from mindspore.common.initializer import HeNormal, initializer

EXPANSION = 4  # a block's output has four times its inner channels


def convolution(inside: int, outside: int, kernel: int, stride: int = 1) -> nn.Cell:
    """A convolution without bias, padded to keep the size, and its batch normalisation."""
    return nn.SequentialCell(
        nn.Conv2d(
            inside,
            outside,
            kernel,
            stride,
            pad_mode="pad",
            padding=kernel // 2,
            weight_init=HeNormal(mode="fan_out", nonlinearity="relu"),
        ),
        nn.BatchNorm2d(outside),
    )


class Bottleneck(nn.Cell):
    """1 x 1, 3 x 3 and 1 x 1 convolutions, added to what came in: (b, inside, h, w) -> (b, 4 channels, h', w')."""

    def __init__(self, inside: int, channels: int, stride: int) -> None:
        super().__init__()
        outside = channels * EXPANSION
        self.branch = nn.SequentialCell(
            convolution(inside, channels, 1),
            nn.ReLU(),
            convolution(channels, channels, 3, stride),
            nn.ReLU(),
            convolution(channels, outside, 1),
        )
        # At first the block passes on what came in: training starts calmer (Goyal et al., 2017).
        self.branch[-1][-1].gamma.set_data(initializer("zeros", outside))
        same = stride == 1 and inside == outside
        self.shortcut = nn.SequentialCell() if same else convolution(inside, outside, 1, stride)
        self.same = same
        self.relu = nn.ReLU()

    def construct(self, x: Tensor) -> Tensor:
        shortcut = x if self.same else self.shortcut(x)
        return self.relu(self.branch(x) + shortcut)


class ResNet50(nn.Cell):
    """ResNet-50 for colour images: (batch, 3, size, size) float32 -> (batch, num_classes) logits.

    size is 224 in the paper; 32 and more work.  25.6 million parameters with 1,000 classes.
    """

    BLOCKS = (3, 4, 6, 3)

    def __init__(self, num_classes: int = 10) -> None:
        super().__init__()
        self.stem = nn.SequentialCell(
            convolution(3, 64, 7, stride=2),
            nn.ReLU(),
            nn.MaxPool2d(kernel_size=3, stride=2, pad_mode="same"),
        )
        stages, inside = [], 64
        for number, blocks in enumerate(self.BLOCKS):
            channels = 64 * 2**number
            for block in range(blocks):
                stages.append(Bottleneck(inside, channels, stride=2 if block == 0 and number > 0 else 1))
                inside = channels * EXPANSION
        self.stages = nn.SequentialCell(stages)
        self.classify = nn.Dense(inside, num_classes)

    def set_pipeline_stages(self, stages: int) -> None:
        """Deals the layers out to the stages of a pipeline: as many blocks each, the first with the stem."""
        self.stem.pipeline_stage = 0
        for number, block in enumerate(self.stages):
            block.pipeline_stage = number * stages // len(self.stages)
        self.classify.pipeline_stage = stages - 1

    def construct(self, x: Tensor) -> Tensor:
        x = self.stages(self.stem(x))
        return self.classify(x.mean(axis=(2, 3)))
