"""The form of a row in the catalogue: a fact, and the rule that compares its values across hosts."""

from __future__ import annotations

from hccl_tools.common.language import marked
from hccl_tools.common.record import Record
from hccl_tools.common.record import Row as Rule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

MIB, GIB = 1 << 20, 1 << 30
END_HOLDER = marked("wait for it, or end it there if it is left over from a job of yours: kill PID")


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
