"""Checkpoints of small networks for tests, as tools/train.py leaves them in the folders of ranks."""

from suite.needs import Later

from tools.trainer import checkpoints
from tools.trainer.checkpoints import labels, saving, strategies

ms, nn = Later("mindspore"), Later("mindspore.nn")
parallel = Later("tools.trainer.models.parallel")

RUN = 1_800_000_000
WIDTH = 24  # a multiple of 1, 2, 3, 4 and 6 ranks


def saved(root, rank=0, ranks=1, epoch=1, run=RUN, net=None, model="lenet5", mode="data_parallel"):
    """A checkpoint of a small net in the folder of a rank; returns its path."""
    whole = int(mode == "data_parallel")
    label = labels.Label(model=model, mode=mode, run=run, epoch=epoch, steps=5, rank=rank, ranks=ranks, whole=whole)
    net = net or nn.Dense(2, 3)
    return saving.save(net, checkpoints.rank_folder(str(root), rank), model, label)


def cut_by_hand(root, ranks, seed=3, **of):
    """Checkpoints of the hybrid net on `ranks` ranks."""
    for rank in range(ranks):
        net = parallel.HybridParallelNet(hidden_size=WIDTH, seed=seed, rank=rank, ranks=ranks)
        saved(root, rank, ranks, net=net, **{"model": "hybrid_parallel_net", "mode": "hybrid_parallel", **of})
    strategies.write(str(root / strategies.NAME), net.cuts, ranks)


def values(path):
    return {name: parameter.asnumpy() for name, parameter in ms.load_checkpoint(str(path)).items()}
