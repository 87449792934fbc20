#!/usr/bin/env python3
"""Measures a checkpoint on the held-out data of a config, on one device.

  python tools/eval.py --config configs/mnist/lenet5_digits.yaml --ckpt logs/latest/ckpt/rank_0/lenet5-8_11.ckpt
  python tools/eval.py -c CONFIG --ckpt FILE -o system.device_target=CPU eval.dataset.dataset_root=DIR

Prints a line a metric, such as "accuracy on held-out data: 97.21%".  Exit: 0 measured, 2 the config, the data or
the checkpoint cannot be used.
"""

import argparse
import os
import sys

if not __package__:  # run as a file: import the packages hccl_tools and tools from the project
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))

from hccl_tools.machine import interpreter

interpreter.check("yaml")

from hccl_tools.common.words import one_line
from tools.config import config_file as configs
from tools.trainer import checkpoints, datasets


def main(argv=None):
    """Runs the command; returns its exit code."""
    os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")  # see tools/train.py
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--config", "-c", metavar="FILE", required=True, help="the config that it was trained with")
    parser.add_argument("--ckpt", metavar="FILE", required=True, help="the checkpoint")
    parser.add_argument(
        "-o", "--opt", metavar="KEY=VALUE", nargs="+", action="extend", default=[], help="set values of the config"
    )
    options = parser.parse_args(argv)
    try:
        config = checked_config(options.config, options.opt)
        if not os.path.isfile(options.ckpt):
            raise checkpoints.CheckpointError(f"--ckpt {one_line(options.ckpt)}: no such file")
        interpreter.check("mindspore")
        measure(config, options.ckpt)
    except (configs.ConfigError, datasets.DataError, checkpoints.CheckpointError) as error:
        for line in str(error).splitlines():
            print(f"eval.py: {line}", file=sys.stderr)
        return 2
    return 0


def checked_config(path, assignments):
    """The config as a dict with all defaults filled in, for one process; it and its held-out data are fit for use."""
    _, filled = configs.read(path, [*assignments, "system.distribute=False"])
    if "eval" not in filled:
        raise configs.ConfigError([f"{one_line(path)}: has no section eval:, which names the held-out data; add one"])
    datasets.check_held_out(filled)
    return filled


def measure(config, checkpoint):
    """Prints a line for each metric of the network with the weights of the file `checkpoint`."""
    import mindspore as ms

    from tools.trainer import build, losses, metrics, progress

    system = config["system"]
    ms.set_device(system["device_target"])
    ms.set_context(mode=system["mode"])
    network = build.build_network(config, rank=0, ranks=1)
    checkpoints.load(checkpoint, network)
    loss = config["loss"]
    model = ms.Model(network, losses.build(loss), metrics=metrics.build(loss["name"]))
    progress.report(model, datasets.build(config["eval"]["dataset"], config["eval"]["loader"]))


if __name__ == "__main__":
    sys.exit(main())
