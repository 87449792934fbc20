"""Writes the page of a run at the job's end, in the launcher's forked child (tools/features/explanation_child.py)."""

from __future__ import annotations

import os
import signal

_MOST_BYTES = 3 << 20  # of all logs: more takes half a second
_MOST_FILES = 1000
_MOST_RANKS = 256


def main(run: str, size: str, seconds: float) -> str:
    """Writes the page; returns "written", "large", if the page would take longer, or why there is none.

    size: "small": only if that takes less than a second, or "any".  A timer of the kernel ends the process after
    `seconds`, whatever it does.
    """
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends the process
    signal.setitimer(signal.ITIMER_REAL, seconds)
    if size == "small" and not is_small(run):
        return "large"
    from hccl_tools.common.refusal import Refusal
    from tools.run_page import document

    try:
        document.write([run], None)
    except Refusal as refusal:
        return refusal.lines[0]
    return "written"


def is_small(run: str) -> bool:
    """Whether few ranks have short logs.  Raises OSError."""
    size = files = logs = 0
    folders = [run]
    for folder in folders:
        with os.scandir(folder) as entries:
            for entry in entries:
                files += 1
                if entry.name.startswith("restart_") and entry.is_dir():
                    folders.append(entry.path)
                elif entry.name.startswith("rank_") and entry.name.endswith(".log"):
                    logs += 1
                    size += entry.stat().st_size
                if files > _MOST_FILES or logs > _MOST_RANKS or size > _MOST_BYTES:
                    return False
    return True
