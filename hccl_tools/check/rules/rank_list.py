"""Rules of version 2.0 (Ascend 950).

Source of all: hcomm, coll_communicator_mgr/rank_graph/rank_table_info, and HCCL's manual for 950.
"""

import re

from hccl_tools.check.rules.ranks import gap
from hccl_tools.check.rules.registry import rule
from hccl_tools.check.rules.repeated import repeated
from hccl_tools.common.problem import WARNING
from hccl_tools.common.words import shown
from hccl_tools.table.address import family
from hccl_tools.table.view import objects

_FORMAT = ("v2.0",)
_EID = re.compile(r"[0-9A-Fa-f]{32}").fullmatch


def _ranks(view):
    return [(f"/rank_list/{n}", rank) for n, rank in objects(view.table, "rank_list")]


def _levels(view):
    for place, rank in _ranks(view):
        for n, level in objects(rank, "level_list"):
            yield f"{place}/level_list/{n}", level


def _whole(value):
    return value if type(value) is int else None


@rule("count-mismatch", _FORMAT)
def rank_count_wrong(view):
    """rank_count is not the number of entries in rank_list.

    Why: HCCL's parser of 2.0 (EI0014).
    Mend: write the number of ranks, without quotes.
    """
    count, listed = _whole(view.table.get("rank_count")), view.table.get("rank_list")
    if count is not None and isinstance(listed, list) and count != len(listed):
        yield "/rank_count", f"rank_count is {count} but rank_list has {len(listed)}", f"write {len(listed)}"


@rule("duplicate-rank", _FORMAT)
def rank_given_twice(view):
    """Two entries of rank_list have one rank_id.

    Why: HCCL's parser of 2.0: rank_id is unique.
    Mend: number the ranks 0, 1, 2 ... each once.
    """
    ranks = _ranks(view)
    numbers = [_whole(rank.get("rank_id")) for _, rank in ranks]
    remedy = "number the ranks 0, 1, 2 ... each once"
    yield from repeated(numbers, lambda index: ranks[index][0] + "/rank_id", "rank_id", remedy)


@rule("rank-gap", _FORMAT)
def rank_left_out(view):
    """A rank id of 0 to N-1 is missing in rank_list and a larger one is there.

    Why: HCCL's parser of 2.0: rank_id runs from 0 to rank_count - 1.
    Mend: number the ranks without a gap.
    """
    yield from gap([_whole(rank.get("rank_id")) for _, rank in _ranks(view)], "/rank_list")


@rule("wrong-type", _FORMAT)
def number_has_fraction(view):
    """A whole number is written with a fraction or an exponent, as in 2.0 or 1e2.

    Why: HCCL reads integers; JSON Schema takes 2.0 for one, HCCL does not.
    Mend: write it without fraction and exponent.
    """
    places = [("", view.table), *_ranks(view), *_levels(view)]
    for place, entry in places:
        for key, value in entry.items():
            if type(value) is float and value.is_integer():
                yield f"{place}/{key}", f"{value} has a fraction or an exponent", f"write {int(value)}"


@rule("missing-field", _FORMAT)
def spare_replaces_nothing(view):
    """local_id is 64, a spare device, and replaced_local_id is missing.

    Why: HCCL's manual for 950: a spare says which device it stands in for.
    Mend: add replaced_local_id, 0 to 63.
    """
    for place, rank in _ranks(view):
        if _whole(rank.get("local_id")) == 64 and "replaced_local_id" not in rank:
            yield place, "replaced_local_id is missing, and local_id 64 is a spare", "add replaced_local_id, 0 to 63"


@rule("level-order", _FORMAT)
def layers_out_of_order(view):
    """net_layer does not grow from one level of a rank to the next.

    Why: HCCL's parser of 2.0: strictly increasing.
    Mend: sort level_list by net_layer, each once.
    """
    for place, rank in _ranks(view):
        before = None
        for n, level in objects(rank, "level_list"):
            layer = _whole(level.get("net_layer"))
            if layer is not None and before is not None and layer <= before:
                what = f"net_layer {layer} stands after {before}"
                yield f"{place}/level_list/{n}/net_layer", what, "sort level_list by net_layer, each once"
            before = layer if layer is not None else before


_WHAT = {"EID": "32 hexadecimal digits", "IPV4": "an IPv4 address", "IPV6": "an IPv6 address"}


@rule("bad-address", _FORMAT)
def addr_does_not_fit_its_type(view):
    """addr is not what addr_type says: 32 hexadecimal digits (EID), an IPv4 or an IPv6 address.

    Why: HCCL's parser of 2.0.
    Mend: write such an address, or another addr_type.
    """
    for place, level in _levels(view):
        for n, entry in objects(level, "rank_addr_list"):
            kind, addr = entry.get("addr_type"), entry.get("addr")
            if isinstance(kind, str) and kind in _WHAT and isinstance(addr, str) and addr and not _fits(kind, addr):
                what = f"addr {shown(addr)} is not {_WHAT[kind]}"
                yield f"{place}/rank_addr_list/{n}/addr", what, f"write {_WHAT[kind]}, or another addr_type"


def _fits(kind, addr):
    found = family(addr)
    if kind == "EID":
        return _EID(addr) is not None
    return found is not None and found.name == ("AF_INET" if kind == "IPV4" else "AF_INET6")


@rule("shared-address", _FORMAT, WARNING)
def addr_of_two_ranks(view):
    """Two ranks have one address in the same layer.

    Why: HCCL's parser takes it, but two ranks that share a port share its bandwidth, and a copied
    entry looks just like that. A spare (local_id 64) takes over the addresses of another.
    Mend: check the addresses of both ranks.
    """
    first = {}
    for place, rank in _ranks(view):
        for n, level in objects(rank, "level_list") if rank.get("local_id") != 64 else ():
            for m, entry in objects(level, "rank_addr_list"):
                addr = entry.get("addr")
                if not isinstance(addr, str) or not addr or level.get("net_layer") not in range(8):
                    continue
                earlier = first.setdefault((level["net_layer"], addr), place)
                if earlier != place:
                    what = f"addr {shown(addr)} is that of {earlier} too"
                    yield f"{place}/level_list/{n}/rank_addr_list/{m}/addr", what, "check the addresses of both ranks"
                    return  # one is enough to look at the whole
