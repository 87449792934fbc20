"""Checkpoints in the four parallel modes: what a rank saves, and how the net is loaded again.

  bash ../../scripts/run.sh DATA_PATH 8 checkpoints.py MODE

MODE is data_parallel, auto_parallel, semi_auto_parallel or hybrid_parallel. Each rank trains the net of
semi_auto_parallel.py or of hybrid_parallel.py and saves it. Then it loads a new net, which is whole, and compares both.
"""

import os
import sys

import mindspore as ms
import numpy as np
from mindspore import ops
from mindspore.communication import get_group_size, get_rank, init, release
from mindspore.train import CheckpointConfig, ModelCheckpoint

from hybrid_parallel import CUT, HybridNet
from semi_auto_parallel import Net, create_dataset, train

DATA = os.environ.get("DATA_PATH", "MNIST_Data/train")
FOLDER = os.path.join(os.environ.get("LOG_DIR", "."), "ckpt")  # the launch script sets LOG_DIR: the folder of this run


def saving(rank, integrated):
    """The callback that saves after every 10 steps and keeps the newest two files.

    integrated: MindSpore first puts the weights together that it has cut, so that every file has the whole net.
    """
    config = CheckpointConfig(save_checkpoint_steps=10, keep_checkpoint_max=2, integrated_save=integrated)
    return ModelCheckpoint(prefix="net", directory=os.path.join(FOLDER, f"rank_{rank}"), config=config)


def newest(rank):
    """The newest checkpoint of a rank."""
    folder = os.path.join(FOLDER, f"rank_{rank}")
    files = [os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".ckpt")]
    return max(files, key=os.path.getmtime)


def wait_for_all():
    """Returns when all ranks are here: then all have saved."""
    ops.AllReduce()(ms.Tensor(np.zeros(1, np.float32))).asnumpy()


def answers(net):
    """What the net says about the first batch."""
    images, _ = next(create_dataset(DATA).create_tuple_iterator())
    return net.set_train(False)(images).asnumpy()


# ---- the modes: each returns the answers of the net that was trained, and the net that was loaded ----


def data_parallel(rank, ranks):
    """All ranks have the same weights: every file is whole, and one of them would do."""
    ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
    net, loaded = Net(), Net()
    train(net, create_dataset(DATA, ranks=ranks, rank=rank), 1, [saving(rank, integrated=True)])
    ms.load_param_into_net(loaded, ms.load_checkpoint(newest(rank)))
    return answers(net), loaded


def auto_parallel(rank, ranks):
    """MindSpore has cut the net, and puts the weights together to save them: every file is whole."""
    ms.set_auto_parallel_context(parallel_mode="auto_parallel", dataset_strategy="full_batch", gradients_mean=True)
    net, loaded = Net(), Net()
    train(net, create_dataset(DATA), 1, [saving(rank, integrated=True)])
    said = answers(net)
    ms.reset_auto_parallel_context()  # the new net is not cut
    ms.load_param_into_net(loaded, ms.load_checkpoint(newest(rank)))
    return said, loaded


def semi_auto_parallel(rank, ranks):
    """Every rank saves its part, because a large net does not fit into one device; a strategy file tells the cuts."""
    strategies = [os.path.join(FOLDER, f"strategy_{other}.json") for other in range(ranks)]
    ms.set_auto_parallel_context(
        parallel_mode="semi_auto_parallel",
        dataset_strategy="full_batch",
        gradients_mean=True,
        strategy_ckpt_config={"save_file": strategies[rank]},
    )
    net, loaded = Net(ranks), Net()
    train(net, create_dataset(DATA), 1, [saving(rank, integrated=False)])
    said = answers(net)
    wait_for_all()
    ms.reset_auto_parallel_context()
    files = [newest(other) for other in range(ranks)]
    ms.load_distributed_checkpoint(loaded, files, train_strategy_filename=strategies[0])
    return said, loaded


def hybrid_parallel(rank, ranks):
    """The net is cut by hand, and MindSpore does not know how: it is put together by hand, too."""
    ms.set_auto_parallel_context(parallel_mode="hybrid_parallel", gradients_mean=True)
    net, loaded = HybridNet(rank, ranks), HybridNet()
    train(net, create_dataset(DATA), 1, [saving(rank, integrated=False)])
    said = answers(net)
    wait_for_all()
    parts = [ms.load_checkpoint(newest(other)) for other in range(ranks)]
    whole = dict(parts[0])
    for name, axis in CUT.items():
        weight = np.concatenate([part[name].asnumpy() for part in parts], axis)
        whole[name] = ms.Parameter(ms.Tensor(weight), name=name)
    ms.load_param_into_net(loaded, whole)
    return said, loaded


MODES = {mode.__name__: mode for mode in (data_parallel, auto_parallel, semi_auto_parallel, hybrid_parallel)}


def main(mode):
    """Trains in the mode, and says whether the net came back."""
    ms.set_context(mode=ms.GRAPH_MODE)
    init()
    said, loaded = MODES[mode](get_rank(), get_group_size())
    print(f"{mode}: the answers of the loaded net differ by {np.abs(answers(loaded) - said).max():.4f}")
    release()


if __name__ == "__main__":
    if not sys.argv[1:] or sys.argv[1] not in MODES:
        sys.exit(f"name one of the modes: {' '.join(MODES)}")
    if "auto" in sys.argv[1] and ms.get_context("device_target") == "CPU":
        sys.exit(f"{sys.argv[1]}: MindSpore's CPU back end cuts no net; it needs Ascend or GPU")
    main(sys.argv[1])
