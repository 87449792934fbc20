"""The current state of a job, for a program: the output of watch.py --json."""

from __future__ import annotations

from hccl_tools.common import utc
from tools.live.estimate import estimate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tools.live.watcher import Seen, View


def of(view: View) -> dict[str, Any]:
    """The document; None is what is unknown.  Ranks are in the order of their numbers."""
    job, (share, left, ends) = view.job, estimate(view)
    return {
        "folder": job.folder,
        "script": job.script,
        "target": job.target,
        "state": job.state,
        "exit": job.exit,
        "restarts": job.attempt,
        "asked_to_end": job.asked,
        "started": _moment(job.started),
        "seconds": view.seconds,
        "quiet_seconds": view.quiet,
        "phase": view.phase.name if view.phase else None,
        "phase_seconds": view.phase.seconds if view.phase else None,
        "share": share,
        "left_seconds": left,
        "ends_at": _moment(ends),
        "hosts": job.hosts,
        "problems": [row.rank for row in view.problems],
        "ranks": [_rank(row) for row in sorted(view.rows, key=lambda row: row.rank)],
    }


def _moment(seconds: float | None) -> str | None:
    return None if seconds is None else utc.text(seconds)


def _rank(row: Seen) -> dict[str, Any]:
    return {
        "rank": row.rank,
        "host": row.place.host,
        "device": row.place.device,
        "log": row.place.log,
        "state": row.state,
        "exit": row.status,
        "quiet_seconds": row.age,
        "stale": row.stale,
        "phase": row.progress.phase,
        "slower": None if row.pace is None else row.pace.ratio,
        "memory_bytes": row.memory,
        "npu_memory_bytes": row.npu_memory,
        "progress": dict(row.progress.values),
    }
