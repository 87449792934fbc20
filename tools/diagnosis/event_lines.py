"""Writes the fatal events of a job as JSON lines for log collectors: time, rank, host, device, code and cause."""

from __future__ import annotations

import json
import sys
import time as clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from tools.diagnosis.job_logs import Explained
    from tools.diagnosis.run import Member


def of_job(logs: Explained | None, members: list[Member]) -> list[dict[str, Any]]:
    """The root first, then the known failures by time, then the ends of ranks that failed by themselves."""
    found: list[dict[str, Any]] = []
    if logs and logs.recorded:
        verdict = logs.recorded
        roots: list[object] = [*verdict.roots] or [None]
        for one in roots:
            found.append(
                {
                    **_row("root", verdict.time, getattr(one, "rank", None)),
                    "host": getattr(one, "host", None),
                    "device": getattr(one, "device", None),
                    "code": f"root-{verdict.kind}",
                    "cause": verdict.sentence,
                    "certainty": verdict.certainty,
                }
            )
    for fault in sorted(logs.faults, key=lambda one: one.seen.time or 0.0) if logs else ():
        found.append(
            {
                **_row("fault", fault.seen.time, fault.rank),
                "host": fault.process.host if fault.process else None,
                "device": fault.process.device if fault.process else None,
                "code": fault.entry.code,
                "cause": fault.entry.cause,
                "file": fault.path,
                "row": fault.seen.row,
                "line": fault.seen.text,
            }
        )
    for member in members:
        row = _row("end", None, int(member.name) if member.is_rank else None)
        found.append({**row, "member": member.name, "status": member.status})
    return found


def _row(event: str, time: float | None, rank: int | None) -> dict[str, Any]:
    # local time of the host that wrote the log, which names no zone
    said = None if time is None else clock.strftime("%Y-%m-%dT%H:%M:%S", clock.gmtime(time)) + f".{time % 1:.3f}"[2:]
    return {"event": event, "time": said, "rank": rank}


def write(path: str, rows: Iterable[dict[str, Any]]) -> None:
    """Appends the lines to the file, so that a collector that follows it loses nothing; -: stdout.  Raises OSError."""
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    if path == "-":
        sys.stdout.write(text)
        return
    with open(path, "a", encoding="utf-8", errors="replace") as file:
        file.write(text)
