"""LeNet-5's training written directly on MindSpore, with nothing of this project's trainer around it.

A trainer for the launcher's --train_script, for comparison: tests/bench/training.py runs it.  Same
network, data and optimizer as tools/train.py with configs/mnist/lenet5_digits.yaml.  BENCH_LOOP in the
environment: "loop" exchanges gradients as data parallel does, "no_reduce" leaves that out, "model" is
MindSpore's own loop, Model.train, instead of one written by hand.  Like LossMonitor, and so like
tools/train.py, all read the loss after every step.
"""

import os
import sys
import time

sys.path[0] = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")  # as tools/train.py does

import mindspore as ms
from mindspore import communication, dataset, nn
from mindspore.dataset import transforms, vision

from tools.models.lenet import LeNet5

DATA, BATCH, EPOCHS = os.environ["BENCH_DATA"], 32, int(os.environ["BENCH_EPOCHS"])

ms.set_device("CPU")
ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(42)
rank, ranks = 0, 1
if "MS_WORKER_NUM" in os.environ:
    communication.init()
    rank, ranks = communication.get_rank(), communication.get_group_size()
    if os.environ["BENCH_LOOP"] != "no_reduce":
        ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True, device_num=ranks)

data = dataset.MnistDataset(DATA, num_shards=ranks, shard_id=rank, num_parallel_workers=1)
images = [vision.Resize((32, 32)), vision.Rescale(1 / 255, 0.0), vision.HWC2CHW()]
data = data.map(images, "image", num_parallel_workers=1)
data = data.map(transforms.TypeCast(ms.int32), "label", num_parallel_workers=1).batch(BATCH, drop_remainder=True)

network = LeNet5()
loss_function = nn.CrossEntropyLoss()
optimizer = nn.Momentum(network.trainable_params(), learning_rate=0.05, momentum=0.9)
steps = data.get_dataset_size()


def say(epoch, begun, loss):
    """One line an epoch."""
    milliseconds = (time.perf_counter() - begun) / steps * 1e3
    print(f"epoch: {epoch} step: {steps}, step time is {milliseconds:.3f} ms, loss is {loss}", flush=True)


class Say(ms.Callback):
    """The same for Model.train."""

    def on_train_epoch_begin(self, run_context):
        self.begun = time.perf_counter()

    def on_train_step_end(self, run_context):
        self.loss = float(run_context.original_args().net_outputs.asnumpy())

    def on_train_epoch_end(self, run_context):
        say(run_context.original_args().cur_epoch_num, self.begun, self.loss)


if os.environ["BENCH_LOOP"] == "model":
    model = ms.Model(network, loss_function, optimizer)
    model.train(EPOCHS, data, callbacks=[Say()], dataset_sink_mode=False)
else:
    step = nn.TrainOneStepCell(nn.WithLossCell(network, loss_function), optimizer).set_train()
    batches = data.create_tuple_iterator(num_epochs=EPOCHS)
    for epoch in range(1, EPOCHS + 1):
        begun = time.perf_counter()
        for batch in batches:
            loss = float(step(*batch).asnumpy())
        say(epoch, begun, loss)
if "MS_WORKER_NUM" in os.environ:
    communication.release()
    sys.stdout.flush()
    os._exit(0)  # as tools/train.py does: the interpreter's end may crash
