"""The net of semi_auto_parallel.py, cut by hand (hybrid parallel): every rank makes its part of the weights itself.

  bash ../../scripts/run.sh DATA_PATH 8 hybrid_parallel.py

It runs on Ascend, GPU and CPU.
"""

import os

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from mindspore.communication import get_group_size, get_rank, init, release

from semi_auto_parallel import Layer, create_dataset, first_weights, train

CUT = {"layer1.weight": 1, "layer2.weight": 0}  # the axis along which a weight is cut; others are whole on every rank


class SumOverRanks(nn.Cell):
    """The sum of what the ranks have.

    All ranks go on with the same sum, and so find the same gradient of it. That is already the gradient of each
    summand. AllReduce's own gradient would add it up once more.
    """

    def __init__(self):
        super().__init__()
        self.all_reduce = ops.AllReduce()

    def construct(self, x):
        return self.all_reduce(x)

    def bprop(self, x, out, gradient):
        return (gradient,)


class HybridNet(nn.Cell):
    """(batch, 1, 28, 28) -> (batch, 10), the same on all ranks, computed with one part of the weights on each."""

    def __init__(self, rank=0, ranks=1):
        super().__init__()
        weights = first_weights()
        for name, axis in CUT.items():
            weights[name] = np.split(weights[name], ranks, axis)[rank]
        self.flatten, self.relu = nn.Flatten(), nn.ReLU()
        self.layer1 = Layer(weights["layer1.weight"])
        self.layer2 = Layer(weights["layer2.weight"])
        self.layer3 = Layer(weights["layer3.weight"])
        self.sum = SumOverRanks() if ranks > 1 else nn.Identity()
        for name, weight in self.parameters_and_names():
            weight.layerwise_parallel = name in CUT  # MindSpore leaves the gradient of such a weight alone

    def construct(self, x):
        x = self.relu(self.layer1(self.flatten(x)))
        return self.layer3(self.relu(self.sum(self.layer2(x))))


def test_train_hybrid(epochs=2):
    """The training; pytest finds it by its name."""
    ms.set_context(mode=ms.GRAPH_MODE)
    init()
    ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.HYBRID_PARALLEL, gradients_mean=True)
    train(HybridNet(get_rank(), get_group_size()), create_dataset(os.environ["DATA_PATH"]), epochs)
    release()


if __name__ == "__main__":
    test_train_hybrid()
