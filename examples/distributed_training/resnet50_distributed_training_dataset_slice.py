"""ResNet-50 learns CIFAR-10 with every image cut into strips, one strip a rank.

  bash run_dataset_slice.sh DATA_PATH 8

This is for images that are too large for one device. All ranks read the same images in the same order, and each keeps
its strip. The dataset_strategy tells MindSpore how the strips make up an image.
"""

import os

import mindspore as ms
import mindspore.dataset as ds
from mindspore import nn
from mindspore.communication import get_group_size, get_rank, init, release
from mindspore.dataset import transforms, vision
from mindspore.train import LossMonitor, Model

from resnet import resnet50
from resnet50_distributed_training import SoftmaxCrossEntropyExpand


def create_dataset(data_path, batch_size=32, ranks=1, rank=0, size=224):
    """Strip `rank` of every image of CIFAR-10, (batch, 3, size, size / ranks), and all labels."""
    data = ds.Cifar10Dataset(data_path, usage="train", shuffle=False)
    operations = [  # nothing random: the strips must be those of one image
        vision.Resize((size, size)),
        vision.Rescale(1.0 / 255.0, 0.0),
        vision.Normalize((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
    ]
    strips = [f"strip_{number}" for number in range(ranks)]
    data = data.map(operations, input_columns="image")
    data = data.map(vision.SlicePatches(num_height=1, num_width=ranks), input_columns="image", output_columns=strips)
    data = data.project([strips[rank], "label"])
    data = data.map(vision.HWC2CHW(), input_columns=strips[rank])
    data = data.map(transforms.TypeCast(ms.int32), input_columns="label")
    return data.batch(batch_size, drop_remainder=True)


def test_train_cifar_slices(epochs=10):
    """The training; pytest finds it by its name."""
    ms.set_context(mode=ms.GRAPH_MODE)
    init()
    rank, ranks = get_rank(), get_group_size()
    strategy = ((1, 1, 1, ranks), (1,))  # images in `ranks` columns; labels whole
    ms.set_auto_parallel_context(
        parallel_mode=ms.ParallelMode.AUTO_PARALLEL, dataset_strategy=strategy, gradients_mean=True
    )
    ms.set_seed(1)
    data = create_dataset(os.environ["DATA_PATH"], ranks=ranks, rank=rank)
    net = resnet50()
    optimizer = nn.Momentum(net.trainable_params(), learning_rate=0.01, momentum=0.9)
    model = Model(net, loss_fn=SoftmaxCrossEntropyExpand(sparse=True), optimizer=optimizer)
    model.train(epochs, data, callbacks=[LossMonitor()], dataset_sink_mode=True)
    release()


if __name__ == "__main__":
    test_train_cifar_slices()
