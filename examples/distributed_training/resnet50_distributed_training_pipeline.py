"""ResNet-50 learns CIFAR-10 as a pipeline: half of the ranks have the first layers, the others the last ones.

  bash run_pipeline.sh DATA_PATH Ascend

A batch is cut into micro-batches. While the second stage works on one of them, the first stage works on the next.
"""

import os

import mindspore as ms
from mindspore import nn
from mindspore.communication import get_group_size, get_rank, init, release
from mindspore.train import LossMonitor, Model

from resnet import resnet50
from resnet50_distributed_training import SoftmaxCrossEntropyExpand, create_dataset

STAGES, MICRO_BATCHES = 2, 4


def in_stages(net, stages=STAGES):
    """Tells MindSpore which stage has which layers: the same number of blocks each."""
    net.stem.pipeline_stage = 0
    for number, block in enumerate(net.blocks):
        block.pipeline_stage = number * stages // len(net.blocks)
    net.classify.pipeline_stage = stages - 1
    return net


class LossOfPart(nn.Cell):
    """The loss of a micro-batch, divided by their number: PipelineCell adds them up."""

    def __init__(self, net, loss, parts):
        super().__init__(auto_prefix=False)
        self.net, self.loss, self.parts = net, loss, parts

    def construct(self, images, labels):
        return self.loss(self.net(images), labels) / self.parts


def in_micro_batches(net, loss, parts=MICRO_BATCHES):
    """A cell (images, labels) -> loss of the batch."""
    return nn.PipelineCell(LossOfPart(net, loss, parts), parts)


def test_train_cifar_pipeline(epochs=10):
    """The training; pytest finds it by its name."""
    ms.set_context(mode=ms.GRAPH_MODE)
    init()
    ms.set_auto_parallel_context(
        parallel_mode=ms.ParallelMode.SEMI_AUTO_PARALLEL, pipeline_stages=STAGES, gradients_mean=True
    )
    ms.set_seed(1)
    in_a_stage = get_group_size() // STAGES  # ranks; they share the samples, and the stages work on the same ones
    data = create_dataset(os.environ["DATA_PATH"], ranks=in_a_stage, rank=get_rank() % in_a_stage)
    net = in_stages(resnet50())
    optimizer = nn.Momentum(net.trainable_params(), learning_rate=0.01, momentum=0.9)
    model = Model(in_micro_batches(net, SoftmaxCrossEntropyExpand(sparse=True)), optimizer=optimizer)
    model.train(epochs, data, callbacks=[LossMonitor()], dataset_sink_mode=True)
    release()


if __name__ == "__main__":
    test_train_cifar_pipeline()
