"""Code that the commands prepare_*.py share: arguments, exit codes, and files written completely or not at all."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence

from hccl_tools.common.command_line import Parser
from hccl_tools.common.language import strerror, tr
from tools.trainer import command


def parser(description: str | None) -> Parser:
    """A parser with the argument FOLDER."""
    made = command.parser(description)
    made.add_argument("folder", metavar="FOLDER", help=tr("where to write; files of these names are replaced"))
    return made


def run(parser: Parser, argv: Sequence[str] | None, write: Callable[[Namespace], str]) -> int:
    """Generates a data set; returns the command's exit code.  write: makes it, and returns what it holds."""
    options = parser.parse_args(argv)
    if os.path.lexists(options.folder) and not os.path.isdir(options.folder):
        parser.error(tr("{path}: is not a folder; name a folder for the files", path=options.folder))
    try:
        made = write(options)
    except OSError as error:
        text = tr("{path} cannot be written: {reason}", path=error.filename or options.folder, reason=strerror(error))
        parser.error(text)
    print(tr("{program}: {made}, in {folder}", program=parser.prog, made=made, folder=options.folder), file=sys.stderr)
    return 0


def write_file(path: str, content: bytes) -> None:
    """Writes a file, and the folders above it; an earlier file of that name is replaced when this one is whole."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".part", "wb") as file:
        file.write(content)
    os.replace(path + ".part", path)
