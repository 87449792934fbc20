"""What distinguishes runs: the names whose values differ, and a short label of each run made from them."""

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
_LONGEST_LABEL = 36  # characters of what is different; the first one may be longer
_NOUNS = {plans.RANKS: "rank", plans.HOSTS: "host"}
_ALONE = ("--config", plans.TARGET)  # their values need no name
# What a reader asks first; then the names of configs that most say what was tried.
_FIRST = ("--config", plans.TARGET, plans.RANKS, plans.HOSTS)
_TELLING = ("model", "network", "lr", "learning_rate", "batch_size", "opt", "optimizer", "num_epochs", "epochs", "seed")
_NO_NAME = ("name", "type")  # say less than the name before them


class Unlike(Record):
    """A name whose values are not the same in all runs."""

    name: str
    values: tuple[str | None, ...]  # of each run; None: it does not have the name
    also: tuple[str, ...]  # other names that have just these values


class Label(Record):
    """The name of a run on the page."""

    letter: str
    what: str  # what it has that others have not; may be empty

    @property
    def text(self) -> str:
        """Such as ``B: lr 0.2``."""
        return f"{self.letter}: {self.what}" if self.what else self.letter


def of(flat: Sequence[dict[str, str]]) -> list[Unlike]:
    """The names whose values differ; flat: {name: value} of each run."""
    columns: dict[tuple[str | None, ...], list[str]] = {}
    for name in dict.fromkeys(name for each in flat for name in each):
        values = tuple(each.get(name) for each in flat)
        if len(set(values)) > 1:
            columns.setdefault(values, []).append(name)
    rows = [Unlike(name=names[0], values=values, also=tuple(names[1:])) for values, names in columns.items()]
    return rows[:MOST]


def labels(number: int, rows: Sequence[Unlike], started: Sequence[str | None]) -> list[Label]:
    """The labels of the runs, each with another letter.

    Names with another value in every run are in all labels; without one, the name with the most values.  Another name
    is only in the labels of the runs where it is not as usual.  started: when each run started, which is all that tells
    apart runs without a difference.
    """
    ordered = sorted(_once(rows), key=_weight)
    first = max(ordered, key=lambda row: len(set(row.values)), default=None)
    last = Counter(_last(row.name) for row in ordered)
    found: list[list[str]] = [[] for _ in range(number)]
    for row in [first, *(row for row in ordered if row is not first)] if first else []:
        usual = Counter(row.values).most_common(1)[0][0]
        everywhere = row is first or len(set(row.values)) == number
        name = row.name if last[_last(row.name)] > 1 else _last(row.name)
        texts = [_said(row.name, name, value) if everywhere or value != usual else "" for value in row.values]
        if all(_has_room(parts, text) for parts, text in zip(found, texts)):
            for parts, text in zip(found, texts):
                parts += [text] if text else []
    if not rows and len(set(started)) > 1:
        found = [[tr("started {time}", time=short(moment or "?"))] for moment in started]
    return [Label(letter=letter(place), what=listed(parts)) for place, parts in enumerate(found)]


def _once(rows: Sequence[Unlike]) -> list[Unlike]:
    """By the name that tells the most, without those that state again what another one states."""
    best = [row.replace(name=min((row.name, *row.also), key=_weight)) for row in rows]
    return list({(_last(row.name), row.values): row for row in sorted(best, key=_weight, reverse=True)}.values())


def _weight(one: Unlike | str) -> int:
    """How much a name tells a reader of the run: the lower the more."""
    name = one if isinstance(one, str) else one.name
    if name in _FIRST:
        return _FIRST.index(name)
    last = _last(name)
    return len(_FIRST) + (_TELLING.index(last) if last in _TELLING else len(_TELLING))


def _has_room(parts: list[str], text: str) -> bool:
    return not text or not parts or (len(parts) < _IN_LABEL and len(listed([*parts, text])) <= _LONGEST_LABEL)


def letter(place: int) -> str:
    """A to Z, then AA, AB and so on."""
    return (letter(place // 26 - 1) if place >= 26 else "") + chr(ord("A") + place % 26)


def _last(name: str) -> str:
    """The part of a flat name that people say: lr of optimizer.lr, --lr and -o scheduler.lr; model of model.name."""
    parts = name.rpartition(" ")[2].lstrip("-").split(".")
    return parts[-2] if len(parts) > 1 and parts[-1] in _NO_NAME else parts[-1]


def _said(whole: str, name: str, value: str | None) -> str:
    if value is None:
        return tr("without {name}", name=short(name))
    if whole in _NOUNS and value.isdecimal():
        return count(int(value), _NOUNS[whole])
    if whole in _ALONE:
        return short(value, _LONGEST)
    return f"{short(name)} {short(value, _LONGEST)}".rstrip()
