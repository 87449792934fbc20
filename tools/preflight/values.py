"""Formats the value of a fact for people."""

from __future__ import annotations

from hccl_tools.common.language import tr
from hccl_tools.common.words import short_path
from tools.preflight.catalog.row import GIB, MIB, Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.preflight.difference import Value

_MOST_ENTRIES = 8  # of a list
_ROOM = 400  # characters of a list


def phrase(row: Row, key: str, value: Value) -> str:
    """What a host has: "MindSpore 2.3.0"; key: the name of the fact, which in a family is that of something."""
    name = short_path(key.partition(":")[2]) if key.startswith("file:") else key.partition(":")[2]
    if value is None and row.without:
        return tr(row.without, name=name) if row.is_family else tr(row.without)
    return tr(_words(row, value), value=text(row, value), name=name)


def between(row: Row, least: Value, most: Value) -> str:
    """The same of several hosts, whose values are from `least` to `most`."""
    low, high = text(row, least), text(row, most)
    if low == high:
        return tr(_words(row, least), value=low)
    return tr(row.text, value=tr("{low} to {high}", low=low, high=high))


def _words(row: Row, value: Value) -> str:
    return row.one if row.one and value == 1 else row.text


def text(row: Row, value: Value) -> str:
    """The value alone."""
    if isinstance(value, bool):
        return tr("yes") if value else tr("no")
    if value is None:
        return tr("none")
    if row.unit == "bytes" and isinstance(value, (int, float)):
        return _size(value)
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, (str, int)):
        return f"{value} {row.unit}" if row.unit else str(value)
    shown = ", ".join(list(value)[:_MOST_ENTRIES])[:_ROOM]
    more = len(value) - _MOST_ENTRIES
    return tr("{names} and {number} more", names=shown, number=more) if more > 0 else shown


def _size(number: float) -> str:
    if number >= GIB:
        return f"{number / GIB:.1f} GiB"
    return f"{number / MIB:.1f} MiB" if number >= MIB else f"{number / 1024:.0f} KiB"
