"""A trainer that trains LeNet-5 in four ways, which take turns: tests/bench/training.py reads its times.

Programs that run one after the other do not compare: the same one is a quarter slower the next minute on a
shared machine.  So all are in one process, with a network and a data set each, and an epoch of one is
followed by an epoch of the next.  The ways:

  ours        what tools/train.py runs for configs/mnist/lenet5_digits.yaml: its data set, its Model, its callback
  Model       the same written directly on MindSpore, with its Model.train
  loop        the same with a loop by hand
  alone       that loop without the exchange of gradients: what it is faster by is communication

Like LossMonitor, and so like tools/train.py, all read the loss after every step.  The number of turns is in
BENCH_TURNS; for every turn rank 0 prints the milliseconds of a step: "turn: ours 4.951 Model 4.902 ...".
"""

import os
import sys
import time

PROJECT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.path[0] = PROJECT
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")  # as tools/train.py does
# A rank on one core: where its threads may move, an epoch is a quarter slower or faster by chance.
CORES = sorted(os.sched_getaffinity(0))
os.sched_setaffinity(0, {CORES[int(os.environ.get("RANK_ID", "0")) % len(CORES)]})

import mindspore as ms
from mindspore import dataset, nn
from mindspore.dataset import transforms, vision

from tools.config import config_file as configs
from tools.config import modes
from tools.trainer import build, datasets, job, progress
from tools.trainer.models.lenet import LeNet5

CONFIG = os.path.join(PROJECT, "configs", "mnist", "lenet5_digits.yaml")
DISTRIBUTED = "MS_WORKER_NUM" in os.environ
EPOCHS = 2  # of a turn; the first one starts the data set's threads, the second one is measured


class Clock(ms.Callback):
    """The milliseconds of a step in the last epoch."""

    def on_train_epoch_begin(self, run_context):
        self.begun = time.perf_counter()

    def on_train_epoch_end(self, run_context):
        self.step_time = (time.perf_counter() - self.begun) / run_context.original_args().batch_num * 1e3


class ReadLoss(Clock):
    """The same, and the loss after every step."""

    def on_train_step_end(self, run_context):
        self.loss = float(run_context.original_args().net_outputs.asnumpy())


def ours(config, rank, ranks):
    """A function that trains the parts of tools/train.py, and returns the milliseconds of a step."""
    data = datasets.build(config["train"]["dataset"], config["train"]["loader"], modes.data_part(config, rank, ranks))
    run = build.build(config, rank, ranks, data.get_dataset_size())
    return by_model(run.model, data, progress.Progress(config["system"]["log_interval"]), Clock())


def written_directly(rank, ranks):
    """Network, loss, optimizer and data as in the config, on MindSpore alone."""
    data = dataset.MnistDataset(
        os.path.join(PROJECT, "data", "digits", "train"), num_shards=ranks, shard_id=rank, num_parallel_workers=1
    )
    images = [vision.Resize((32, 32)), vision.Rescale(1 / 255, 0.0), vision.HWC2CHW()]
    data = data.map(images, "image", num_parallel_workers=1)
    data = data.map(transforms.TypeCast(ms.int32), "label", num_parallel_workers=1).batch(32, drop_remainder=True)
    network = LeNet5()
    optimizer = nn.Momentum(network.trainable_params(), learning_rate=0.05, momentum=0.9)
    return network, nn.CrossEntropyLoss(), optimizer, data


def by_model(model, data, *said):
    """A function that trains by Model.train."""

    def turn():
        model.train(EPOCHS, data, callbacks=list(said), dataset_sink_mode=False)
        return said[-1].step_time

    return turn


def by_hand(network, loss, optimizer, data):
    """A function that trains by a loop."""
    step = nn.TrainOneStepCell(nn.WithLossCell(network, loss), optimizer).set_train()

    def turn():
        batches = data.create_tuple_iterator(num_epochs=EPOCHS)
        for _ in range(EPOCHS):
            begun = time.perf_counter()
            for batch in batches:
                float(step(*batch).asnumpy())
        return (time.perf_counter() - begun) / data.get_dataset_size() * 1e3

    return turn


def main():
    """Runs all turns."""
    config = configs.read(CONFIG, [f"system.distribute={DISTRIBUTED}", "system.log_interval=10000"]).filled
    rank, ranks = job.start(config, None)
    *parts, data = written_directly(rank, ranks)
    ways = {
        "ours": ours(config, rank, ranks),
        "Model": by_model(ms.Model(*parts), data, ReadLoss()),
        "loop": by_hand(*written_directly(rank, ranks)),
    }
    if ranks > 1:
        ms.set_auto_parallel_context(parallel_mode="stand_alone")
        ways["alone"] = by_hand(*written_directly(rank, ranks))
        job.set_mode(config, rank, ranks)
    for number in range(int(os.environ["BENCH_TURNS"])):
        times = {way: ways[way]() for way in (list(ways) if number % 2 else reversed(ways))}
        if rank == 0:
            print("turn:", *(f"{way} {milliseconds:.3f}" for way, milliseconds in times.items()), flush=True)
    job.finish(config)


main()
if DISTRIBUTED:
    job.leave(0)
