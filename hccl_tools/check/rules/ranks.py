"""Rules on rank ids."""

from hccl_tools.check.rules.registry import LISTED, rule
from hccl_tools.check.rules.repeated import repeated
from hccl_tools.common.problem import WARNING
from hccl_tools.common.words import shown

_RANKED = (*LISTED, "legacy_lab", "v1.1")


@rule("duplicate-rank", _RANKED)
def rank_given_twice(view):
    """Two devices have one rank_id.

    Why: HCCL: every rank id of 0 to N-1 stands once.
    Mend: number the ranks 0, 1, 2 ... each once.
    """
    yield from repeated(view.ranks, view.rank_place, "rank_id", "number the ranks 0, 1, 2 ... each once")


@rule("rank-gap", _RANKED)
def rank_left_out(view):
    """A rank id of 0 to N-1 is missing and a larger one is there.

    Why: HCCL: rank ids are 0 to N-1 without a gap.
    Mend: number the ranks without a gap.
    """
    listed = "/group_list" if view.format == "legacy_lab" else "/" + view.list_key
    yield from gap(view.rank_numbers, listed)


def gap(numbers, listed):
    """What a rule yields when the rank ids `numbers` (None: no number) do not run from 0 without a gap."""
    count, ranks = len(numbers), set(numbers) - {None}
    if not ranks or max(ranks) < count:
        return  # then a gap comes from ranks that stand twice or are no numbers, which is said elsewhere
    missing = next(rank for rank in range(count) if rank not in ranks)
    text = f"{count} ranks, so rank_id runs from 0 to {count - 1}, but rank {missing} is missing"
    yield listed, text, f"number the ranks without a gap; rank {max(ranks)} is too large"


@rule("rank-interleave", (*LISTED, "legacy_lab"))
def ranks_interleave(view):
    """The ranks of two servers interleave.

    Why: HCCL's manual: {0,1,2,3} and {4,5,6,7} are good, {0,1,2,7} and {3,4,5,6} are not.
    Mend: give each server one block of ranks.
    """
    blocks = view.rank_blocks
    for (_, last, before), (first, _, server) in zip(blocks, blocks[1:]):
        if first <= last:
            text = f"the ranks of server {shown(server.name)} and of {shown(before.name)} interleave"
            yield server.pointer, text, "give each server one block of ranks"


@rule("look-alike", LISTED, WARNING)
def no_rank_anywhere(view):
    """No device has a rank_id.

    Why: llm-datadist's local tables (comm_res) have the shape of 1.0 and 1.2 without rank_id;
    HCCL cannot read them.
    Mend: give the file to llm-datadist, or build a table with hccl_tools/hccl_tools.py.
    """
    if view.devices and not any("rank_id" in device for device in view.devices):
        text = "no device has a rank_id, as in the local tables of llm-datadist, which HCCL itself cannot read"
        yield "", text, "give it to llm-datadist, or build a table with hccl_tools/hccl_tools.py"
