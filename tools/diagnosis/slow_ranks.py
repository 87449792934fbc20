"""Stores the ranks that --straggler named: for a line while the job runs, the report, and launch.json.

The process that measures (tools/monitor) may be killed at any time.  So it writes them to a file of the run folder.  At
the end tools/features/metrics.py reads this file.
"""

from __future__ import annotations

import json
import math
import os

from hccl_tools.common import documents
from hccl_tools.common.language import tr
from tools.launch import record
from tools.progress import figures

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tools.progress.slowness import Pace

FILE = "stragglers.json"
MOST_ROWS, MOST_LINES = 1024, 20
_MOST = 1e12  # of a number that we print
_WHOLE = ("rank", "device", "attempt", "steps")
_NUMBERS = ("factor", "time_ms", "median_ms")
_KIND_ENDS = "_ms"  # of slowness.Pace's kinds; launch.json has them without


def row(rank: int, device: object, host: str, attempt: int, pace: Pace, steps: int) -> dict[str, Any]:
    """What launch.json states about one.  attempt: 0 is the first; steps: for so many it was slow."""
    return {
        "rank": rank,
        "device": device,
        "host": host,
        "attempt": attempt,
        "kind": pace.kind[: -len(_KIND_ENDS)],
        "factor": round(min(pace.ratio, _MOST), 3),
        "time_ms": round(min(pace.time, _MOST), 3),
        "median_ms": round(min(pace.median, _MOST), 3),
        "steps": steps,
    }


def says(found: dict[str, Any], at_end: bool = False) -> str:
    """The line about one of these rows."""
    values = {"who": record.who(found), "factor": figures.factor(found["factor"]), "steps": found["steps"]}
    values["times"] = figures.times(found["kind"] + _KIND_ENDS, found["time_ms"], found["median_ms"])
    if found["kind"] == "data":
        if at_end:
            return tr("slow: {who} made each step take {factor} times as long for {steps} steps ({times})", **values)
        return tr("{who} makes each step take {factor} times as long for {steps} steps ({times})", **values)
    if at_end:
        return tr("slow: {who} took {factor} times as long as the median rank for {steps} steps ({times})", **values)
    return tr("{who} takes {factor} times as long as the median rank for {steps} steps ({times})", **values)


def report(rows: list[dict[str, Any]]) -> list[str]:
    """The lines of the launcher's report, the slowest rank first."""
    slowest = sorted(rows, key=lambda found: (-found["factor"], found["rank"]))
    lines = [says(found, at_end=True) for found in slowest[:MOST_LINES]]
    if len(rows) > MOST_LINES:
        lines.append(tr("{count} more slow ranks are in launch.json", count=len(rows) - MOST_LINES))
    return lines


def path(run_dir: str) -> str:
    """The file, in the run's folder."""
    return os.path.join(run_dir, FILE)


def save(run_dir: str, rows: list[dict[str, Any]]) -> None:
    """Writes the file, whole or not at all.  Raises OSError."""
    documents.write_whole(json.dumps(rows[:MOST_ROWS]) + "\n", path(run_dir), errors="replace")


def read(run_dir: str) -> list[dict[str, Any]]:
    """The rows of the file; none, if it is not there.  Other rows are left out.  Raises OSError, ValueError."""
    try:
        rows = documents.read_json(path(run_dir))
    except FileNotFoundError:
        return []
    return rows_of(rows)


def rows_of(document: object) -> list[dict[str, Any]]:
    """The rows in a document, such as `outcome.stragglers` of launch.json.  What is not a row is left out."""
    return [found for found in document if _is_row(found)][:MOST_ROWS] if isinstance(document, list) else []


def of_run(launch: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a run's launch.json."""
    return rows_of(documents.part(launch, "outcome").get("stragglers"))


def _is_row(found: object) -> bool:
    return (
        isinstance(found, dict)
        and found.keys() == {*_WHOLE, *_NUMBERS, "host", "kind"}
        and all(type(found[name]) is int and found[name] >= 0 for name in _WHOLE)
        and all(type(found[name]) in (int, float) and math.isfinite(found[name]) for name in _NUMBERS)
        and isinstance(found["host"], str)
        and found["kind"] in ("before", "step", "data")
    )
