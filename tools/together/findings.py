"""The findings, as rows for launch.json, and as sentences: while the job runs, in the report and on the page.

A finding is not a failure.  If a good job may look the same, nothing is reported: a false alarm is worse than none.
"""

from __future__ import annotations

import math

from hccl_tools.common import documents
from hccl_tools.common.language import tr
from hccl_tools.common.words import ranges, short
from tools.output import alike

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    Row = dict[str, Any]

MOST_ROWS, MOST_RANKS, MOST_LINES = 256, 1024, 20
_CAUSES, _EFFECTS = ("alone", "not-joined"), ("same-data", "parted", "drifts")  # kinds
_LONGEST = 300  # characters of a text in a row


def row(kind: str, ranks: Iterable[int], **values: str | float) -> Row:
    """A finding about these ranks; values: its evidence, the fields of `_KINDS`."""
    kept = {name: value[:_LONGEST] if isinstance(value, str) else value for name, value in values.items()}
    return {"kind": kind, "ranks": sorted(ranks)[:MOST_RANKS], **kept}


def listed(ranks: Iterable[int]) -> str:
    """Ranks as a text in a row: ``0-2,5``."""
    return short(ranges(ranks))


def says(found: Row) -> str:
    """The sentence about one of these rows."""
    values = {name: _shown(value) for name, value in found.items()}
    values["who"] = alike.named(found["ranks"])
    return _KINDS[found["kind"]][1](values)


def _shown(value: object) -> object:
    """A value of a row as a sentence has it."""
    if isinstance(value, float):
        return f"{value:.6g}"
    return short(value, _LONGEST) if isinstance(value, str) else value


def report(rows: Sequence[Row]) -> list[str]:
    """The sentences about all of them, each once."""
    lines = list(dict.fromkeys(map(says, rows)))
    more = [tr("{number} more findings are in launch.json", number=len(lines) - MOST_LINES)]
    return lines[:MOST_LINES] + (more if len(lines) > MOST_LINES else [])


def without_effects(rows: Iterable[Row]) -> list[Row]:
    """Each row once, without those that follow from ranks that have not joined."""
    found = list({repr(row): row for row in rows}.values())
    if any(row["kind"] in _CAUSES for row in found):
        found = [row for row in found if row["kind"] not in _EFFECTS]
    return found


def rows_of(document: object) -> list[Row]:
    """The rows in a document, such as `outcome.findings` of launch.json.  What is not a row is left out."""
    return [found for found in document if _is_row(found)][:MOST_ROWS] if isinstance(document, list) else []


def all_of(launch: Row) -> list[Row]:
    """The rows of all attempts of a run, by its launch.json."""
    outcome = documents.part(launch, "outcome")
    attempts = [*documents.objects(outcome, "attempts"), outcome]
    return [found for one in attempts for found in rows_of(one.get("findings"))]


def _is_row(found: object) -> bool:
    if not isinstance(found, dict) or not isinstance(found.get("kind"), str) or found["kind"] not in _KINDS:
        return False
    fields, ranks = _KINDS[found["kind"]][0], found.get("ranks")
    return (
        found.keys() == {"kind", "ranks", *fields}
        and isinstance(ranks, list)
        and 0 < len(ranks) <= MOST_RANKS
        and all(type(rank) is int and rank >= 0 for rank in ranks)
        and ranks == sorted(set(ranks))
        and all(_is_value(found[name], kind) for name, kind in fields.items())
    )


def _is_value(value: object, kind: type) -> bool:
    if kind is float:
        return type(value) in (int, float) and math.isfinite(float(str(value)))
    if kind is int:
        return type(value) is int and value >= 0
    return isinstance(value, str) and len(value) <= _LONGEST


# ---- the kinds: their evidence, and their sentences ------------------------------------------------------------------


def _alone(values: Row) -> str:
    return tr(
        "no rank joined MindSpore's cluster: each of the {number} ranks ran alone; does the program lack init(), or "
        "its option for several ranks, such as --distribute or --run_distribute=True?",
        **values,
    )


def _not_joined(values: Row) -> str:
    return tr(
        "{who} did not join MindSpore's cluster, and others did ({others}); a rank that does not join trains alone",
        who=values["who"],
        others=f"{tr('rank') if values['others'].isdigit() else tr('ranks')} {values['others']}",
    )


def _same_data(values: Row) -> str:
    return tr(
        "{who} printed the same losses to the last digit in all {steps} steps that were compared, such as {loss} in "
        "epoch {epoch} step {step}; under data parallel each rank needs data of its own: give the dataset num_shards "
        "and shard_id",
        **values,
    )


def _parted(values: Row) -> str:
    return tr(
        "the losses of all ranks were the same to the last digit in {steps} steps; since epoch {epoch} step {step} "
        "{who} differs: {loss} against {others} in the last step",
        **values,
    )


def _drifts(values: Row) -> str:
    return tr(
        "the loss of {who} began like the others' and then diverged: {loss} against {others}, the mean of the "
        "last {steps} steps; does it use their gradients, and is its data like theirs?",
        **values,
    )


def _not_finite(values: Row) -> str:
    text = tr("the loss of {who} was {loss} first, in epoch {epoch} step {step}", **values)
    if values["later_step"]:
        place = {"epoch": values["later_epoch"], "step": values["later_step"]}
        return tr("{text}; the others' only from epoch {epoch} step {step} on", text=text, **place)
    return tr("{text}; the others' stayed finite", text=text)


def _world_size(values: Row) -> str:
    if values["size"] > 1:
        return tr(
            '{who} printed "{said}" (line {line} of the log), but the job has {number} ranks: if the program '
            "divides the data by that number, part of the data is never read",
            **values,
        )
    return tr(
        '{who} printed "{said}" (line {line} of the log), but the job has {number} ranks: does the program count '
        "itself alone?",
        **values,
    )


def _one_file(values: Row) -> str:
    return tr(
        "{who} wrote into one file, {path}: its content may be damaged; let one rank save, or give each rank a "
        "folder of its own",
        **values,
    )


def _lost_file(values: Row) -> str:
    return tr(
        "while {who} saved {path}, another process removed that file: do several ranks save into one file? Let one "
        "rank save, or give each rank a folder of its own",
        **values,
    )


def _differs(values: Row) -> str:
    return tr("{what} is not the same on all hosts: {host} ({who}) has {there}, others have {here}", **values)


_PLACE: dict[str, type] = {"epoch": int, "step": int}
_KINDS: dict[str, tuple[dict[str, type], Callable[[Row], str]]] = {
    "alone": ({"number": int}, _alone),
    "not-joined": ({"others": str}, _not_joined),
    "same-data": ({"steps": int, "loss": float, **_PLACE}, _same_data),
    "parted": ({"steps": int, "loss": float, "others": float, **_PLACE}, _parted),
    "drifts": ({"steps": int, "loss": float, "others": float}, _drifts),
    "not-finite": ({"loss": str, "later_epoch": int, "later_step": int, **_PLACE}, _not_finite),
    "world-size": ({"said": str, "size": int, "line": int, "number": int}, _world_size),
    "one-file": ({"path": str}, _one_file),
    "lost-file": ({"path": str}, _lost_file),
    "differs": ({"what": str, "here": str, "there": str, "host": str}, _differs),
}
