#!/usr/bin/env python3
"""Trains what a config describes: alone, or as one rank of many when a launcher started it.

  python tools/train.py --config configs/mnist/lenet5_digits.yaml -o system.distribute=False
  bash scripts/ascend4p.sh --device_target CPU configs/mnist/lenet5_digits.yaml

A rank reads RANK_ID and RANK_SIZE from its environment (docs/architecture.md) and puts its
checkpoints into a folder of its own.  With RESUME=1 in its environment it continues from the newest
checkpoint that all ranks have.  Exit: 0 trained, 2 the config, the data or a checkpoint cannot be used, or no
launcher connects the ranks.
"""

import os
import sys

if not __package__:  # run as a file: import the packages hccl_tools and tools from the project
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))

try:
    from hccl_tools.machine import interpreter
except ImportError:  # copied without the rest of the project
    sys.stderr.write("the rest of the project is not here; run it there: python PROJECT/tools/train.py\n")
    sys.exit(2)

interpreter.check("yaml")

from hccl_tools.common.language import tr
from hccl_tools.common.words import count
from tools.config import config_file as configs
from tools.config import modes
from tools.launch.engines import mindspore_scheduler
from tools.trainer import before_collective, checkpoints, command, datasets, end_requests, job, place


def main(argv: "list[str] | None" = None) -> int:
    parser = command.parser(tr(__doc__))
    parser.option("config", tr(", such as those in configs/"), required=True)
    command.add_opt(parser, tr(", such as -o scheduler.num_epochs=3 system.seed=1"))
    options = parser.parse_args(argv)
    return command.run("train.py", lambda: train(checked_config(options.config, options.opt)))


def checked_config(path: str, assignments: "list[str]") -> dict:
    """The config as a dict with all defaults filled in, once it and its data are fit for use."""
    config = configs.read(path, assignments)
    filled = config.filled
    ranks = place.ranks_of(filled)
    problems = modes.problems(filled, ranks, filled["system"]["device_target"]) + checkpoints.problems(filled)
    if problems:
        raise configs.ConfigError(*config.lines(problems))
    place.check(filled)
    note = datasets.check(filled, modes.data_part(filled, 0, ranks).shards, config.held_out_by_data_path())
    if note:
        print(note, flush=True)
    return filled


def train(config: dict) -> None:
    """Builds everything that `config` (filled) names, trains, and measures on held-out data."""
    device = job.before_mindspore(config)
    if os.environ.get("MS_ROLE") == "MS_SCHED":  # msrun starts the trainer once more, as its scheduler
        sys.exit(mindspore_scheduler.main())
    job.import_mindspore()
    from tools.trainer import agreement, build, measuring, progress, resume  # they import MindSpore

    rank, ranks = job.start(config, device)
    part = modes.data_part(config, rank, ranks)
    data = datasets.build(config["train"]["dataset"], config["train"]["loader"], part)
    steps, epochs = data.get_dataset_size(), config["scheduler"]["num_epochs"]
    run = build.build(config, rank, ranks, steps)
    earlier = resume.Continuation(config, rank, ranks, steps)
    earlier.load(run.network, run.state, data)
    if config["parallel"]["parameter_broadcast"] and ranks > 1:
        agreement.broadcast(run.network, config)
    text = tr(
        "rank {rank} of {ranks}: {steps} steps an epoch, {epochs}",
        rank=rank,
        ranks=ranks,
        steps=steps,
        epochs=count(epochs, "epoch"),
    )
    print(text, flush=True)
    note = before_collective.note(config, ranks)
    if note and rank == 0:
        print(note, flush=True)
    sink = config["train"]["dataset_sink_mode"]
    batch = config["train"]["loader"]["batch_size"] * part.shards
    interval, at_nan = config["system"]["log_interval"], config["train"]["stop_at_nan"]
    own_ended = run.parts.own_ended if run.parts else None
    callbacks = [progress.Progress(interval, at_nan, rank, epochs, batch, own_ended)]
    held_out = measuring.of(config, run, rank, ranks)
    if held_out and config["system"]["val_while_train"]:
        callbacks.append(measuring.Evaluate(held_out, config.get("early_stop")))
    saves = earlier.saving(run.model.train_network)
    gather = agreement.Gather() if ranks > 1 else None
    on_request = resume.SaveOnRequest(end_requests.of_this_rank(), saves, gather)
    callbacks += [saves, on_request]
    if earlier.epochs < epochs:
        run.model.train(epochs, data, callbacks=callbacks, dataset_sink_mode=sink, initial_epoch=earlier.epochs)
    else:
        message = tr(
            "all {epochs} epochs are done already; scheduler.num_epochs sets how many there are", epochs=epochs
        )
        print(message, flush=True)
    if held_out and not on_request.ended:
        held_out.report()
    job.finish(config)


if __name__ == "__main__":
    status = main()
    if "MS_WORKER_NUM" in os.environ:  # one of several ranks on MindSpore's own cluster
        job.leave(status)
    sys.exit(status)
