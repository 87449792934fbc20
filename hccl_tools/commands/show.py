"""Shows a rank table to a person: its servers, devices, ranks, addresses and super pods.

A small table has a line a device; in a large one, servers that are alike and follow one another
share a line.  With --format svg it is a drawing of servers, device groups and ranks, on stdout.

  python hccl_tools/show_hccl.py hccl_2s_16p.json
  python hccl_tools/show_hccl.py --format svg --generation 910A hccl_2s_16p.json > cluster.svg
  python hccl_tools/hccl_tools.py show hccl_2s_16p.json          (the same)

Exit: 0 the table is shown (a bad one too, and that is said), 1 there is nothing in the file that can
be shown, 2 usage, or a file that cannot be read.
"""

import argparse
import sys

from hccl_tools.build import output
from hccl_tools.check import rules
from hccl_tools.common.words import one_line
from hccl_tools.machine import interpreter
from hccl_tools.show import overview
from hccl_tools.table import rank_table

PROGRAM = "show_hccl.py"


def main(argv=None, program=PROGRAM):
    """Runs the command, called `program` by its user; returns its exit code."""
    options = parse_arguments(argv, program)
    try:
        code = run(options, program)
        sys.stdout.flush()
        return code
    except rank_table.NotReadable as error:
        say(program, str(error))
        return 2
    except OSError as error:  # a stdout that is full, or closed by the reader
        if not isinstance(error, BrokenPipeError):
            say(program, f"cannot write to stdout: {error.strerror}")
        output.drop_stdout()
        return 2


def parse_arguments(argv, program):
    """The command line as a namespace."""
    parser = argparse.ArgumentParser(
        prog=program, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("file", metavar="FILE", help="a rank table")
    parser.add_argument("--format", choices=("table", "svg"), default="table", help="default: %(default)s")
    parser.add_argument(
        "--generation", choices=rules.GENERATIONS, help="draw this chip's device groups: 910A 0-3 and 4-7, A3 pairs"
    )
    return parser.parse_args(argv)


def run(options, program):
    """Reads and shows; returns the exit code."""
    table, problems = rank_table.read(options.file)
    if problems:
        for problem in problems:
            say(program, problem.line(options.file))
        return 1
    view = overview.of(table, options.generation)
    if not view.servers:
        say(program, f"{options.file}: no servers in it; tables with a server_list (versions 1.0 and 1.2) can be shown")
        return 1
    for line in view.warnings:
        say(program, f"{options.file}: {line}")
    sys.stdout.reconfigure(errors="backslashreplace")  # a server_id may have letters that the terminal has not
    if options.format == "svg":
        from hccl_tools.show import drawing

        sys.stdout.write(drawing.svg(view))
        return 0
    return show_table(view, program)


def show_table(view, program):
    """Prints `view` with rich; returns the exit code."""
    try:
        from hccl_tools.show import terminal as tables  # brings rich along, which only this needs
    except ImportError:
        say(program, f"the table needs the library rich; {interpreter.remedy_for('rich')}, or use --format svg")
        return 2
    tables.show(view)
    return 0


def say(program, message):
    """One line of the conversation, on stderr."""
    print(f"{program}: {one_line(message)}", file=sys.stderr)
