"""A dense net learns MNIST's digits; shard() says how its layers are cut, and MindSpore cuts them (semi-auto parallel).

  bash ../../scripts/run.sh DATA_PATH 8 semi_auto_parallel.py

DATA_PATH is the folder with train-images-idx3-ubyte and train-labels-idx1-ubyte.
"""

import os

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn, ops
from mindspore.communication import get_group_size, init, release
from mindspore.dataset import transforms, vision
from mindspore.train import LossMonitor, Model

PIXELS, HIDDEN, CLASSES = 28 * 28, 128, 10


def create_dataset(data_path, batch_size=32, ranks=1, rank=0):
    """The part of MNIST that is rank `rank`'s, in batches of (image, label)."""
    data = ds.MnistDataset(data_path, shuffle=False, num_shards=ranks, shard_id=rank)
    data = data.map([vision.Rescale(1.0 / 255.0, 0.0), vision.HWC2CHW()], input_columns="image")
    data = data.map(transforms.TypeCast(ms.int32), input_columns="label")
    return data.batch(batch_size, drop_remainder=True)


def first_weights(seed=1):
    """{name: array} of the whole net, the same on all ranks."""
    draw = np.random.default_rng(seed)
    sizes = [PIXELS, HIDDEN, HIDDEN, CLASSES]
    shapes = {f"layer{number}.weight": sizes[number - 1 : number + 1] for number in (1, 2, 3)}
    return {name: draw.normal(0, (2 / shape[0]) ** 0.5, shape).astype(np.float32) for name, shape in shapes.items()}


class Layer(nn.Cell):
    """x @ weight; `strategy`: into how many parts the axes of x and of the weight are cut."""

    def __init__(self, weight, strategy=None):
        super().__init__()
        self.weight = ms.Parameter(ms.Tensor(weight))
        self.matmul = ops.MatMul()
        if strategy:
            self.matmul.shard(strategy)

    def construct(self, x):
        return self.matmul(x, self.weight)


class Net(nn.Cell):
    """(batch, 1, 28, 28) -> (batch, 10); its two large layers are cut over `ranks` ranks.

    The first weight is cut by columns, so that each rank computes some of the hidden values. The second is cut by
    rows: it needs just these values. MindSpore adds up what the ranks get for the second layer.
    """

    def __init__(self, ranks=1):
        super().__init__()
        weights = first_weights()
        by_columns, by_rows = (((1, 1), (1, ranks)), ((1, ranks), (ranks, 1))) if ranks > 1 else (None, None)
        self.flatten, self.relu, self.relu_of_parts = nn.Flatten(), ops.ReLU(), ops.ReLU()
        if ranks > 1:
            self.relu_of_parts.shard(((1, ranks),))  # else MindSpore would bring the parts together, and cut them again
        self.layer1 = Layer(weights["layer1.weight"], by_columns)
        self.layer2 = Layer(weights["layer2.weight"], by_rows)
        self.layer3 = Layer(weights["layer3.weight"])

    def construct(self, x):
        x = self.relu_of_parts(self.layer1(self.flatten(x)))
        return self.layer3(self.relu(self.layer2(x)))


def train(net, data, epochs, callbacks=()):
    """Trains the net, prints the loss of every step, and returns the Model."""
    optimizer = nn.Momentum(net.trainable_params(), learning_rate=0.05, momentum=0.9)
    model = Model(net, loss_fn=nn.CrossEntropyLoss(), optimizer=optimizer)
    model.train(epochs, data, callbacks=[LossMonitor(), *callbacks], dataset_sink_mode=False)
    return model


def test_train_semi_auto(epochs=2):
    """The training; pytest finds it by its name."""
    ms.set_context(mode=ms.GRAPH_MODE)  # in PyNative mode shard() would have no effect
    init()
    ms.set_auto_parallel_context(
        parallel_mode=ms.ParallelMode.SEMI_AUTO_PARALLEL,
        dataset_strategy="full_batch",  # all ranks read the same samples
        gradients_mean=True,
    )
    train(Net(get_group_size()), create_dataset(os.environ["DATA_PATH"]), epochs)
    release()


if __name__ == "__main__":
    test_train_semi_auto()
