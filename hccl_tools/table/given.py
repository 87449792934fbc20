"""Reads a rank table that the user names: a file, or "-" for standard input."""

from __future__ import annotations

import sys

from hccl_tools.common.language import tr
from hccl_tools.common.problem import Problem
from hccl_tools.common.refusal import misused
from hccl_tools.common.words import one_line
from hccl_tools.table import rank_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

STDIN = "-"


def shown(path: str) -> str:
    """Its name in messages."""
    return tr("standard input") if path == STDIN else one_line(path)


def read_bytes(path: str) -> bytes:
    """Its bytes, up to the size limit of a file.  Raises rank_table.NotReadable."""
    if path != STDIN:
        return rank_table.read_bytes(path)
    name = shown(path)
    if sys.stdin is None:
        raise rank_table.NotReadable(name, tr("is closed; name a file, or add: <FILE"))
    try:
        return rank_table.read_stream(sys.stdin.buffer, name)
    except OSError as error:  # it is a folder
        raise rank_table.NotReadable(name, tr("cannot be read: {reason}", reason=error.strerror)) from error


def read(path: str) -> tuple[Any, list[Problem]]:
    """(document, problems), as rank_table.read.  Raises rank_table.NotReadable."""
    return rank_table.parse(read_bytes(path))


def refuse_twice(paths: Sequence[str]) -> None:
    """Raises Refusal where standard input would be read a second time: there is nothing left then."""
    if paths.count(STDIN) > 1:
        raise misused("standard input can be read once; write - once, and name files for the other tables")
