#!/usr/bin/env python3
"""Lists the runs in a folder of logs and how they ended, the newest first, and removes old ones.

  python tools/runs.py                      a line for each run in logs/
  python tools/runs.py --failed --json      those that failed, for a program
  python tools/runs.py clean --keep 20      removes all but the newest 20, after asking

Loss and measurements are the last ones in rank 0's log; configs/progress.yaml, and the file that LAUNCH_PROGRESS
names, define which lines have them.  It never removes a run that still runs, or the run of the link `latest`.
Exit: 0 shown or removed, 1 a run could not be removed, 2 usage or no such folder.
"""

import argparse
import functools
import os
import shutil
import sys

if not __package__:  # run as a file: import the packages hccl_tools and tools from the project
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))

try:
    from hccl_tools.machine import interpreter
except ImportError:  # copied without the rest of the project
    sys.stderr.write("the rest of the project is not here; run it there: python PROJECT/tools/runs.py\n")
    sys.exit(2)

interpreter.check("yaml")

from hccl_tools.commands import boundary
from hccl_tools.common import colours, documents, how_far
from hccl_tools.common.command_line import Parser
from hccl_tools.common.language import tr
from hccl_tools.common.numbers import whole_number
from hccl_tools.common.refusal import USAGE
from hccl_tools.common.words import count, one_line, size_of
from tools.history import listing, table

PROGRAM = "runs.py"
say = functools.partial(boundary.say, PROGRAM)


def main(argv: "list[str] | None" = None) -> int:
    options = parse(argv)
    return boundary.run(PROGRAM, lambda: run(options))


def run(options: argparse.Namespace) -> int:
    every = listing.read_all(options.log_dir)
    runs = [run for run in every if run.failed] if options.failed else every
    if options.what == "clean":
        return clean(runs, options)
    if options.json:
        print(table.as_json(runs))
        return 0
    if not runs:
        folder = one_line(options.log_dir)
        none_failed = tr("no run failed ({runs} in {folder})", runs=count(len(every), "run"), folder=folder)
        say(none_failed if every else tr("no run in {folder}", folder=folder))
        return 0
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for line in table.rows(runs, width, colours.wanted(sys.stdout)):
        print(line)
    return 0


def parse(argv: "list[str] | None") -> argparse.Namespace:
    parser = Parser(description=tr(__doc__))
    parser.add_argument(
        "what", nargs="?", choices=("list", "clean"), default="list", help=tr("what to do (default: list)")
    )
    parser.option("log_dir", default="logs")
    parser.option("failed")
    parser.json()
    parser.option("keep")
    parser.option("yes")
    options = parser.parse_args(argv)
    if options.what == "clean":
        keep = whole_number(options.keep or "")
        if keep is None:
            parser.error(tr("clean needs --keep N, how many of the newest runs to keep"))
        options.keep = keep
    elif options.keep is not None or options.yes:
        parser.error(tr("--keep and --yes are for clean"))
    return options


def clean(runs: "list[listing.Run]", options: argparse.Namespace) -> int:
    """Removes the old ones of `runs`."""
    old = listing.removable(runs, options.keep, options.log_dir)
    sizes = sizes_of(old)
    if not options.json:
        for run, size in zip(old, sizes):
            note = tr(", with checkpoints") if listing.has_checkpoints(run) else ""
            print(f"{one_line(run.folder)}  {size_of(size)}{note}")
    code = remove(old, sum(sizes), options.yes)
    if options.json:
        print(documents.json_text([listing.of_removal(run, size) for run, size in zip(old, sizes)]))
    return code


def remove(old: "list[listing.Run]", total: int, agreed: bool) -> int:
    """Removes these runs, of `total` bytes, if their user has agreed or does so now; returns the exit code."""
    if not old:
        say(tr("nothing to remove"))
        return 0
    if not agreed:
        if not sys.stdin.isatty():
            say(tr("nothing was removed: there is no terminal to ask for a yes; add --yes"))
            return USAGE
        question = tr("Remove these {runs}, {size}? Type yes: ", runs=count(len(old), "run"), size=size_of(total))
        sys.stderr.write(question)
        sys.stderr.flush()
        if sys.stdin.readline().strip() != "yes":
            say(tr("nothing was removed"))
            return 0
    troubles = removed(old)
    for trouble in troubles:
        say(trouble)
    say(tr("removed: {runs}", runs=count(len(old) - len(troubles), "run")))
    return 1 if troubles else 0


def sizes_of(runs: "list[listing.Run]") -> "list[int]":
    """The bytes of each."""
    sizes = []
    with how_far.doing(tr("measuring {runs}", runs=count(len(runs), "run")), len(runs)):
        for run in runs:
            sizes.append(listing.size_of(run.folder))
            how_far.more()
    return sizes


def removed(runs: "list[listing.Run]") -> "list[str]":
    """Removes them; returns why some are still there."""
    troubles = []
    with how_far.doing(tr("removing {runs}", runs=count(len(runs), "run")), len(runs)):
        for run in runs:
            troubles.append(listing.remove(run))
            how_far.more()
    return [trouble for trouble in troubles if trouble is not None]


if __name__ == "__main__":
    sys.exit(main())
