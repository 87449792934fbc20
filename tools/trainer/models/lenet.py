"""LeNet-5."""

from __future__ import annotations

from mindspore import Tensor, nn
from mindspore.common.initializer import HeUniform


class LeNet5(nn.Cell):
    """LeNet-5 for grey images: (batch, 1, 32, 32) float32 -> (batch, num_classes) logits.

    Two convolutions of 5 x 5 with 2 x 2 pooling, then three dense layers (LeCun et al., 1998), with
    ReLU and max pooling as in MindSpore's tutorials.
    """

    def __init__(self, num_classes: int = 10) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="valid", weight_init=HeUniform())
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid", weight_init=HeUniform())
        self.fc1 = nn.Dense(16 * 5 * 5, 120, weight_init=HeUniform())
        self.fc2 = nn.Dense(120, 84, weight_init=HeUniform())
        self.fc3 = nn.Dense(84, num_classes, weight_init=HeUniform())
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(kernel_size=2, stride=2)
        self.flatten = nn.Flatten()

    def construct(self, x: Tensor) -> Tensor:
        x = self.pool(self.relu(self.conv1(x)))
        x = self.pool(self.relu(self.conv2(x)))
        x = self.relu(self.fc1(self.flatten(x)))
        return self.fc3(self.relu(self.fc2(x)))
