"""The process next to a launcher in a pod: detects that the operator rewrites the rank table, because the job moves.

tools/features/pod_table.py starts it.  Its lines, on stdout, are events for the launcher.
"""

from __future__ import annotations

import os
import time

from hccl_tools.common.language import tr
from hccl_tools.common.refusal import Refusal
from hccl_tools.common.words import clauses, one_line
from hccl_tools.machine import programs
from tools.launch.pods import pod_table
from tools.launch.pods.pod_table import Initializing, NotReady

MOVED = 138  # exit code: training operators of Kubernetes take it, 128 + SIGUSR1, for "start me again"
LOOK_EVERY = 1.0  # seconds
WHOLE_WITHIN = 10.0  # seconds in which a file that is written in place must be whole again


def begin(launcher: int, path: str, digest: str) -> None:
    """Ends with the process `launcher`, or when it has reported that the table changed."""
    programs.end_with_parent()
    if os.getppid() != launcher:
        return
    watch(path, digest)


def watch(path: str, digest: str) -> None:
    """Returns when the table at `path` no longer has the content with `digest`, which the ranks have."""
    seen, unusable_since, told = stamp(path), 0.0, False
    while True:
        time.sleep(LOOK_EVERY)
        now = stamp(path)
        if now == seen and not unusable_since:
            continue
        reason, waits = change(path, digest)
        if reason and not waits:
            say(
                "moved",
                MOVED,
                clauses(reason, tr("the job moves, and the operator starts it again")),
            )
            return
        seen = now
        if not waits:
            unusable_since, told = 0.0, False
        elif not unusable_since:
            unusable_since = time.monotonic()
        elif not told and time.monotonic() >= unusable_since + WHOLE_WITHIN:
            told = True
            say("say", f"{tr('note: {reason}; the ranks have a copy and go on', reason=reason)}")


def change(path: str, digest: str) -> tuple[str, bool]:
    """(what has changed, whether to look again): the file may be in the middle of being written.

    ("", False): nothing that a rank would read.
    """
    try:
        _, document = pod_table.read(path)
    except Initializing as reason:
        return str(reason), False
    except NotReady as reason:
        return str(reason), True
    except Refusal as refusal:
        return refusal.lines[0], True
    if pod_table.digest(document) == digest:
        return "", False
    shown = one_line(path)
    return tr("{path} has been rewritten, with other servers or devices", path=shown), False


def stamp(path: str) -> tuple[int, ...]:
    """Values that change when a file is written or replaced, even behind a ConfigMap's links; () if it is missing."""
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


def say(word: str, *values: object) -> None:
    """Sends one event to tools/features/pod_table.py, in one write."""
    line = f"{word} {' '.join(map(str, values))}"
    os.write(1, os.fsencode(one_line(line)) + b"\n")
