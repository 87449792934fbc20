"""Rules for version 2.0 (Ascend 950).

Source of all rules: hcomm, coll_communicator_mgr/rank_graph/rank_table_info, and HCCL's manual for 950.
"""

from __future__ import annotations

import re

from hccl_tools.check.rules.devices import gap
from hccl_tools.check.rules.registry import Findings, repeated, rule
from hccl_tools.common.documents import JsonObject
from hccl_tools.common.language import tr
from hccl_tools.common.problem import WARNING
from hccl_tools.common.words import shown
from hccl_tools.table.address import family
from hccl_tools.table.view import View, listed

_FORMAT = ("v2.0",)
_EID = re.compile(r"[0-9A-Fa-f]{32}").fullmatch


def _ranks(view: View) -> list[tuple[str, JsonObject]]:
    return listed(view.table, "rank_list")


def _levels(view: View) -> list[tuple[str, JsonObject]]:
    return [level for place, rank in _ranks(view) for level in listed(rank, "level_list", place)]


def _whole(value: object) -> int | None:
    return value if type(value) is int else None


@rule("count-mismatch", _FORMAT)
def rank_count_wrong(view: View) -> Findings:
    """rank_count is not the number of entries in rank_list.

    Why: HCCL's parser of 2.0 (EI0014).
    Remedy: write the number of ranks, without quotes.
    """
    count, ranks = _whole(view.table.get("rank_count")), view.table.get("rank_list")
    if count is not None and isinstance(ranks, list) and count != len(ranks):
        yield (
            "/rank_count",
            tr("rank_count is {count} but rank_list has {ranks}", count=count, ranks=len(ranks)),
            tr("write {value}", value=len(ranks)),
        )


@rule("duplicate-rank", _FORMAT)
def rank_given_twice(view: View) -> Findings:
    """Two entries in rank_list have the same rank_id.

    Why: HCCL's parser of 2.0: rank_id is unique.
    Remedy: number the ranks 0, 1, 2 ... each once.
    """
    ranks = _ranks(view)
    numbers = [_whole(rank.get("rank_id")) for _, rank in ranks]
    yield from repeated(numbers, lambda index: ranks[index][0] + "/rank_id", "rank_id")


@rule("rank-gap", _FORMAT)
def rank_left_out(view: View) -> Findings:
    """A rank id from 0 to N-1 is missing in rank_list, and a larger one exists.

    Why: HCCL's parser of 2.0: rank_id runs from 0 to rank_count - 1.
    Remedy: number the ranks without a gap.
    """
    yield from gap([_whole(rank.get("rank_id")) for _, rank in _ranks(view)], "/rank_list")


@rule("wrong-type", _FORMAT)
def number_has_fraction(view: View) -> Findings:
    """A whole number has a fraction or an exponent, such as 2.0 or 1e2.

    Why: HCCL reads integers; JSON Schema accepts 2.0 as an integer, but HCCL does not.
    Remedy: write it without fraction and exponent.
    """
    for place, entry in [("", view.table), *_ranks(view), *_levels(view)]:
        for key, value in entry.items():
            if type(value) is float and value.is_integer():
                yield (
                    f"{place}/{key}",
                    tr("{value} has a fraction or an exponent", value=value),
                    tr("write {value}", value=int(value)),
                )


@rule("missing-field", _FORMAT)
def spare_replaces_nothing(view: View) -> Findings:
    """local_id is 64 (a spare device), and replaced_local_id is missing.

    Why: HCCL's manual for 950: a spare names the device that it replaces.
    Remedy: add replaced_local_id, 0 to 63.
    """
    for place, rank in _ranks(view):
        if _whole(rank.get("local_id")) == 64 and "replaced_local_id" not in rank:
            yield place, tr("replaced_local_id is missing, and local_id 64 is a spare")


@rule("level-order", _FORMAT)
def layers_out_of_order(view: View) -> Findings:
    """net_layer does not increase from one level of a rank to the next.

    Why: HCCL's parser of 2.0: strictly increasing.
    Remedy: sort level_list by net_layer, with each value once.
    """
    for place, rank in _ranks(view):
        before: int | None = None
        for level_place, level in listed(rank, "level_list", place):
            layer = _whole(level.get("net_layer"))
            if layer is None:
                continue
            if before is not None and layer <= before:
                yield (
                    f"{level_place}/net_layer",
                    tr("net_layer {layer} comes after {before}", layer=layer, before=before),
                )
            before = layer


_WHAT = {"EID": tr("32 hexadecimal digits"), "IPV4": "an IPv4 address", "IPV6": "an IPv6 address"}


@rule("bad-address", _FORMAT)
def addr_does_not_fit_its_type(view: View) -> Findings:
    """addr does not match addr_type: 32 hexadecimal digits (EID), an IPv4 or an IPv6 address.

    Why: HCCL's parser of 2.0.
    Remedy: write an address of this type, or change addr_type.
    """
    for level_place, level in _levels(view):
        for place, entry in listed(level, "rank_addr_list", level_place):
            kind, addr = entry.get("addr_type"), entry.get("addr")
            if isinstance(kind, str) and kind in _WHAT and isinstance(addr, str) and addr and not _fits(kind, addr):
                what = tr("addr {addr} is not {what}", addr=shown(addr), what=_WHAT[kind])
                yield f"{place}/addr", what, tr("write {what}, or another addr_type", what=_WHAT[kind])


def _fits(kind: str, addr: str) -> bool:
    if kind == "EID":
        return _EID(addr) is not None
    return family(addr) == family("0.0.0.0" if kind == "IPV4" else "::")


@rule("shared-address", _FORMAT, WARNING)
def addr_of_two_ranks(view: View) -> Findings:
    """Two ranks have the same address in one layer.

    Why: HCCL's parser accepts it, but two ranks that share a port share its bandwidth, and a copied entry looks the
    same. A spare (local_id 64) has the addresses of the device that it replaces.
    Remedy: check the addresses of both ranks.
    """
    first: dict[tuple[int, str], str] = {}
    for place, rank in _ranks(view):
        for level_place, level in listed(rank, "level_list", place) if rank.get("local_id") != 64 else ():
            for entry_place, entry in listed(level, "rank_addr_list", level_place):
                addr = entry.get("addr")
                if not isinstance(addr, str) or not addr or level.get("net_layer") not in range(8):
                    continue
                earlier = first.setdefault((level["net_layer"], addr), place)
                if earlier != place:
                    yield (
                        f"{entry_place}/addr",
                        tr("addr {addr} is also used at {earlier}", addr=shown(addr), earlier=earlier),
                    )
                    return  # one is enough to check the whole
