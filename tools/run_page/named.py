"""The ranks that a reader must know by name, the most important first; each has one colour on the whole page."""

from __future__ import annotations

from hccl_tools.common.language import tr
from hccl_tools.common.record import Record
from hccl_tools.common.words import named
from tools.diagnosis import hang, slow_ranks
from tools.run_page import explained, outliers, timeline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from tools.run_page.outliers import Outlier
    from tools.run_page.reading import RunData

MOST = 8  # as many colours as people tell apart: --rank-0 to --rank-7 of style/base.css
_LONGEST = 48  # characters of a list of ranks
_FEW = 2  # ranks that all have a name: fewer have neither a median nor a band
# Why a rank has a name, the most important first.
FAILED, HUNG, ALSO_FAILED, SILENT = "failed", "hung", "also failed", "silent"
NOT_FINITE, SLOW, DRIFTS, FEW = "not finite", "slow", "drifts", "few"
_ORDER = (FAILED, HUNG, ALSO_FAILED, SILENT, NOT_FINITE, SLOW, DRIFTS, FEW)
_OF_OUTLIER = {outliers.NOT_FINITE: NOT_FINITE, outliers.SLOW: SLOW, outliers.DRIFT: DRIFTS}


class Named(Record):
    """A rank with a name and a colour."""

    rank: int
    colour: int | None  # 0 to MOST - 1; None: there are more such ranks than colours
    why: tuple[str, ...]  # of _ORDER, in that order


def of(data: RunData, found: Iterable[Outlier]) -> dict[int, Named]:
    """{rank: Named}, the most important first; found: what the curves show."""
    why: dict[int, list[str]] = {}
    for reason, rank in sorted(_reasons(data, found), key=lambda pair: _ORDER.index(pair[0])):
        reasons = why.setdefault(rank, [])
        reasons += [reason] if reason not in reasons else []
    return {
        rank: Named(rank=rank, colour=place if place < MOST else None, why=tuple(reasons))
        for place, (rank, reasons) in enumerate(why.items())
    }


def _reasons(data: RunData, found: Iterable[Outlier]) -> Iterable[tuple[str, int]]:
    """(why, rank), of the last attempt first."""
    known = {rank.rank for rank in data.ranks}
    yield from ((FAILED, rank) for rank in explained.roots_of(data)[:MOST])
    for attempt in reversed(data.attempts):
        for why, names in ((FAILED, [attempt.first_failure]), (ALSO_FAILED, attempt.also_failed)):
            yield from ((why, int(name)) for name in names if name and name.isdecimal() and int(name) in known)
    yield from ((HUNG, rank) for rank in hang.apart(data.launch, data.folder)[:MOST] if rank in known)
    yield from ((SILENT, rank) for rank in timeline.ranks(data))
    told = slow_ranks.of_run(data.launch)
    yield from ((SLOW, row["rank"]) for row in told if row["rank"] in known)
    yield from ((_OF_OUTLIER[one.kind], one.rank) for one in found)
    if len(data.ranks) <= _FEW:
        yield from ((FEW, rank) for rank in sorted(known))


def ranks(numbers: Iterable[int]) -> str:
    """``ranks 0-3,7``; of a long list the first, and how many there are."""
    every = sorted(set(numbers))
    text = named("rank", every)
    if len(text) <= _LONGEST:
        return text
    return tr("{ranks} … ({number} ranks)", ranks=text[:_LONGEST].rpartition(",")[0] + ",", number=len(every))


def label(rank: int) -> str:
    """The name of a rank, everywhere on the page."""
    return tr("rank {rank}", rank=rank)


def chip(one: Named) -> str:
    """A spot of the rank's colour, as HTML; nothing for a rank without one.  The name next to it states the same."""
    return "" if one.colour is None else f'<i class="chip rank-{one.colour}" aria-hidden="true"></i>'
