"""The options that several commands have."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from hccl_tools import hosts
from hccl_tools.check import rules
from hccl_tools.common.language import tr
from hccl_tools.common.refusal import USAGE, Refusal
from hccl_tools.common.words import one_line
from hccl_tools.table import rank_table


def add_generation(parser: argparse.ArgumentParser, help_: str) -> None:
    """--generation, which host.chosen_generation takes."""
    parser.add_argument("--generation", choices=(*rules.GENERATIONS, "any"), help=help_)


def add_hccn_conf(parser: argparse.ArgumentParser) -> None:
    from hccl_tools.machine import hccn  # not all commands need it

    parser.add_argument(
        "--hccn_conf",
        "--hccn-conf",
        metavar="FILE",
        default=hccn.DEFAULT_CONF,
        help=tr("addresses of the devices where hccn_tool gives none (default: %(default)s)"),
    )


def add_answer(parser: argparse.ArgumentParser) -> None:
    """The options of a command that asks the hosts of a hostfile, and with which hosts/ask.py starts it on each."""
    parser.add_argument("--ssh", metavar="COMMAND", help=tr(hosts.MEANING))
    parser.add_argument("--answer", action="store_true", help=argparse.SUPPRESS)


def add_output(parser: argparse.ArgumentParser, default: str) -> None:
    """--output and --stdout; `default` is the file's name without them, as text for --help."""
    parser.add_argument(
        "--output", metavar="FILE", help=tr("write to FILE instead of {default} in the current folder", default=default)
    )
    parser.add_argument("--stdout", action="store_true", help=tr("print the table and write no file"))


def parse_with_output(parser: argparse.ArgumentParser, argv: Sequence[str] | None) -> argparse.Namespace:
    """The options of a command that has those of `add_output`; ends the command if they contradict each other."""
    options = parser.parse_args(argv)
    for name, value in vars(options).items():
        if value == "":
            parser.error(tr("--{name} is empty", name=name))
    if options.stdout and options.output:
        parser.error(tr("--stdout writes no file, so it does not go with --output"))
    return options


def refuse_two_of_stdin(parser: argparse.ArgumentParser, paths: Sequence[str]) -> None:
    """Ends the command if it is to read standard input twice."""
    if list(paths).count("-") > 1:
        parser.error(tr("only one file can be -, standard input"))


def read_bytes(path: str) -> bytes:
    """The bytes of a file that may be named "-", for standard input.  Raises Refusal."""
    if path != "-":
        return rank_table.read_bytes(path)
    try:
        return rank_table.read_stream(sys.stdin.buffer)
    except OSError as error:
        raise Refusal(USAGE, tr("stdin cannot be read: {reason}", reason=error.strerror)) from error


def name_of(path: str) -> str:
    """The file as messages name it."""
    return "stdin" if path == "-" else one_line(path)
