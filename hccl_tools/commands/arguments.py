"""Options that several commands share."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from hccl_tools.common.command_line import Parser
from hccl_tools.common.language import tr
from hccl_tools.table import rank_table


def add_generation(parser: Parser, note: str = "") -> None:
    """Adds --generation, which host.chosen_generation takes. note: what else it does in this command."""
    parser.option("generation", note + tr(" (default: that of this host's NPUs if it has some, else any)"))


def add_hccn_conf(parser: Parser) -> None:
    """Adds --hccn_conf, whose default hccn.DEFAULT_CONF the table names."""
    from hccl_tools.machine import hccn  # not all commands need it

    parser.option("hccn_conf", default=hccn.DEFAULT_CONF)


def add_answer(parser: Parser) -> None:
    """Adds the options of a command that queries the hosts of a hostfile, and those that start it on each host."""
    parser.option("ssh")
    parser.add_argument("--answer", action="store_true", help=argparse.SUPPRESS)


def add_output(parser: Parser, default: str) -> None:
    """Adds --output, --stdout and --json; `default` is the file's name without them, as text for --help."""
    parser.option("output", tr(" (default: {name} in the current folder)", name=default))
    parser.option("stdout")
    parser.json(note=tr(": the file's path, and what is in it"))


def parse_with_output(parser: Parser, argv: Sequence[str] | None) -> argparse.Namespace:
    """Parses the options of a command with those of `add_output`; ends the command if they contradict each other."""
    options = parser.parse_args(argv)
    parser.refuse_empty(options)
    if options.output == rank_table.STDIN:  # of an output it is stdout, as elsewhere
        options.output, options.stdout = None, True
    if options.stdout and options.output:
        parser.error(tr("--stdout writes no file, so it does not go with --output"))
    if options.stdout and options.json:
        parser.error(tr("--stdout prints the table itself, which is JSON; leave out --json"))
    return options
