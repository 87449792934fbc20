"""Shows a rank table for reading: its servers, devices, ranks, addresses and super pods.

A small table has one line per device; in a large one, consecutive servers that are alike share a
line.  A table of version 2.0 has no servers: its ranks are shown by their inner network.  With --svg
it prints a drawing of servers, device groups and ranks to stdout.

  python hccl_tools/show_hccl.py hccl_2s_16p.json
  python hccl_tools/show_hccl.py --svg --generation 910A hccl_2s_16p.json > cluster.svg
  python hccl_tools/hccl_tools.py show hccl_2s_16p.json          (the same)

Exit: 0 the table is shown (with a warning if it is bad), 1 the file has nothing that can be shown,
2 usage, or a file that cannot be read.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from hccl_tools.build import from_legacy
from hccl_tools.commands import boundary
from hccl_tools.common import documents
from hccl_tools.common.command_line import Parser
from hccl_tools.common.language import tr
from hccl_tools.common.refusal import BAD, Refusal, faulty, misused
from hccl_tools.machine import interpreter
from hccl_tools.show import overview
from hccl_tools.table import rank_table

PROGRAM = "show_hccl.py"


def main(argv: Sequence[str] | None = None, program: str = PROGRAM) -> int:
    """Runs the command, called `program` by its user; returns its exit code."""
    options = parse_arguments(argv, program)
    return boundary.run(program, lambda: run(options, program))


def parse_arguments(argv: Sequence[str] | None, program: str) -> argparse.Namespace:
    parser = Parser(program, tr(__doc__))
    parser.add_argument("file", metavar="FILE", help=tr("a rank table; - is standard input"))
    parser.option("svg")
    parser.json("table")
    parser.option("generation", tr("; here also the groups of devices that are drawn: 910A 0-3 and 4-7, A3 pairs"))
    options = parser.parse_args(argv)
    if options.svg and options.json:
        parser.error(tr("--svg and --json print two different documents; choose one"))
    return options


def run(options: argparse.Namespace, program: str) -> int:
    """Reads and shows; returns the exit code."""
    file = rank_table.shown_name(options.file)
    table, problems = rank_table.read_named(options.file)
    if problems:
        raise Refusal(BAD, *(problem.line(file) for problem in problems))
    generation = None if options.generation == "any" else options.generation
    view = overview.of(from_legacy.converted(table) or table, generation)
    if not view.servers:
        raise faulty("{file} has no ranks that can be shown; see `python hccl_tools/validate_hccl.py FILE`", file=file)
    for line in view.warnings:
        boundary.say(program, f"{file}: {line}")
    boundary.escape_missing_letters()
    if options.json:
        print(documents.json_text(overview.document(view, options.file)))
        return 0
    if options.svg:
        from hccl_tools.show import drawing

        sys.stdout.write(drawing.svg(view))
        return 0
    try:
        from hccl_tools.show import terminal  # imports rich, which only this needs
    except ImportError as error:
        raise misused(
            "the table needs {needed}; {remedy}, or use --svg",
            needed=interpreter.needed("rich"),
            remedy=interpreter.remedy_for("rich"),
        ) from error
    terminal.show(view)
    return 0
