"""ResNet-50 (He et al., 2015) for colour images of any size."""

from mindspore import nn


def conv_norm(inside, outside, kernel, stride=1):
    """A convolution that keeps the size, or halves it with stride 2, and its batch normalisation."""
    conv = nn.Conv2d(inside, outside, kernel, stride, pad_mode="pad", padding=kernel // 2, weight_init="HeUniform")
    return nn.SequentialCell(conv, nn.BatchNorm2d(outside))


class Block(nn.Cell):
    """Three convolutions, added to what came in: (batch, inside, h, w) -> (batch, 4 * channels, h / stride, ...)."""

    def __init__(self, inside, channels, stride):
        super().__init__()
        outside = 4 * channels
        self.branch = nn.SequentialCell(
            conv_norm(inside, channels, 1),
            nn.ReLU(),
            conv_norm(channels, channels, 3, stride),
            nn.ReLU(),
            conv_norm(channels, outside, 1),
        )
        self.has_other_shape = stride > 1 or inside != outside
        if self.has_other_shape:
            self.shortcut = conv_norm(inside, outside, 1, stride)
        self.relu = nn.ReLU()

    def construct(self, x):
        shortcut = self.shortcut(x) if self.has_other_shape else x
        return self.relu(self.branch(x) + shortcut)


class ResNet(nn.Cell):
    """(batch, 3, size, size) -> (batch, num_classes); `depths`: how many blocks the four groups have."""

    def __init__(self, depths, num_classes):
        super().__init__()
        self.stem = nn.SequentialCell(
            conv_norm(3, 64, 7, stride=2),
            nn.ReLU(),
            nn.MaxPool2d(kernel_size=3, stride=2, pad_mode="same"),
        )
        blocks, inside = [], 64
        for group, depth in enumerate(depths):
            channels = 64 * 2**group
            for number in range(depth):
                blocks.append(Block(inside, channels, stride=2 if group and not number else 1))
                inside = 4 * channels
        self.blocks = nn.SequentialCell(blocks)
        self.classify = nn.Dense(inside, num_classes)

    def construct(self, x):
        x = self.blocks(self.stem(x))
        return self.classify(x.mean((2, 3)))


def resnet50(num_classes=10):
    """ResNet-50: 24 million parameters."""
    return ResNet((3, 4, 6, 3), num_classes)
