"""Writes the file of a command whole, or leaves everything as it was."""

from __future__ import annotations

import os
from collections.abc import Callable

from hccl_tools.common.documents import JsonObject
from hccl_tools.common.language import marked, tr
from hccl_tools.common.refusal import USAGE, Refusal
from hccl_tools.common.words import one_line
from hccl_tools.table import rank_table

NOT_WRITTEN = marked("no table was written")


def save(table: JsonObject, path: str, tell: Callable[[str], None]) -> str:
    """Writes `table` to `path`; returns the absolute path.

    tell is called with a line when another table is replaced.  Raises Refusal; the file at `path` is then as it was.
    """
    text, shown = rank_table.dump(table), one_line(path)
    if os.path.exists(path):
        try:
            old, _ = rank_table.read(path)
        except rank_table.NotReadable as error:
            raise Refusal(
                USAGE, tr("{error}; nothing was changed, name another file with --output", error=error)
            ) from error
        if not isinstance(old, dict) or "server_list" not in old:
            raise Refusal(
                USAGE, tr("{path} exists and is not a rank table; name another file with --output", path=shown)
            )
        if old != table:
            tell(tr("{path} held another table; it is replaced", path=shown))
    return write(text, path)


def write(text: str, path: str) -> str:
    """Writes `text` to `path`; returns the absolute path.  Raises Refusal; the file at `path` is then as it was."""
    try:
        rank_table.write(text, path)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = getattr(error, "strerror", None) or error
        raise Refusal(
            USAGE, tr("cannot write {path}: {reason}; nothing was changed", path=one_line(path), reason=reason)
        ) from error
    return os.path.abspath(path)


def drop_stdout() -> None:
    """Discards what is buffered for stdout and cannot be written; Python would try again when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
