#!/usr/bin/env python3
"""Draws loss and step time of all ranks of a run from their logs.

  python tools/plot_log.py                            the newest run, logs/latest
  python tools/plot_log.py logs/RUN --output run.png
  python tools/plot_log.py --json                     the numbers, for a program

Prints one line per rank, with the course of its loss and of its step time, and draws both in
RUN/plot.png, if matplotlib is installed.  It names a rank that is slower than the others, or whose
loss drifts away from theirs.  With many ranks, it prints a line for each rank that differs, and one
line for all others.  It reads large logs in parts, as report.py does, and reports that on stderr.
Exit: 0 drawn, 1 the logs have no loss line, 2 no such run, or no picture where --output asks for one.
"""

import argparse
import functools
import gc
import os
import sys

if not __package__:  # run as a file: import the packages hccl_tools and tools from the project
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))

try:
    from hccl_tools.machine import interpreter
except ImportError:  # copied without the rest of the project
    sys.stderr.write("the rest of the project is not here; run it there: python PROJECT/tools/plot_log.py\n")
    sys.exit(2)

interpreter.check("yaml")

from hccl_tools.commands import boundary
from hccl_tools.common import documents, how_far, option_table
from hccl_tools.common.command_line import Parser
from hccl_tools.common.language import tr
from hccl_tools.common.words import one_line
from tools.progress import lines
from tools.run_page import outliers, picture, reading, table

PROGRAM = "plot_log.py"
say = functools.partial(boundary.say, PROGRAM)


NEWEST = os.path.join("logs", "latest")


def main(argv: "list[str] | None" = None) -> int:
    parser = Parser(description=tr(__doc__))
    parser.add_argument("run", metavar="RUN", nargs="?", default=NEWEST, help=tr(option_table.RUN))
    parser.option("output", tr(": a picture, PNG, PDF or SVG (default: plot.png in the run's folder)"))
    parser.json(note=tr("; a picture is drawn only for --output"))
    options = parser.parse_args(argv)
    return boundary.run(PROGRAM, lambda: run(options))


def run(options: argparse.Namespace) -> int:
    """Prints the table and draws the picture; returns the exit code."""
    gc.disable()  # millions of numbers, none of which is in a circle
    try:
        return show(options.run, options.output, options.json)
    finally:
        gc.enable()


def show(folder: str, output: "str | None", as_json: bool) -> int:
    data = reading.read(folder, lines.load())
    for note in data.notes:
        say(note)
    if not any(data.curves.get(field) for field in table.FIELDS.values()):
        say(tr("{folder}: no log has a line such as `epoch: 1 step: 10, loss is 2.3`", folder=one_line(folder)))
        return 1
    found = [one for one in outliers.find(data.curves) if one.field in table.FIELDS.values()]
    if as_json:
        print(documents.json_text(table.document(data, found, folder)))
        return draw(data, found, output, True) if output else 0
    for line in table.lines(data, found):
        print(line)
    with how_far.doing(tr("drawing the picture")):
        return draw(data, found, output or os.path.join(folder, "plot.png"), bool(output))


def draw(data: reading.RunData, found: "list[outliers.Outlier]", path: str, required: bool) -> int:
    """Writes the picture; without matplotlib it prints how to install it.  Returns the exit code."""
    try:
        figure = picture.draw(data, found)
    except ImportError:
        say(tr("no picture was drawn: matplotlib is missing; install it with: pip install matplotlib"))
        return 2 if required else 0
    try:
        figure.savefig(path)
    except (OSError, ValueError) as error:  # ValueError: a file name whose ending has no known format
        say(tr("{path} cannot be written: {error}", path=one_line(path), error=one_line(error)))
        return 2
    say(tr("the picture is {path}", path=one_line(path)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
