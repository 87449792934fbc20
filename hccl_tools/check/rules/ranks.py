"""Rules for rank ids."""

from __future__ import annotations

from collections.abc import Sequence

from hccl_tools.check.rules.registry import LISTED, Findings, is_number, repeated, rule
from hccl_tools.common.language import tr
from hccl_tools.common.problem import WARNING
from hccl_tools.common.words import count, shown
from hccl_tools.table.view import View

_RANKED = (*LISTED, "legacy_lab", "v1.1")


@rule("duplicate-rank", _RANKED)
def rank_given_twice(view: View) -> Findings:
    """Two devices have the same rank_id.

    Why: HCCL: every rank id from 0 to N-1 occurs once.
    Remedy: number the ranks 0, 1, 2 ... each once.
    """
    yield from repeated(view.ranks, view.rank_place, "rank_id", counts=is_number)


@rule("rank-gap", _RANKED)
def rank_left_out(view: View) -> Findings:
    """A rank id from 0 to N-1 is missing, and a larger one exists.

    Why: HCCL: rank ids are 0 to N-1 without a gap.
    Remedy: number the ranks without a gap.
    """
    yield from gap(view.rank_numbers, "/group_list" if view.format == "legacy_lab" else f"/{view.list_key}")


def gap(numbers: Sequence[int | None], place: str) -> Findings:
    """What a rule yields when the rank ids `numbers` (None: not a number) do not run from 0 without a gap."""
    ranks = {rank for rank in numbers if rank is not None}
    if not ranks or max(ranks) < len(numbers):
        return  # then a gap comes from repeated or malformed ranks, which other rules report
    missing = next(rank for rank in range(len(numbers)) if rank not in ranks)
    last = len(numbers) - 1
    text = tr(
        "{ranks}, so rank_id runs from 0 to {last}, but rank {missing} is missing",
        ranks=count(len(numbers), "rank"),
        last=last,
        missing=missing,
    )
    yield place, text, tr("number the ranks without a gap; rank {rank} is too large", rank=max(ranks))


@rule("rank-interleave", (*LISTED, "legacy_lab"))
def ranks_interleave(view: View) -> Findings:
    """The ranks of two servers interleave.

    Why: HCCL's manual: {0,1,2,3} and {4,5,6,7} are good, {0,1,2,7} and {3,4,5,6} are not.
    Remedy: give each server one block of ranks.
    """
    blocks = view.rank_blocks
    for (_, last, before), (first, _, server) in zip(blocks, blocks[1:]):
        if first <= last:
            yield (
                server.pointer,
                tr(
                    "the ranks of server {name} and of {before} interleave",
                    name=shown(server.name),
                    before=shown(before.name),
                ),
            )


@rule("look-alike", LISTED, WARNING)
def no_rank_anywhere(view: View) -> Findings:
    """No device has a rank_id.

    Why: llm-datadist's local tables (comm_res) look like 1.0 and 1.2 without rank_id; HCCL cannot read them.
    Remedy: give the file to llm-datadist, or build a table with hccl_tools/hccl_tools.py.
    """
    if view.devices and not any("rank_id" in device for device in view.devices):
        yield "", tr("no device has a rank_id, as in the local tables of llm-datadist, which HCCL itself cannot read")
