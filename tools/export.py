#!/usr/bin/env python3
"""Writes a trained network as a MindIR file, for inference without its Python code.

  python tools/export.py --config configs/mnist/lenet5_digits.yaml --ckpt logs/latest/ckpt --output lenet5.mindir
  python tools/export.py -c CONFIG --ckpt FILE --batch_size 8 --output NET.mindir

Slices of several ranks are merged first. The network takes batches of one size, --batch_size; the other sizes
are those of the config's data.  It is loaded with mindspore.nn.GraphCell(mindspore.load("lenet5.mindir")).

Prints the file and the shapes of its input and output.  Exit: 0 written, 2 the config, the data or the checkpoints
cannot be used.
"""

import argparse
import os
import sys
import tempfile

if not __package__:  # run as a file: import the packages hccl_tools and tools from the project
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))

try:
    from hccl_tools.machine import interpreter
except ImportError:  # copied without the rest of the project
    sys.stderr.write("the rest of the project is not here; run it there: python PROJECT/tools/export.py\n")
    sys.exit(2)

interpreter.check("yaml")

from hccl_tools.common.language import tr
from hccl_tools.common.words import one_line
from tools.config import config_file as configs
from tools.trainer import checkpoints, command, datasets, inference, job

SUFFIX = ".mindir"


def main(argv: "list[str] | None" = None) -> int:
    parser = command.parser(tr(__doc__))
    inference.add_arguments(parser)
    parser.option("batch_size", type=command.positive, default=1)
    parser.option("output", tr("; its name ends with .mindir"))
    command.add_opt(parser)
    parser.former_arguments("output")
    options = parser.parse_args(argv)
    if not options.output.endswith(SUFFIX):
        text = tr(
            "--output {out}: the name must end with {suffix}, because MindSpore recognizes the format by it",
            out=one_line(options.output),
            suffix=SUFFIX,
        )
        parser.error(text)
    return command.run("export.py", lambda: export(options))


def checked_config(options: argparse.Namespace) -> dict:
    """The config as a dict with all defaults filled in, for one process."""
    filled = configs.read(options.config, [*options.opt, "system.distribute=False"]).filled
    if "eval" in filled:
        datasets.check_held_out(filled)
    else:
        datasets.check(filled, shards=1)
    inference.check_source(options.ckpt)
    inference.check_folder(options.output)
    return filled


def export(options: argparse.Namespace) -> None:
    """Writes the MindIR file."""
    config = checked_config(options)
    device = job.before_mindspore(config)
    job.import_mindspore()
    import mindspore as ms
    import numpy as np

    from tools.trainer import build

    job.set_device(config, device)
    network = build.build_network(config, rank=0, ranks=1)
    inference.load_whole(options.ckpt, network)
    network.set_train(False)
    part = "eval" if "eval" in config else "train"
    data = datasets.build(config[part]["dataset"], {**config[part]["loader"], "batch_size": 1, "shuffle": False})
    sample = next(data.create_tuple_iterator(num_epochs=1))[0]
    batch = ms.Tensor(np.zeros((options.batch_size, *sample.shape[1:]), np.float32))
    output = network(batch)
    folder = os.path.dirname(os.path.abspath(options.output))
    try:
        with tempfile.TemporaryDirectory(prefix=".export.", dir=folder) as work:
            draft = os.path.join(work, "net" + SUFFIX)
            ms.export(network, batch, file_name=draft, file_format="MINDIR")
            os.replace(draft, options.output)
    except OSError as error:
        raise checkpoints.CheckpointError(inference.unwritable(options.output, error)) from error
    print(f"{options.output}: {tuple(batch.shape)} -> {tuple(output.shape)}")


if __name__ == "__main__":
    sys.exit(main())
