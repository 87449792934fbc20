"""The form of a row in the catalogue: a fact, and the rule that compares its values across hosts."""

from __future__ import annotations

from hccl_tools.common.language import marked, tr
from hccl_tools.common.record import Record
from hccl_tools.common.record import Row as Rule
from hccl_tools.common.words import short_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tools.preflight.difference import Value

MIB, GIB = 1 << 20, 1 << 30
END_HOLDER = marked("wait for it, or end it there if it is left over from a job of yours: kill PID")
_MOST_ENTRIES = 8  # of a list
_ROOM = 400  # characters of a list


class Equal(Rule):
    """Every host has the same value; numbers from `enough` on, and no limit at all, count as the same."""

    enough: int | None = None


class Near(Rule):
    """No value is further from the middle one than by this part of it."""

    part: float


class Least(Rule):
    """Each host has at least this much; None: no limit."""

    least: int


class Shared(Rule):
    """If most hosts have one and the same value, all have it; hosts that have a value each are as usual."""


class Yes(Rule):
    """Each host answers yes."""


class Nothing(Rule):
    """Each host has an empty list, or no text."""


class Row(Record):
    """A fact.

    key:       its name; that of a family, such as ``package:``, is the start of the names.
    collector: who finds it, see probe.py.  of a family: a host without the fact has None, if the collector answered.
    text:      what a host has, with {value}, and {name} of a family.  without: the same where the value is None.
    one:       the same where the value is 1 and the text has a noun in it.
    level:     of a difference; lacking: of one that is only that some hosts have none.
    unit:      bytes, or Mb/s, or nothing.
    """

    key: str
    collector: str
    rule: object
    level: str
    text: str
    without: str = ""
    one: str = ""
    remedy: str = ""
    lacking: str = ""
    unit: str = ""

    @property
    def is_family(self) -> bool:
        """Whether there are several such facts, each with a name."""
        return self.key.endswith(":")

    def phrase(self, key: str, value: Value) -> str:
        """What a host has: "MindSpore 2.3.0"; key: the name of the fact, which in a family is that of something."""
        name = short_path(key.partition(":")[2]) if key.startswith("file:") else key.partition(":")[2]
        if value is None and self.without:
            return tr(self.without, name=name) if self.is_family else tr(self.without)
        return tr(self._words(value), value=self.shown(value), name=name)

    def between(self, least: Value, most: Value) -> str:
        """The same of several hosts, whose values are from `least` to `most`."""
        low, high = self.shown(least), self.shown(most)
        if low == high:
            return tr(self._words(least), value=low)
        return tr(self.text, value=tr("{low} to {high}", low=low, high=high))

    def _words(self, value: Value) -> str:
        return self.one if self.one and value == 1 else self.text

    def shown(self, value: Value) -> str:
        """The value alone."""
        if isinstance(value, bool):
            return tr("yes") if value else tr("no")
        if value is None:
            return tr("none")
        if self.unit == "bytes" and isinstance(value, (int, float)):
            return _size(value)
        if isinstance(value, float):
            return f"{value:g}"
        if isinstance(value, (str, int)):
            return f"{value} {self.unit}" if self.unit else str(value)
        shown = ", ".join(list(value)[:_MOST_ENTRIES])[:_ROOM]
        more = len(value) - _MOST_ENTRIES
        return tr("{names} and {number} more", names=shown, number=more) if more > 0 else shown


def _size(number: float) -> str:
    if number >= GIB:
        return f"{number / GIB:.1f} GiB"
    return f"{number / MIB:.1f} MiB" if number >= MIB else f"{number / 1024:.0f} KiB"


class Fact(Rule):
    """The first four fields of a row."""

    key: str
    collector: str
    rule: object
    level: str

    def says(self, text: str, **fields: str) -> Row:
        """The row, with the text for a host, and the other fields."""
        return Row(key=self.key, collector=self.collector, rule=self.rule, level=self.level, text=text, **fields)


def graded(levels: Mapping[str, int], **fields: Any) -> tuple[Row, ...]:
    """A row for each level: the least that a host must have, so that there is no difference of it."""
    return tuple(Row(rule=Least(least), level=level, **fields) for level, least in levels.items())
