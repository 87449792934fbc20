"""Removes old runs, with their logs and checkpoints, when the user has said yes."""

from __future__ import annotations

import os
import shutil

from hccl_tools.common.language import tr
from hccl_tools.common.words import one_line
from tools.history.listing import RUNNING, Run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def choose(runs: Sequence[Run], keep: int, logs: str) -> list[Run]:
    """The runs that can go: all but the newest `keep`, the one that `latest` links to, and those that still run."""
    latest = os.path.realpath(os.path.join(logs, "latest"))
    old = runs[keep:]
    return [run for run in old if run.state != RUNNING and os.path.realpath(run.folder) != latest]


def size(folder: str) -> int:
    """The bytes of all files in it; what cannot be read counts nothing."""
    total = 0
    for above, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(above, name)).st_size
            except OSError:
                continue
    return total


def has_checkpoints(run: Run) -> bool:
    """Whether its folder has checkpoints of tools/train.py."""
    return os.path.isdir(os.path.join(run.folder, "ckpt"))


def document(run: Run, size_: int) -> dict[str, Any]:
    """What --json says of a run that could go.  size_: its bytes before."""
    return {"folder": run.folder, "bytes": size_, "removed": not os.path.lexists(run.folder)}


def remove(run: Run) -> str | None:
    """Removes the run's folder; returns what is wrong if it is still there."""
    try:
        shutil.rmtree(run.folder)
    except OSError as error:
        where = one_line(error.filename or run.folder)
        return tr("{path} cannot be removed: {reason}", path=where, reason=error.strerror)
    return None
