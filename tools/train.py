#!/usr/bin/env python3
"""Trains what a config describes: alone, or as one rank of many when a launcher started it.

  python tools/train.py --config configs/mnist/lenet5_digits.yaml -o system.distribute=False
  bash scripts/ascend4p.sh --device_target CPU configs/mnist/lenet5_digits.yaml

A rank reads RANK_ID and RANK_SIZE from its environment (docs/architecture.md) and puts its
checkpoints into a folder of its own.  With RESUME=1 in its environment it goes on from the newest
checkpoint that all ranks have.  Exit: 0 trained, 2 the config, the data or a checkpoint cannot be used.
"""

import argparse
import os
import sys

if not __package__:  # run as a file: import the packages hccl_tools and tools from the project
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))

from hccl_tools.machine import interpreter

interpreter.check("yaml")

from tools.config import config_file as configs
from tools.config import modes
from tools.trainer import checkpoints, datasets


def main(argv=None):
    """Runs the command; returns its exit code."""
    # On processors with AVX-512 the oneDNN in MindSpore 2.10 takes a reference implementation for convolutions
    # (seen with ONEDNN_VERBOSE=1: "ref:any"), 20 to 60 times slower than the one for AVX2.
    os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--config", "-c", metavar="FILE", required=True, help="a config such as those in configs/")
    parser.add_argument(
        "-o",
        "--opt",
        metavar="KEY=VALUE",
        nargs="+",
        action="extend",
        default=[],
        help="set values of the config, such as -o scheduler.num_epochs=3 system.seed=1",
    )
    options = parser.parse_args(argv)
    try:
        config = checked_config(options.config, options.opt)
    except (configs.ConfigError, datasets.DataError) as error:
        for line in str(error).splitlines():
            print(f"train.py: {line}", file=sys.stderr)
        return 2
    interpreter.check("mindspore")
    try:
        train(config)
    except checkpoints.CheckpointError as error:
        print(f"train.py: {error}", file=sys.stderr)
        return 2
    return 0


def checked_config(path, assignments):
    """The config as a dict with all defaults filled in, once it and its data are fit for use."""
    config, filled = configs.read(path, assignments)
    ranks = modes.ranks_of(filled)
    problems = modes.problems(filled, ranks, filled["system"]["device_target"])
    problems += checkpoints.problems(filled)
    if problems:
        raise configs.ConfigError([problem.line(config.place(problem.pointer)) for problem in problems])
    datasets.check(filled, modes.data_part(filled, 0, ranks).shards)
    return filled


def train(config):
    """Builds everything that `config` (filled) names, trains, and measures on held-out data."""
    from tools.trainer import (  # they import MindSpore, 2.5 s: only when there is something to train
        build,
        progress,
        resume,
    )

    rank, ranks = start(config)
    part = modes.data_part(config, rank, ranks)
    data = datasets.build(config["train"]["dataset"], config["train"]["loader"], *part)
    steps, epochs = data.get_dataset_size(), config["scheduler"]["num_epochs"]
    run = build.build(config, rank, ranks, steps)
    stand = resume.Continuation(config, rank, ranks)
    stand.load(run.network, run.optimizer, data)
    if config["parallel"]["parameter_broadcast"] and ranks > 1:
        modes.broadcast(run.network, config)
    print(f"rank {rank} of {ranks}: {steps} steps an epoch, {epochs} epoch{'s' * (epochs != 1)}", flush=True)
    sink = config["train"]["dataset_sink_mode"]
    held_out = datasets.build(config["eval"]["dataset"], config["eval"]["loader"]) if "eval" in config else None
    said = [progress.Progress(config["system"]["log_interval"], config["train"]["stop_at_nan"])]
    if held_out and config["system"]["val_while_train"]:
        said.append(progress.Evaluate(run.measure, held_out))
    said.append(stand.saving(run.model.train_network))
    try:
        if stand.epochs < epochs:
            run.model.train(epochs, data, callbacks=said, dataset_sink_mode=sink, initial_epoch=stand.epochs)
        else:
            print(f"all {epochs} epochs are done already; scheduler.num_epochs says how many there are", flush=True)
    except progress.LossNotFinite as error:
        sys.exit(f"train.py: rank {rank}: {error}")
    if held_out:
        progress.report(run.measure, held_out)
    finish(config)


def start(config):
    """Sets the device up and joins the job; returns (rank, number of ranks)."""
    import mindspore as ms

    system = config["system"]
    ms.set_device(system["device_target"], *device_of_rank(system["device_target"]))
    ms.set_context(mode=system["mode"])
    ms.set_seed(system["seed"])
    if not system["distribute"]:
        return 0, 1
    from mindspore import communication

    communication.init()
    rank, ranks = communication.get_rank(), communication.get_group_size()
    told = os.environ.get("RANK_ID", str(rank))
    if told != str(rank):
        sys.exit(f"train.py: MindSpore made this rank {rank}, but the launcher started it as RANK_ID={told}")
    strategy = os.path.join(checkpoints.folder_of(config), "strategy", f"rank_{rank}.ckpt")
    modes.set_context(config, rank, ranks, strategy)
    return rank, ranks


def device_of_rank(target):
    """The device id that set_device takes, as a tuple; processors have no ids."""
    return () if target == "CPU" else (int(os.environ.get("DEVICE_ID", "0")),)


def finish(config):
    """Leaves the job in order: every rank has trained before the first one lets go of the others."""
    if config["system"]["distribute"]:
        from mindspore import communication

        communication.release()


def leave(code):
    """Ends this process at once: MindSpore 2.10 may crash when the interpreter takes a rank apart.

    The crash (SIGSEGV, in MindSpore's function at exit) came after all work was done and communication
    released, on a busy machine; it would end the job as failed.  That function also tells MindSpore's
    scheduler that this rank leaves; tools/launch/mindspore_scheduler.py sees it without being told.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    status = main()
    if "MS_WORKER_NUM" in os.environ:  # one of several ranks on MindSpore's own cluster
        leave(status)
    sys.exit(status)
