"""Code that the commands of the trainer share: their arguments, and their end after a refusal."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from hccl_tools.common import colours, how_far
from hccl_tools.common.command_line import Parser
from hccl_tools.common.language import tr
from hccl_tools.common.numbers import whole_number
from hccl_tools.common.refusal import REFUSED, Refusal
from hccl_tools.common.typed import name_of
from hccl_tools.common.words import folder_fault, one_line


def parser(description: str | None) -> Parser:
    """A parser whose --help is the command's docstring, line by line, and the options."""
    return Parser(description=description)


def add_opt(parser: Parser, note: str = "") -> None:
    """-o, which changes the config."""
    parser.option("opt", note, nargs="+", action="extend", default=[])


def positive(text: str) -> int:
    """The type of an argument that is a whole number from 1 on."""
    number = whole_number(text, 1)
    if number is None:
        raise argparse.ArgumentTypeError(tr("{text}: write a whole number, at least 1", text=one_line(text)))
    return number


def run(program: str, work: Callable[[], None], status: int | None = None) -> int:
    """Does the `work` of the command `program`; returns 0, or the exit code of its refusal: `status` if it is given."""
    try:
        with how_far.showing():
            work()
        return 0
    except Refusal as refusal:
        for line in refusal.lines:
            _refuse(f"{name_of(program)}: {line}")
        return refusal.status if status is None else status
    except FileNotFoundError:
        fault = folder_fault()
        if fault is None:
            raise
        _refuse(f"{name_of(program)}: {fault}")
        return REFUSED if status is None else status


def _refuse(line: str) -> None:
    print(colours.shown(line, colours.MISTAKE, colours.wanted(sys.stderr)), file=sys.stderr)
