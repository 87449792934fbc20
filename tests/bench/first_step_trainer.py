"""A trainer that takes one step: tests/bench/first_step.py starts it, and reads what each rank writes.

Each rank writes the time of its first step, its loss, and its seconds in init() to BENCH_OUT/rank_N, and its share of
the memory then beside it.  All ranks leave together, so that each sees the memory that all of them have.
"""

import os
import sys
import time

import mindspore as ms
import numpy
from mindspore import nn
from mindspore.communication import get_rank, init

WAIT = 60  # seconds


def share():
    """Kilobytes of memory, where those that processes share are divided among them."""
    with open("/proc/self/smaps_rollup", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Pss:"))


def main():
    """One step, in parallel if there are several ranks."""
    ranks, rank, folder = int(sys.argv[1]), 0, os.environ["BENCH_OUT"]
    ms.set_device("CPU")
    begun, seconds = time.monotonic(), 0.0
    if ranks > 1:
        init()
        seconds, rank = time.monotonic() - begun, get_rank()
        ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
    network = nn.WithLossCell(nn.Dense(8, 2), nn.MSELoss())
    step = nn.TrainOneStepCell(network, nn.SGD(network.trainable_params(), 0.1)).set_train()
    data = [ms.Tensor(numpy.ones((4, size), numpy.float32)) for size in (8, 2)]
    loss = float(step(*data).asnumpy())
    stepped, name = time.time(), os.path.join(folder, f"rank_{rank}")
    with open(name + ".part", "w", encoding="ascii") as file:
        file.write(f"{stepped} {loss} {seconds}")
    os.rename(name + ".part", name)
    end = time.monotonic() + WAIT
    while sum("." not in each for each in os.listdir(folder)) < ranks and time.monotonic() < end:
        time.sleep(0.01)
    with open(name + ".share", "w", encoding="ascii") as file:
        file.write(str(share()))
    while sum(each.endswith(".share") for each in os.listdir(folder)) < ranks and time.monotonic() < end:
        time.sleep(0.01)


main()
if "LAUNCH_JOB" in os.environ:  # else the scheduler of msrun fails
    os._exit(0)  # MindSpore 2.10 may crash when Python ends it
