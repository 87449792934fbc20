#!/usr/bin/env python3
"""Writes a rank table to one host of a cluster; hosts/ask.py starts it on each host.

An existing file stays, because the hosts may share the folder.
"""

import hashlib
import os
import sys

if not __package__:  # run as a file: its own folder would hide the package of the same name
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

from hccl_tools.machine import interpreter

interpreter.check()

from hccl_tools.common.language import strerror
from hccl_tools.common.refusal import misused
from hccl_tools.hosts import answering
from hccl_tools.table import rank_table


def main():  # type: () -> int
    """Answers with the digest of the table that is at the path now."""
    return answering.answer(lambda _name, asked, _tell: place(*asked))


def place(path, text):  # type: (str, str) -> str
    """The SHA-256 of what is at `path`, which is `text` if nothing was there.  Raises Refusal."""
    try:
        if not os.path.exists(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            rank_table.write(text, path)
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError as error:
        raise misused(
            "the rank table cannot be written to {path}: {reason}", path=path, reason=strerror(error)
        ) from error


if __name__ == "__main__":
    sys.exit(main())
