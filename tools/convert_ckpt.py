#!/usr/bin/env python3
"""Makes checkpoints for another number of ranks: merged for one, or cut anew for several.

  python tools/convert_ckpt.py logs/latest/ckpt whole --ranks 1
  python tools/convert_ckpt.py logs/latest/ckpt for_4 --ranks 4
  python tools/convert_ckpt.py ckpt new --src_strategy strategy/rank_0.ckpt --dst_strategy other.ckpt

Takes the newest checkpoint of SOURCE that is whole on all ranks. Training goes on from TARGET with
-o train.resume_from=TARGET; for inference, TARGET/rank_0 of --ranks 1 has the whole network. Layers
that tools/train.py cut by hand are merged and cut as ckpt/strategy.json says. What MindSpore cut itself
(semi-auto, auto) needs its strategy files: --src_strategy of the job that saved, none when it was not
cut; --dst_strategy of the job to come, none for one rank.

Prints the folder that it made. Exit: 0 made, 1 SOURCE cannot be converted, 2 usage.
"""

import json
import os
import shutil
import sys
import tempfile
from argparse import Namespace

if not __package__:  # run as a file: import the packages hccl_tools and tools from the project
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))

from hccl_tools.machine import interpreter

interpreter.check()

from hccl_tools.common import documents
from hccl_tools.common.refusal import BAD
from hccl_tools.common.words import one_line
from tools.config import modes
from tools.trainer import command
from tools.trainer.checkpoints import CheckpointError, choosing, labels, loading, rank_folder, saving


def main(argv: "list[str] | None" = None) -> int:
    options = parse(argv)
    return command.run("convert_ckpt.py", lambda: make(options), BAD)


def parse(argv: "list[str] | None") -> Namespace:
    """The options; ends with 2 when they make no sense."""
    parser = command.parser(__doc__)
    parser.add_argument("source", metavar="SOURCE", help="folder with rank_0, rank_1 ...")
    parser.add_argument("target", metavar="TARGET", help="folder to make")
    parser.add_argument("--ranks", metavar="N", type=command.positive, help="ranks of the job to come")
    parser.add_argument("--src_strategy", "--src-strategy", metavar="FILE", help="strategy file of the job that saved")
    parser.add_argument("--dst_strategy", "--dst-strategy", metavar="FILE", help="strategy file of the job to come")
    options = parser.parse_args(argv)
    by_strategy = options.src_strategy or options.dst_strategy
    if by_strategy and options.ranks is not None:
        parser.error("--ranks does not go with strategy files: they say how many ranks there are")
    if not by_strategy and options.ranks is None:
        parser.error("--ranks N is missing: how many ranks the job to come has")
    if os.path.lexists(options.target):
        parser.error(f"TARGET {one_line(options.target)} exists already; name a new folder")
    if not os.path.isdir(options.source):
        parser.error(f"SOURCE {one_line(options.source)} is not a folder")
    for file in (options.src_strategy, options.dst_strategy):
        if file and not os.path.isfile(file):
            parser.error(f"{one_line(file)}: no such file")
    return options


def make(options: Namespace) -> None:
    """Makes a folder beside TARGET and renames it, so that TARGET is never incomplete."""
    try:
        parent = os.path.dirname(os.path.abspath(options.target))
        with tempfile.TemporaryDirectory(prefix=".convert_ckpt.", dir=parent) as work:
            convert(options, work)
            os.replace(os.path.join(work, "target"), options.target)
    except OSError as error:
        raise CheckpointError(one_line(error)) from error
    print(options.target)


def convert(options: Namespace, work: str) -> None:
    """Makes the folder `target` in the folder `work`."""
    target = os.path.join(work, "target")
    if options.src_strategy or options.dst_strategy:
        transform(options.source, target, "converted", options.src_strategy, options.dst_strategy)
        return
    files = choosing.in_all_ranks(options.source)
    path, label = files[0]
    strategy = os.path.join(options.source, saving.STRATEGY)
    if label.mode == "data_parallel":
        made = {rank: path for rank in range(options.ranks)}  # every rank has the same
    elif label.ranks == options.ranks:
        made = {rank: own for rank, (own, _) in files.items()}
    elif label.model == modes.TENSOR_PARALLEL:
        made = cut_anew(files, strategy, options.ranks, work)
    elif label.model == modes.STAGES_BY_HAND:
        made = {0: join_stages(files, options.ranks, work)}
    else:
        raise CheckpointError(
            f"{one_line(path)} was saved in mode {label.mode}: give MindSpore's strategy files, --src_strategy and "
            f"--dst_strategy; training writes them into {one_line(os.path.join(options.source, 'strategy'))}"
        )
    for rank, file in made.items():
        own = label.replace(rank=rank, ranks=options.ranks)
        put(file, os.path.join(rank_folder(target, rank), os.path.basename(path)), own)
    for file in (os.path.join(work, saving.STRATEGY), strategy):  # the one for as many ranks, else the same
        if os.path.exists(file):
            shutil.copy(file, os.path.join(target, saving.STRATEGY))
            break


def put(file: str, path: str, label: labels.Label) -> None:
    """Copies a checkpoint into a rank's folder, and labels it."""
    os.makedirs(os.path.dirname(path))
    shutil.copyfile(file, path)
    labels.write(path, labels.sized(path, label))


def cut_anew(files: "dict[int, tuple[str, labels.Label]]", strategy: str, ranks: int, work: str) -> "dict[int, str]":
    """{rank: path} of checkpoints cut for `ranks` ranks, by MindSpore from one strategy file to another."""
    source = os.path.join(work, "source")
    for rank, (path, _) in files.items():  # one file per rank: of several MindSpore would take the last by name
        os.makedirs(rank_folder(source, rank))
        os.symlink(os.path.abspath(path), os.path.join(rank_folder(source, rank), os.path.basename(path)))
    new = strategy_for(strategy, ranks, work)
    made = os.path.join(work, "made")
    if ranks & (ranks - 1) or len(files) & (len(files) - 1):
        raise CheckpointError(
            f"from {len(files)} ranks to {ranks}: MindSpore cuts anew between powers of 2 only (1, 2, 4, 8 ...)"
        )
    transform(source, made, "part_", strategy if len(files) > 1 else None, new if ranks > 1 else None)
    return {rank: os.path.join(rank_folder(made, rank), f"part_{rank}.ckpt") for rank in range(ranks)}


def strategy_for(strategy: str, ranks: int, work: str) -> str:
    """The strategy file `strategy` for `ranks` ranks, as a new file."""
    if not os.path.isfile(strategy):
        text = "it says how the layers were cut; copy it from the run that saved"
        raise CheckpointError(f"{one_line(strategy)} is missing; {text}")
    try:
        document = documents.read_json(strategy)
        for layout in document["parallel_layout_item"].values():
            layout["dev_matrix"] = [ranks]
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{one_line(strategy)} is damaged; copy it again from the run that saved") from error
    new = os.path.join(work, saving.STRATEGY)
    with open(new, "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
    return new


def transform(source: str, made: str, prefix: str, src_strategy: "str | None", dst_strategy: "str | None") -> None:
    """mindspore.transform_checkpoints, with its refusals as CheckpointError."""
    import mindspore as ms

    try:
        ms.transform_checkpoints(source, made, prefix, src_strategy, dst_strategy)
    except (ValueError, TypeError, RuntimeError, NotADirectoryError) as error:
        reason = one_line(str(error).strip().partition("\n")[0])
        raise CheckpointError(f"MindSpore cannot convert {one_line(source)}: {reason}") from error


def join_stages(files: "dict[int, tuple[str, labels.Label]]", ranks: int, work: str) -> str:
    """One checkpoint with the parameters of all stages, which have different ones."""
    import mindspore as ms

    if ranks != 1:
        raise CheckpointError("stages cut by hand can be joined into one checkpoint only; write --ranks 1")
    joined = {}
    for path, _ in files.values():
        joined.update(loading.read(path))
    path = os.path.join(work, "joined.ckpt")
    ms.save_checkpoint([{"name": name, "data": parameter} for name, parameter in joined.items()], path)
    return path


if __name__ == "__main__":
    sys.exit(main())
