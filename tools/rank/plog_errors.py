"""Finds the errors that CANN logged on a host whose logs the launcher cannot read; the host's agent sends them."""

from __future__ import annotations

import glob
import os

LINES = 20  # the first and the last lines that the launcher gets
BYTES = 1000  # of a line
_BLOCK = 1 << 16


def of_rank(folder: str, pid: int, since: str) -> list[bytes]:
    """The first and the last lines of the level ERROR in the rank's plogs.

    folder: the rank's, which may be one of the user, with the plogs of earlier jobs; since: a file that is older than
    those of this job.  If the folder cannot be written, CANN has logged where it does by itself, and the name of a file
    has the process.
    """
    if os.access(folder, os.W_OK | os.X_OK):
        names = glob.glob(os.path.join(glob.escape(folder), "debug", "plog", "plog-*.log"))
    else:
        above = os.environ.get("ASCEND_PROCESS_LOG_PATH") or os.path.join(os.environ.get("HOME", ""), "ascend", "log")
        names = glob.glob(os.path.join(glob.escape(above), "debug", "plog", f"plog-{pid}_*.log"))
    try:
        begun = os.stat(since).st_mtime_ns
        found = [path for path in sorted(names) if not os.path.islink(path) and os.stat(path).st_mtime_ns > begun]
    except OSError:
        return []
    first: list[bytes] = []
    last: list[bytes] = []
    for path in found:
        for line in _errors(path):
            if len(first) < LINES:
                first.append(line)
            else:
                last = [*last[1 - LINES :], line]
    return first + last


def _errors(path: str) -> list[bytes]:
    """Its lines of that level, each cut so that no character is."""
    from tools.output import lines

    found = []
    try:
        with open(path, "rb") as file:
            for line in file:
                if line.startswith(b"[ERROR]"):
                    found.append(lines.cut(line.rstrip(b"\n").replace(b"\0", b""), BYTES))
    except OSError:
        return found
    return found
