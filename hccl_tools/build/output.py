"""Writes the output file of a command completely, or leaves everything unchanged."""

from __future__ import annotations

import os
from collections.abc import Callable

from hccl_tools.common import documents
from hccl_tools.common.documents import JsonObject
from hccl_tools.common.language import marked, strerror, tr
from hccl_tools.common.refusal import misused
from hccl_tools.common.words import one_line
from hccl_tools.table import rank_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

_LISTS = frozenset(["server_list", "rank_list"])  # of a table that this project writes
NOT_WRITTEN = marked("no table was written")


def deliver(table: JsonObject, options: Namespace, name: str, facts: JsonObject, tell: Callable[[str], None]) -> None:
    """Prints the table, or writes it to --output, else to `name`, and prints the path: with --json what is in it, too.

    facts: more for --json.  Raises Refusal, as `save`.
    """
    if options.stdout:
        print(rank_table.dump(table))
        return
    path = save(table, options.output or name, tell)
    print(documents.json_text({**described(table, path), **facts}) if options.json else path)


def described(table: JsonObject, path: str) -> JsonObject:
    """What --json prints about a table that was written to `path`; names are those of validate_hccl.py --json."""
    import hashlib  # not on the path of a launch

    servers = table.get("server_list")  # version 2.0 has ranks only
    ranks = table["rank_count"] if servers is None else sum(len(server["device"]) for server in servers)
    return {
        "file": path,
        "table_format": f"v{table['version']}",
        "servers": None if servers is None else len(servers),
        "ranks": ranks,
        "sha256": hashlib.sha256(rank_table.dump(table).encode("utf-8")).hexdigest(),
    }


def save(table: JsonObject, path: str, tell: Callable[[str], None]) -> str:
    """Writes `table` to `path`; returns the absolute path.

    tell is called with a line when another table is replaced.  Raises Refusal; the file at `path` is then as it was.
    """
    text, shown = rank_table.dump(table), one_line(path)
    if os.path.exists(path):
        try:
            old, _ = rank_table.read(path)
        except rank_table.NotReadable as error:
            raise misused("{error}; nothing was changed, name another file with --output", error=error) from error
        if not isinstance(old, dict) or _LISTS.isdisjoint(old):
            raise misused("{path} exists and is not a rank table; name another file with --output", path=shown)
        if old != table:
            tell(tr("{path} held another table; it is replaced", path=shown))
    return write(text, path)


def write(text: str, path: str) -> str:
    """Writes `text` to `path`; returns the absolute path.  Raises Refusal; the file at `path` is then as it was."""
    try:
        rank_table.write(text, path)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = strerror(error)
        raise misused(
            "cannot write {path}: {reason}; nothing was changed", path=one_line(path), reason=reason
        ) from error
    return os.path.abspath(path)


def drop_stdout() -> None:
    """Discards what is buffered for stdout and cannot be written; Python would try again when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
