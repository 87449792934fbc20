"""Prints how much is free at a folder that exists or would be made.

The output is: bytes, bytes free, inodes free (-1: no limit), 1 if it can be written, and the folder.  If the folder is
missing, all of them are about the nearest existing one above it.  This is a separate program: see limits.py.
"""

import os
import sys


def main(folder: str) -> int:
    """Prints the line for a folder that may be missing; returns 0."""
    there = os.path.abspath(folder)
    while not os.path.isdir(there):
        there = os.path.dirname(there)
    found = os.statvfs(there)
    inodes = found.f_favail if found.f_files else -1
    writable = int(os.access(there, os.W_OK | os.X_OK))
    line = f"{found.f_frsize * found.f_blocks} {found.f_frsize * found.f_bavail} {inodes} {writable} {there}\n"
    sys.stdout.buffer.write(os.fsencode(line))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1]))
    except OSError as error:
        sys.exit(f"{error.filename or 'the current folder'}: {error.strerror}")
