#!/usr/bin/env python3
"""Draws loss and step time of all ranks of a run from their logs.

  python tools/plot_log.py                            the newest run, logs/latest
  python tools/plot_log.py logs/RUN --output run.png
  python tools/plot_log.py --json                     the numbers, for a program

Prints one line per rank, with the course of its loss and of its step time, and draws both in
RUN/plot.png, if matplotlib is installed.  A rank that is slower than the others is named.
Exit: 0 drawn, 1 the logs have no loss line, 2 no such run, or no picture where --output asks for one.
"""

import argparse
import functools
import math
import os
import sys
from collections.abc import Iterator

if not __package__:  # run as a file: import the packages hccl_tools and tools from the project
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))

try:
    from hccl_tools.machine import interpreter
except ImportError:  # copied without the rest of the project
    sys.stderr.write("the rest of the project is not here; run it there: python PROJECT/tools/plot_log.py\n")
    sys.exit(2)

interpreter.check("yaml")

from hccl_tools.commands import boundary
from hccl_tools.common import how_far, json_form, option_table
from hccl_tools.common.command_line import Parser
from hccl_tools.common.language import tr
from hccl_tools.common.words import one_line
from tools.diagnosis import loss_curve

PROGRAM = "plot_log.py"
say = functools.partial(boundary.say, PROGRAM)
BARS = "▁▂▃▄▅▆▇█"
WIDTH = 24  # characters of a sparkline


NEWEST = os.path.join("logs", "latest")


def main(argv: "list[str] | None" = None) -> int:
    parser = Parser(description=tr(__doc__))
    parser.add_argument("run", metavar="RUN", nargs="?", default=NEWEST, help=tr(option_table.RUN))
    parser.option("output", tr(": a picture, PNG, PDF or SVG (default: plot.png in the run's folder)"))
    parser.json(note=tr("; a picture is drawn only for --output"))
    options = parser.parse_args(argv)
    return boundary.run(PROGRAM, lambda: draw(options))


def draw(options: "argparse.Namespace") -> int:
    """Prints the table and draws the picture; returns the exit code."""
    folder, output = options.run, options.output
    ranks = loss_curve.read_run(folder)
    if not any(ranks.values()):
        say(tr("{folder}: no log has a line such as `epoch: 1 step: 10, loss is 2.3`", folder=one_line(folder)))
        return 1
    if options.json:
        print(json_form.text(loss_curve.document(ranks, folder)))
        return picture(ranks, output, True) if output else 0
    for line in table(ranks):
        print(line)
    with how_far.doing(tr("drawing the picture")):
        return picture(ranks, output or os.path.join(folder, "plot.png"), bool(output))


def table(ranks: "dict[int, list[loss_curve.Point]]") -> "Iterator[str]":
    before = any(point.before_time is not None for points in ranks.values() for point in points)
    yield (
        f"rank  {'loss':{WIDTH}}  {'first':>9} {'last':>9}  {'step time':{WIDTH}}  {'median':>10} {'for data':>10}"
        + f" {'before':>10}" * before
    )
    for rank, points in ranks.items():
        losses = [point.loss for point in points if point.loss is not None]
        times = [point.step_time for point in points if point.step_time is not None][1:]
        yield (
            f"{rank:<4}  {sparkline(losses):{WIDTH}}  {number(losses[:1])} {number(losses[-1:])}  "
            f"{sparkline(times):{WIDTH}}  {milliseconds(loss_curve.typical(points, 'step_time'))} "
            f"{milliseconds(loss_curve.typical(points, 'data_time'))}"
            + f" {milliseconds(loss_curve.typical(points, 'before_time'))}"
            * before
        )
    for slow in loss_curve.laggards(ranks):
        times_of = {"rank": slow.rank, "time": slow.time, "middle": slow.middle}
        if slow.field == "step_time":
            yield tr("rank {rank} is slow: a step takes it {time:.1f} ms, the middle rank {middle:.1f} ms", **times_of)
        elif slow.field == "before_time":
            yield tr(
                "rank {rank} is slow: before the collective it takes {time:.1f} ms, the middle rank {middle:.1f} ms",
                **times_of,
            )
        else:
            yield tr(
                "rank {rank} is slow: it waits for data {time:.1f} ms, the middle rank {middle:.1f} ms", **times_of
            )


def number(values: "list[float]") -> str:
    """The one value in the list, nine characters wide; blanks for an empty list."""
    return f"{values[0]:9.4g}" if values else " " * 9


def milliseconds(value: "float | None") -> str:
    """A time, ten characters wide."""
    return f"{value:7.1f} ms" if value is not None else " " * 10


def sparkline(values: "list[float]", width: int = WIDTH) -> str:
    """The values as bars from the least to the largest, at most `width`; x for what is not a number."""
    if len(values) > width:  # the mean of each of `width` parts
        cuts = [round(part * len(values) / width) for part in range(width + 1)]
        values = [sum(values[a:b]) / (b - a) for a, b in zip(cuts, cuts[1:])]
    finite = [value for value in values if math.isfinite(value)]
    low, high = min(finite, default=0), max(finite, default=0)
    half = high / 2 - low / 2 or 1  # the whole difference may be more than a float can be
    last = len(BARS) - 1
    return "".join(
        BARS[round((value / 2 - low / 2) / half * last)] if math.isfinite(value) else "x" for value in values
    )


def picture(ranks: "dict[int, list[loss_curve.Point]]", path: str, required: bool) -> int:
    """Writes the picture; without matplotlib it prints how to install it.  Returns the exit code."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        say(tr("no picture was drawn: matplotlib is missing; install it with: pip install matplotlib"))
        return 2 if required else 0
    figure = Figure(figsize=(9, 7), layout="constrained")
    of_loss, of_time = figure.subplots(2, 1, sharex=True)
    of_loss.set_ylabel("loss")
    of_time.set(xlabel="step", ylabel="step time, ms")
    for rank, points in ranks.items():
        label, colour = f"rank {rank}", f"C{rank % 10}"
        of_loss.plot(*columns(points, "loss"), label=label, color=colour)
        of_time.plot(*columns(points, "data_time"), linestyle=":", color=colour)
        for field, line in (("step_time", "-"), ("before_time", "--")):
            steps, times = columns(points, field)
            of_time.plot(steps[1:], times[1:], linestyle=line, color=colour)  # the first step compiled the network
    of_time.set_ylim(bottom=0)
    of_time.set_title("solid: a step; dotted: waiting for data; dashed: before the collective", fontsize="small")
    of_loss.legend(ncols=math.ceil(len(ranks) / 8), fontsize="small")
    try:
        figure.savefig(path)
    except (OSError, ValueError) as error:  # ValueError: a file name whose ending has no known format
        say(tr("{path} cannot be written: {error}", path=one_line(path), error=one_line(error)))
        return 2
    say(tr("the picture is {path}", path=one_line(path)))
    return 0


def columns(points: "list[loss_curve.Point]", field: str) -> "tuple[list[int], list[float]]":
    """([step], [value]) of the points that have the field."""
    kept = [(point.step, getattr(point, field)) for point in points if getattr(point, field) is not None]
    return [step for step, _ in kept], [value for _, value in kept]


if __name__ == "__main__":
    sys.exit(main())
