"""The numbers of a run for a program: what plot_log.py prints with --json.  Times are milliseconds."""

from __future__ import annotations

from tools.run_page import outliers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tools.run_page.outliers import Outlier
    from tools.run_page.reading import RunData

# the name in the document: that of tools/progress/series.py
FIELDS = {"loss": "loss", "step_time": "step_ms", "data_time": "data_ms", "before_time": "before_ms"}
_NAMES = {field: name for name, field in FIELDS.items()}


def document(data: RunData, found: list[Outlier], run: str) -> dict[str, Any]:
    """All of them.  run: the folder, as the user names it."""
    typical = {
        name: outliers.typical(data.curves.get(field, {})) for name, field in FIELDS.items() if field in outliers.TIMES
    }
    ranks = [
        {
            "rank": rank,
            "median": {name: times.get(rank) for name, times in typical.items()},
            "points": points(data, rank),
        }
        for rank in data.logs
    ]
    known = [one for one in found if one.field in _NAMES]
    return {
        "folder": run,
        "ranks": ranks,
        "slow": [_slow(one) for one in known if one.kind == outliers.SLOW],
        "drifting": [
            {"rank": one.rank, "loss": one.value, "median": one.middle} for one in known if one.kind == outliers.DRIFT
        ],
        "not_finite": [
            {"rank": one.rank, "field": _NAMES[one.field], "step": one.step, "times": one.times}
            for one in known
            if one.kind == outliers.NOT_FINITE
        ],
        "notes": data.notes,
    }


def points(data: RunData, rank: int) -> list[dict[str, Any]]:
    """The steps of a rank in their order, and its numbers there; None where its log does not say."""
    at: dict[int, dict[str, Any]] = {}
    for name, field in FIELDS.items():
        curve = data.curves.get(field, {}).get(rank)
        for step, value in zip(curve.steps, curve.values) if curve else ():
            at.setdefault(step, {"step": step, **dict.fromkeys(FIELDS)})[name] = value
    return [at[step] for step in sorted(at)]


def _slow(one: Outlier) -> dict[str, Any]:
    return {
        "rank": one.rank,
        "kind": _NAMES[one.field],
        "time": one.value,
        "median": one.middle,
        "since": one.since,
        "until": one.until,
    }
