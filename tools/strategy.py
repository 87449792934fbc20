#!/usr/bin/env python3
"""Writes how a network will be cut over the ranks of a job, without training: a strategy file.

  python tools/strategy.py --config configs/parallel/semi_auto_digits.yaml --ranks 8 --output for_8.json
  python tools/convert_ckpt.py ckpt new --src_strategy ckpt/strategy/rank_0.ckpt --dst_strategy for_8.json

If the network itself defines how it is cut (hybrid_parallel_net, semi_auto_parallel_net), this works on any
machine. In other cases MindSpore compiles the training step for rank 0 of N and writes the file. That needs
device_target Ascend or GPU, because MindSpore's CPU back end refuses to compile it.

Prints the file.  Exit: 0 written, 2 the config cannot be used, or MindSpore cannot compile it.
"""

import argparse
import os
import sys

if not __package__:  # run as a file: import the packages hccl_tools and tools from the project
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))

try:
    from hccl_tools.machine import interpreter
except ImportError:  # copied without the rest of the project
    sys.stderr.write("the rest of the project is not here; run it there: python PROJECT/tools/strategy.py\n")
    sys.exit(2)

interpreter.check("yaml")

from hccl_tools.common.language import tr
from hccl_tools.common.words import one_line
from tools.config import config_file as configs
from tools.config import modes
from tools.trainer import command, datasets, inference, job
from tools.trainer.checkpoints import CheckpointError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.trainer.build import Run


def main(argv: "list[str] | None" = None) -> int:
    parser = command.parser(tr(__doc__))
    parser.option("config")
    parser.option("ranks", type=command.positive, required=True)
    parser.option("output", tr(": .json, or .ckpt in MindSpore's binary format"))
    command.add_opt(parser)
    parser.former_arguments("config", "output")
    options = parser.parse_args(argv)
    if not options.output.endswith((".json", ".ckpt")):
        text = tr(
            "--output {out}: the name must end with .json or .ckpt, because MindSpore recognizes the format by it",
            out=one_line(options.output),
        )
        parser.error(text)
    return command.run("strategy.py", lambda: write(options))


def checked_config(options: argparse.Namespace) -> dict:
    """The config as a dict with all defaults filled in, for a job with this number of ranks."""
    config = configs.read(options.config, [*options.opt, "system.distribute=True"])
    filled: dict = config.filled
    target = filled["system"]["device_target"]
    known = knows_its_cuts(filled)
    problems = modes.problems(filled, options.ranks, "Ascend" if known else target)
    if problems:
        raise configs.ConfigError(*config.lines(problems))
    if not known and filled["parallel"]["mode"] not in modes.BY_MINDSPORE:
        text = tr(
            "{config}: {network} in mode {mode} has no strategy: no parameter of it is cut "
            "into slices; leave out --dst_strategy",
            config=one_line(options.config),
            network=filled["model"]["name"],
            mode=filled["parallel"]["mode"],
        )
        raise configs.ConfigError(text)
    if known and not options.output.endswith(".json"):
        message = tr("--output {out}: this network's strategy is written as .json only", out=one_line(options.output))
        raise configs.ConfigError(message)
    inference.check_folder(options.output)
    return filled


def knows_its_cuts(config: dict) -> bool:
    """Whether the network itself reports how all its parameters are cut."""
    by_name = config["model"]["name"] in (modes.TENSOR_PARALLEL, modes.CUT_BY_SHARD)
    return by_name and config["parallel"]["mode"] != "auto_parallel" and config["parallel"]["pipeline_stages"] == 1


def write(options: argparse.Namespace) -> None:
    """Writes the strategy file."""
    config = checked_config(options)
    device = job.before_mindspore(config)
    job.import_mindspore()
    if not knows_its_cuts(config):
        compile_for(options.ranks, config, device, options.output)
    else:
        from tools.trainer import build
        from tools.trainer.checkpoints import strategies

        network = build.build_network(config, 0, options.ranks)
        optimizer = build.build_optimizer(config, network.trainable_params(), 1)
        try:
            strategies.write(options.output, build.cuts(network, optimizer), options.ranks)
        except OSError as error:
            raise CheckpointError(inference.unwritable(options.output, error)) from error
    print(options.output)


def compile_for(ranks: int, config: dict, device: "int | None", out: str) -> None:
    """Lets MindSpore compile the training step as rank 0 of `ranks` would, with no other rank, and write the file."""
    # MindSpore then only pretends that there are other ranks, and reserves no memory on the device.
    os.environ.update(MS_SIMULATION_LEVEL="0", RANK_SIZE=str(ranks), RANK_ID="0")
    config["parallel"]["strategy_ckpt_save_file"] = os.path.abspath(out)
    datasets.check(config, modes.data_part(config, 0, ranks).shards)
    rank, ranks = job.start(config, device)
    from tools.trainer import build

    part = modes.data_part(config, rank, ranks)
    data = datasets.build(config["train"]["dataset"], config["train"]["loader"], part)
    run: Run = build.build(config, rank, ranks, data.get_dataset_size())
    batch = next(data.create_tuple_iterator(num_epochs=1))
    try:
        run.model.train_network.compile(*batch)
    except (RuntimeError, ValueError, TypeError) as error:
        reason = one_line(str(error).strip().partition("\n")[0])
        text = tr("MindSpore cannot compile this for {ranks} ranks: {reason}", ranks=ranks, reason=reason)
        raise CheckpointError(text) from error
    if not os.path.isfile(out):
        text = tr("MindSpore compiled the network and wrote no {out}; nothing of it is cut", out=one_line(out))
        raise CheckpointError(text)


if __name__ == "__main__":
    sys.exit(main())
