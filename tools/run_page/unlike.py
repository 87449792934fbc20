"""What tells runs apart: the names whose values are not alike, and a short label of each run made of them."""

from __future__ import annotations

from collections import Counter

from hccl_tools.common.language import tr
from hccl_tools.common.record import Record
from hccl_tools.common.words import count, listed, short
from tools.run_page import plans

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MOST = 500  # names
_IN_LABEL = 3  # names
_LONGEST = 24  # characters of a value in a label
_NOUNS = {plans.RANKS: "rank", plans.HOSTS: "host"}


class Unlike(Record):
    """A name whose values are not the same in all runs."""

    name: str
    values: tuple[str | None, ...]  # of each run; None: it does not have the name
    also: tuple[str, ...]  # other names that have just these values


class Label(Record):
    """How a run is called on the page."""

    letter: str
    what: str  # what it has that others have not; may be empty

    @property
    def text(self) -> str:
        """Such as ``B: lr 0.2``."""
        return f"{self.letter}: {self.what}" if self.what else self.letter


def of(flat: Sequence[dict[str, str]]) -> list[Unlike]:
    """The names that are not alike; flat: {name: value} of each run."""
    columns: dict[tuple[str | None, ...], list[str]] = {}
    for name in dict.fromkeys(name for each in flat for name in each):
        values = tuple(each.get(name) for each in flat)
        if len(set(values)) > 1:
            columns.setdefault(values, []).append(name)
    rows = [Unlike(name=names[0], values=values, also=tuple(names[1:])) for values, names in columns.items()]
    return rows[:MOST]


def labels(number: int, rows: Sequence[Unlike], started: Sequence[str | None]) -> list[Label]:
    """The labels of the runs, each with another letter.

    The name with the most different values is in all labels, another one only in those of the runs where it is not as
    usual.  started: when each run started, which is all that tells apart runs without a difference.
    """
    first = max(rows, key=lambda row: len(set(row.values)), default=None)
    last = Counter(_last(row.name) for row in rows)
    found: list[list[str]] = [[] for _ in range(number)]
    for row in [first, *(row for row in rows if row is not first)] if first else []:
        usual = Counter(row.values).most_common(1)[0][0]
        name = row.name if last[_last(row.name)] > 1 else _last(row.name)
        for texts, value in zip(found, row.values):
            if (row is first or value != usual) and len(texts) < _IN_LABEL:
                texts.append(_said(row.name, name, value))
    if not rows and len(set(started)) > 1:
        found = [[tr("started {time}", time=short(moment or "?"))] for moment in started]
    return [Label(letter=letter(place), what=listed(texts)) for place, texts in enumerate(found)]


def letter(place: int) -> str:
    """A to Z, then AA, AB and so on."""
    return (letter(place // 26 - 1) if place >= 26 else "") + chr(ord("A") + place % 26)


def _last(name: str) -> str:
    """The part of a flat name that people say: lr of optimizer.lr, of --lr and of -o scheduler.lr."""
    return name.rpartition(" ")[2].lstrip("-").rpartition(".")[2]


def _said(whole: str, name: str, value: str | None) -> str:
    if value is None:
        return tr("without {name}", name=short(name))
    if whole in _NOUNS and value.isdecimal():
        return count(int(value), _NOUNS[whole])
    if whole in (plans.TARGET, plans.CONFIG):
        return short(value, _LONGEST)
    return f"{short(name)} {short(value, _LONGEST)}".rstrip()
