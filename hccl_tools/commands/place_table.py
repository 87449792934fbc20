#!/usr/bin/env python3
"""Puts a rank table on a host of a cluster; cluster.ask starts it on each, nobody types it.

A file that is there already stays: the folder may be one that the hosts share.
"""

import argparse
import base64
import hashlib
import os
import socket
import sys
import zlib

if not __package__:  # run as a file: its own folder would hide the package of the same name
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

from hccl_tools.machine import interpreter

interpreter.check()

from hccl_tools.hosts import ask
from hccl_tools.table import rank_table


def main():
    """Answers with the digest of the table that is at PATH now; the exit code is 0 either way, see cluster.py."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--answer", required=True)
    parser.add_argument("--hosts", nargs="+", required=True)
    parser.add_argument("path")
    parser.add_argument("data", help="base64 of the deflated table")
    options = parser.parse_args()
    digest, lines = None, []
    try:
        digest = place(options.path, zlib.decompress(base64.b64decode(options.data)))
    except OSError as error:
        lines = [f"the rank table cannot be put to {options.path}: {error.strerror}"]
    answer = ask.Answer(ask.own_entry(options.hosts), socket.gethostname(), digest, lines)
    os.write(1, ask.frame(answer, options.answer))
    return 0


def place(path, data):
    """The SHA-256 of what is at `path`, which is `data` if nothing was there.  Raises OSError."""
    if not os.path.exists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        rank_table.write(data.decode("utf-8"), path)
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
