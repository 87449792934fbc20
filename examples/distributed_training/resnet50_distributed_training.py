"""ResNet-50 learns CIFAR-10 on several Ascend NPUs; MindSpore decides how the net is cut (auto parallel).

Every rank of the job runs this file:

  bash run.sh DATA_PATH 8

DATA_PATH is the folder with CIFAR-10's files data_batch_1.bin and so on.
"""

import os

import mindspore as ms
import mindspore.dataset as ds
from mindspore import nn, ops
from mindspore.communication import get_group_size, get_rank, init, release
from mindspore.dataset import transforms, vision
from mindspore.train import LossMonitor, Model

from resnet import resnet50


def create_dataset(data_path, batch_size=32, ranks=1, rank=0, size=224):
    """The part of CIFAR-10 that is rank `rank`'s, in batches of (image, label)."""
    data = ds.Cifar10Dataset(data_path, usage="train", shuffle=True, num_shards=ranks, shard_id=rank)
    operations = [
        vision.RandomCrop((32, 32), (4, 4, 4, 4)),  # 4 pixels are added at each edge first
        vision.RandomHorizontalFlip(),
        vision.Resize((size, size)),
        vision.Rescale(1.0 / 255.0, 0.0),
        vision.Normalize((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
        vision.HWC2CHW(),
    ]
    data = data.map(operations, input_columns="image")
    data = data.map(transforms.TypeCast(ms.int32), input_columns="label")
    return data.batch(batch_size, drop_remainder=True)


class SoftmaxCrossEntropyExpand(nn.Cell):
    """The mean cross entropy of softmax(logits), written out in small operators, each of which MindSpore can cut.

    sparse: the labels are numbers of classes, (batch,); else they are rows with a 1, (batch, classes).
    """

    def __init__(self, sparse=False):
        super().__init__()
        self.sparse = sparse
        self.exp, self.log, self.sub, self.mul = ops.Exp(), ops.Log(), ops.Sub(), ops.Mul()
        self.max, self.sum = ops.ReduceMax(keep_dims=True), ops.ReduceSum(keep_dims=True)
        self.mean = ops.ReduceMean(keep_dims=False)
        self.one_hot = ops.OneHot()
        self.on_value, self.off_value = ms.Tensor(1.0, ms.float32), ms.Tensor(0.0, ms.float32)

    def construct(self, logits, labels):
        if self.sparse:
            labels = self.one_hot(labels, logits.shape[1], self.on_value, self.off_value)
        logits = self.sub(logits, self.max(logits, -1))  # softmax stays the same, and exp cannot overflow
        log_softmax = self.sub(logits, self.log(self.sum(self.exp(logits), -1)))
        return -self.mean(self.sum(self.mul(labels, log_softmax), -1))


def test_train_cifar(epochs=10):
    """The training; pytest finds it by its name."""
    ms.set_context(mode=ms.GRAPH_MODE)  # the device: that of this MindSpore, with the number in DEVICE_ID
    init()  # finds the other ranks: by the rank table, or by MindSpore's scheduler
    ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.AUTO_PARALLEL, gradients_mean=True)
    ms.set_seed(1)  # all ranks begin with the same weights
    data = create_dataset(os.environ["DATA_PATH"], ranks=get_group_size(), rank=get_rank())
    net = resnet50()
    optimizer = nn.Momentum(net.trainable_params(), learning_rate=0.01, momentum=0.9)
    model = Model(net, loss_fn=SoftmaxCrossEntropyExpand(sparse=True), optimizer=optimizer)
    model.train(epochs, data, callbacks=[LossMonitor()], dataset_sink_mode=True)
    release()


if __name__ == "__main__":
    test_train_cifar()
