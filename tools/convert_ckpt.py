#!/usr/bin/env python3
"""Makes checkpoints for another number of ranks: merged for one, or cut again for several.

  python tools/convert_ckpt.py logs/latest/ckpt whole --ranks 1
  python tools/convert_ckpt.py logs/latest/ckpt for_4 --ranks 4
  python tools/convert_ckpt.py ckpt new --src_strategy strategy/rank_0.ckpt --dst_strategy new.ckpt

Takes the newest checkpoint of SOURCE that is whole on all ranks. To continue training from TARGET, use
-o train.resume_from=TARGET; for inference, TARGET/rank_0 of --ranks 1 has the whole network. For networks
with hand-written partitioning, ckpt/strategy.json of tools/train.py defines how layers are merged and cut.
Networks that MindSpore cut itself (semi-auto, auto) need strategy files: --src_strategy of the job that
saved, unless it was not cut, and --dst_strategy of the new job. Without --dst_strategy, every rank gets the
whole network, which MindSpore cuts when it compiles it; --ranks is then the number of ranks (default 1).
tools/strategy.py writes a strategy file before the job.

Prints the folder that it made. Exit: 0 made, 1 SOURCE cannot be converted, 2 usage.
"""

import os
import shutil
import sys
import tempfile
from argparse import Namespace

if not __package__:  # run as a file: import the packages hccl_tools and tools from the project
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))

try:
    from hccl_tools.machine import interpreter
except ImportError:  # copied without the rest of the project
    sys.stderr.write("the rest of the project is not here; run it there: python PROJECT/tools/convert_ckpt.py\n")
    sys.exit(2)

interpreter.check()

from hccl_tools.common import documents, how_far
from hccl_tools.common.language import tr
from hccl_tools.common.refusal import BAD
from hccl_tools.common.words import count, one_line
from tools.trainer import command
from tools.trainer.checkpoints import CheckpointError, converting, labels, rank_folder, strategies


def main(argv: "list[str] | None" = None) -> int:
    options = parse(argv)
    return command.run("convert_ckpt.py", lambda: make(options), BAD)


def parse(argv: "list[str] | None") -> Namespace:
    """The options; ends with 2 when they make no sense."""
    parser = command.parser(tr(__doc__))
    parser.add_argument("source", metavar="SOURCE", help=tr("folder with rank_0, rank_1 ..."))
    parser.add_argument("target", metavar="TARGET", help=tr("folder to make"))
    parser.option("ranks", tr(" (the new job)"), type=command.positive)
    parser.option("src_strategy")
    parser.option("dst_strategy")
    parser.json(note=tr(": the files that were written"))
    options = parser.parse_args(argv)
    if options.dst_strategy and options.ranks is not None:
        parser.error(tr("--ranks cannot be combined with --dst_strategy, which already gives the number of ranks"))
    if not options.src_strategy and not options.dst_strategy and options.ranks is None:
        parser.error(tr("--ranks N is missing: the number of ranks of the new job"))
    if os.path.lexists(options.target):
        parser.error(tr("TARGET {target} exists already; name a new folder", target=one_line(options.target)))
    if not os.path.isdir(options.source):
        parser.error(tr("SOURCE {source} is not a folder", source=one_line(options.source)))
    for file in (options.src_strategy, options.dst_strategy):
        if file and not os.path.isfile(file):
            parser.error(tr("{file}: no such file", file=one_line(file)))
    return options


def make(options: Namespace) -> None:
    """Makes a folder next to TARGET and renames it, so that TARGET is never incomplete."""
    try:
        parent = os.path.dirname(os.path.abspath(options.target))
        with tempfile.TemporaryDirectory(prefix=".convert_ckpt.", dir=parent) as work:
            files, strategy = convert(options, work)
            os.replace(os.path.join(work, "target"), options.target)
    except OSError as error:
        raise CheckpointError(one_line(error)) from error
    print(documents.json_text(described(options.target, files, strategy)) if options.json else options.target)


def described(target: str, files: "dict[int, str]", strategy: "str | None") -> dict:
    """What --json prints.  files, strategy: as `convert` returns them."""
    folder = os.path.abspath(target)
    rows = [(rank, os.path.join(folder, file)) for rank, file in sorted(files.items())]
    return {
        "folder": folder,
        "ranks": len(rows),
        "files": [{"rank": rank, "file": path, "bytes": os.path.getsize(path)} for rank, path in rows],
        "strategy": None if strategy is None else os.path.normpath(os.path.join(folder, strategy)),
    }


def convert(options: Namespace, work: str) -> "tuple[dict[int, str], str | None]":
    """Makes the folder `target` in the folder `work`; ({rank: its file}, the strategy file if there is one) in it."""
    target = os.path.join(work, "target")
    if options.src_strategy or options.dst_strategy:
        made = converting.by_strategies(options.source, work, options.src_strategy, options.dst_strategy)
        if not options.dst_strategy:
            made = dict.fromkeys(range(options.ranks or 1), made[0])
    else:
        made = converting.for_ranks(options.source, options.ranks, work)
    labelled = converting.newest(options.source)
    with how_far.doing(tr("writing the checkpoints of {ranks}", ranks=count(len(made), "rank")), len(made)):
        files = write(options, made, target, labelled)
    strategy = put_strategy(options.dst_strategy or os.path.join(work, strategies.NAME), target)
    return files, strategy


def write(
    options: Namespace, made: "converting.Made", target: str, labelled: "tuple[str, labels.Label] | None"
) -> "dict[int, str]":
    """Copies the files that were made for the ranks into the folder `target`, with labels where SOURCE has some.

    Returns {rank: its file in `target`}.
    """
    files = {}
    for rank, file in made.items():
        name = os.path.basename(labelled[0]) if labelled else f"converted{rank}.ckpt"
        path = os.path.join(rank_folder(target, rank), name)
        os.makedirs(os.path.dirname(path))
        shutil.copyfile(file, path)
        files[rank] = os.path.relpath(path, target)
        if labelled:
            copied = labelled[1].ranks == len(made) and not (options.src_strategy or options.dst_strategy)
            whole = labelled[1].whole if copied else int(len(set(made.values())) == 1)
            label = labelled[1].replace(rank=rank, ranks=len(made), whole=whole)
            labels.write(path, labels.sized(path, label))
        how_far.more()
    return files


def put_strategy(file: str, target: str) -> "str | None":
    """Copies the strategy file of the job to come, if there is one, to where the other commands look for it.

    Returns its place in `target`.
    """
    if not os.path.exists(file):
        return None
    path = os.path.join(target, strategies.NAME) if file.endswith(".json") else strategies.beside(target)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    shutil.copyfile(file, path)
    return os.path.relpath(path, target)


if __name__ == "__main__":
    sys.exit(main())
