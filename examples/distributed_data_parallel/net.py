"""A dense net learns MNIST's digits, data parallel: every rank has a part of the digits, and all have the same weights.

  export DATA_PATH=./MNIST_Data/train/
  bash run.sh

DATA_PATH is the folder with train-images-idx3-ubyte and train-labels-idx1-ubyte.
"""

import os

import mindspore as ms
import mindspore.dataset as ds
from mindspore import nn
from mindspore.communication import get_group_size, get_rank, init, release
from mindspore.dataset import transforms, vision


class Net(nn.Cell):
    """(batch, 1, 28, 28) -> (batch, 10)."""

    def __init__(self):
        super().__init__()
        self.flatten = nn.Flatten()
        self.hidden = nn.Dense(28 * 28, 128, activation="relu")
        self.classify = nn.Dense(128, 10)

    def construct(self, x):
        return self.classify(self.hidden(self.flatten(x)))


def create_dataset(data_path, batch_size=32, ranks=1, rank=0):
    """The part of MNIST that is rank `rank`'s, in batches of (image, label)."""
    data = ds.MnistDataset(data_path, shuffle=True, num_shards=ranks, shard_id=rank)
    operations = [vision.Rescale(1.0 / 255.0, 0.0), vision.Normalize((0.1307,), (0.3081,)), vision.HWC2CHW()]
    data = data.map(operations, input_columns="image")
    data = data.map(transforms.TypeCast(ms.int32), input_columns="label")
    return data.batch(batch_size, drop_remainder=True)


def train(net, data, epochs=10, learning_rate=0.01):
    """Trains the net, with the mean of all ranks' gradients, and prints the loss of every tenth step."""
    loss_function = nn.CrossEntropyLoss()
    optimizer = nn.SGD(net.trainable_params(), learning_rate)

    def forward(images, labels):
        return loss_function(net(images), labels)

    gradients_of = ms.value_and_grad(forward, None, optimizer.parameters)
    mean_of_ranks = nn.DistributedGradReducer(optimizer.parameters)
    for epoch in range(epochs):
        for step, (images, labels) in enumerate(data.create_tuple_iterator()):
            loss, gradients = gradients_of(images, labels)
            optimizer(mean_of_ranks(gradients))
            if step % 10 == 0:
                print(f"epoch: {epoch}, step: {step}, loss is {float(loss):.4f}")


def main():
    """The training of one rank."""
    ms.set_context(mode=ms.GRAPH_MODE)  # the device: that of this MindSpore
    ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True)
    init()  # finds the other ranks: by mpirun, by the rank table, or by MindSpore's scheduler
    ms.set_seed(1)  # all ranks begin with the same weights
    net = Net()
    train(net, create_dataset(os.environ["DATA_PATH"], ranks=get_group_size(), rank=get_rank()))
    release()


if __name__ == "__main__":
    main()
