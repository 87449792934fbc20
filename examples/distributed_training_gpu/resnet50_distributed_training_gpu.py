"""ResNet-50 learns CIFAR-10 on several GPUs: every rank has the whole net, and a part of the samples (data parallel).

  bash run_gpu.sh DATA_PATH

Data and loss are those of resnet50_distributed_training.py, which is here as a link.
"""

import os

import mindspore as ms
from mindspore import nn
from mindspore.communication import get_group_size, get_rank, init, release
from mindspore.train import LossMonitor, Model

from resnet import resnet50
from resnet50_distributed_training import SoftmaxCrossEntropyExpand, create_dataset


def test_train_cifar_gpu(epochs=10):
    """The training; pytest finds it by its name."""
    ms.set_context(mode=ms.GRAPH_MODE, device_target="GPU")
    init("nccl")  # mpirun tells each rank its number, and NCCL carries the data between the GPUs
    ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True)
    ms.set_seed(1)
    data = create_dataset(os.environ["DATA_PATH"], ranks=get_group_size(), rank=get_rank())
    net = resnet50()
    optimizer = nn.Momentum(net.trainable_params(), learning_rate=0.01, momentum=0.9)
    model = Model(net, loss_fn=SoftmaxCrossEntropyExpand(sparse=True), optimizer=optimizer)
    model.train(epochs, data, callbacks=[LossMonitor()], dataset_sink_mode=True)
    release()


if __name__ == "__main__":
    test_train_cifar_gpu()
