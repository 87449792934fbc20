"""The file that a command was asked for: written whole, or everything stays as it was."""

import os

from hccl_tools.common.words import one_line
from hccl_tools.table import rank_table


class NotOurs(Exception):
    """A file that is no rank table stands where the table should go; one line says which."""


def save(table, path, say):
    """Writes `table` to `path`; returns the absolute path.

    say: called with a line when another table is replaced.  Raises NotOurs and OSError; the file at
    `path` is then as it was.
    """
    text = rank_table.dump(table)
    if os.path.exists(path):
        try:
            old, _ = rank_table.read(path)
        except rank_table.NotReadable as error:
            raise NotOurs(f"{error}; nothing was changed, name another file with --output") from error
        if not isinstance(old, dict) or "server_list" not in old:
            raise NotOurs(f"{one_line(path)} is there and is not a rank table; name another file with --output")
        if old != table:
            say(f"{one_line(path)} held another table; it is replaced")
    rank_table.write(text, path)
    return os.path.abspath(path)


def drop_stdout():
    """Lets go of what is buffered for stdout and cannot be written; Python would try again at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
