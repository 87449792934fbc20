#!/usr/bin/env python3
"""Measures a checkpoint on the held-out data of a config, on one device.

  python tools/eval.py --config configs/mnist/lenet5_digits.yaml --ckpt logs/latest/ckpt/rank_0/lenet5-8_11.ckpt
  python tools/eval.py -c CONFIG --ckpt logs/latest/ckpt -o system.device_target=CPU eval.dataset.dataset_root=DIR

Prints one line per metric, such as "accuracy on held-out data: 97.21%".  Exit: 0 measured, 2 the config, the data or
the checkpoint cannot be used.
"""

import argparse
import os
import sys

if not __package__:  # run as a file: import the packages hccl_tools and tools from the project
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))

try:
    from hccl_tools.machine import interpreter
except ImportError:  # copied without the rest of the project
    sys.stderr.write("the rest of the project is not here; run it there: python PROJECT/tools/eval.py\n")
    sys.exit(2)

interpreter.check("yaml")

from hccl_tools.common.language import tr
from tools.config import config_file as configs
from tools.trainer import command, datasets, inference, job


def main(argv: "list[str] | None" = None) -> int:
    parser = command.parser(tr(__doc__))
    inference.add_arguments(parser)
    command.add_opt(parser)
    options = parser.parse_args(argv)
    return command.run("eval.py", lambda: measure(checked_config(options), options.ckpt))


def checked_config(options: argparse.Namespace) -> dict:
    """The config as a dict with all defaults filled in, for one process; its held-out data and checkpoint are there."""
    filled = configs.read(options.config, [*options.opt, "system.distribute=False"]).filled
    inference.check_held_out(options.config, filled)
    inference.check_source(options.ckpt)
    return filled


def measure(config: dict, checkpoint: str) -> None:
    """Prints a line for each metric of the network with the weights of the file, or folder, `checkpoint`."""
    device = job.before_mindspore(config)
    job.import_mindspore()
    import mindspore as ms

    from tools.trainer import build, losses, measuring, metrics

    job.set_device(config, device)
    network = build.build_network(config, rank=0, ranks=1)
    inference.load_whole(checkpoint, network)
    loss = config["loss"]
    measures = metrics.build(loss["name"])
    model = ms.Model(network, losses.build(loss), metrics=measures)
    measuring.HeldOut(model, datasets.held_out(config), measures).report()


if __name__ == "__main__":
    sys.exit(main())
