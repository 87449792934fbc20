#!/usr/bin/env python3
"""Writes the output of a trained network for the held-out data of a config, on one device or several.

  python tools/predict.py --config CONFIG --ckpt logs/latest/ckpt --output outputs.npy
  bash scripts/ascend2p.sh --train_script tools/predict.py CONFIG -- --ckpt logs/latest/ckpt --output outputs.npy

The checkpoints may come from a job on any number of ranks. If a launch script starts it, each rank has its part
of a network with hand-written partitioning (hybrid_parallel), or one that MindSpore cuts (semi_auto_parallel,
auto_parallel), and loads its slices.

FILE becomes a NumPy array (np.load), float32, one row per sample, in the order of the data.  Exit: 0 written, 2 the
config, the data or the checkpoints cannot be used.
"""

import argparse
import itertools
import os
import sys

if not __package__:  # run as a file: import the packages hccl_tools and tools from the project
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))

try:
    from hccl_tools.machine import interpreter
except ImportError:  # copied without the rest of the project
    sys.stderr.write("the rest of the project is not here; run it there: python PROJECT/tools/predict.py\n")
    sys.exit(2)

interpreter.check("yaml")

from hccl_tools.common.language import tr
from hccl_tools.common.words import count, one_line
from tools.config import config_file as configs
from tools.config import modes
from tools.launch.engines import mindspore_scheduler
from tools.trainer import checkpoints, command, datasets, inference, job, place

TYPE_CHECKING = False
if TYPE_CHECKING:
    import numpy as np


def main(argv: "list[str] | None" = None) -> int:
    parser = command.parser(tr(__doc__))
    inference.add_arguments(parser)
    parser.option("output", required=True)
    command.add_opt(parser)
    options = parser.parse_args(argv)
    return command.run("predict.py", lambda: predict(checked_config(options), options.ckpt, options.output))


def checked_config(options: argparse.Namespace) -> dict:
    """The config as a dict with all defaults filled in, for one process or for the ranks of a launch."""
    config = configs.read(options.config, options.opt)
    ranks = place.ranks_of(config.filled)
    if ranks == 1:
        config.override(["system.distribute=False"])
    elif config.filled["parallel"]["mode"] in modes.BY_MINDSPORE:  # it predicts from whole batches only
        config.override(["parallel.dataset_strategy=full_batch"])
    filled = config.filled
    inference.check_held_out(options.config, filled)
    inference.check_source(options.ckpt)
    inference.check_folder(options.output)
    if ranks > 1:
        check_cut(options, config, ranks)
        place.check(filled)
    return filled


def check_cut(options: argparse.Namespace, config: configs.Config, ranks: int) -> None:
    """Refuses several ranks for a network that is not cut, or that cannot be."""
    filled = config.filled
    problems = modes.problems(filled, ranks, filled["system"]["device_target"])
    if problems:
        raise configs.ConfigError(*config.lines(problems))
    cut = filled["parallel"]["mode"] in modes.BY_MINDSPORE or filled["model"]["name"] == modes.TENSOR_PARALLEL
    if not cut or filled["parallel"]["pipeline_stages"] > 1:
        text = tr(
            "{config}: {network} in mode {mode} is not cut into slices over the ranks; start "
            "predict.py without a launch script",
            config=one_line(options.config),
            network=filled["model"]["name"],
            mode=filled["parallel"]["mode"],
        )
        raise configs.ConfigError(text)
    if not os.path.isdir(options.ckpt):
        text = tr(
            "--ckpt {ckpt} is a file, and every rank needs its slices; name the folder of the "
            "job's checkpoints (rank_0, rank_1 ...)",
            ckpt=one_line(options.ckpt),
        )
        raise checkpoints.CheckpointError(text)


def predict(config: dict, source: str, out: str) -> None:
    """Writes the network's outputs to the file `out`."""
    device = job.before_mindspore(config)
    if os.environ.get("MS_ROLE") == "MS_SCHED":  # msrun starts it once more, as its scheduler
        sys.exit(mindspore_scheduler.main())
    job.import_mindspore()
    import mindspore as ms

    from tools.trainer import build
    from tools.trainer.datasets import pipeline

    rank, ranks = job.start(config, device)
    network = build.build_network(config, rank, ranks)
    network.set_train(False)
    everything = {**config["eval"]["loader"], "shuffle": False, "drop_remainder": False}
    data = datasets.build(config["eval"]["dataset"], everything)
    batches = (columns[0] for columns in data.create_tuple_iterator(num_epochs=1, output_numpy=True))
    first = next(batches)
    model = ms.Model(network)
    if ranks == 1:
        inference.load_whole(source, network)
    else:
        inference.load_slices(source, config, model, network, ranks, ms.Tensor(first))
    outputs = [
        model.predict(ms.Tensor(pipeline.filled(batch, len(first)))).asnumpy()[: len(batch)]  # else compiled once more
        for batch in itertools.chain([first], batches)
    ]
    if rank == 0:
        write(outputs, out)
    job.finish(config)


def write(outputs: "list[np.ndarray]", out: str) -> None:
    """Writes the file whole or not at all."""
    import numpy as np

    draft = f"{out}.{os.getpid()}.part"
    try:
        with open(draft, "xb") as file:
            np.save(file, np.concatenate(outputs).astype(np.float32))
        os.replace(draft, out)
    except OSError as error:
        if os.path.exists(draft):
            os.unlink(draft)
        raise checkpoints.CheckpointError(inference.unwritable(out, error)) from error
    text = tr("{predictions} in {out}", predictions=count(sum(map(len, outputs)), "prediction"), out=one_line(out))
    print(text, flush=True)


if __name__ == "__main__":
    status = main()
    if "MS_WORKER_NUM" in os.environ:  # one of several ranks on MindSpore's own cluster
        job.leave(status)
    sys.exit(status)
