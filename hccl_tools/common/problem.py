"""A problem that a check finds: what is wrong, where, and how to correct it."""

from __future__ import annotations

from collections.abc import Iterable

from hccl_tools.common.language import tr
from hccl_tools.common.record import Row
from hccl_tools.common.words import one_line, short

ERROR, WARNING = "error", "warning"
_MOST_TEXT = 600  # characters of a text, of a remedy and of a pointer: each quotes values of the file


class Problem(Row):
    """One finding, as data; only commands print.

    code:     stable name of the rule, such as ``rank-gap``.
    pointer:  JSON pointer (RFC 6901) to the place in the document; ``""`` is the document itself.
    text:     what is wrong, with the value found.
    remedy:   what to do, as one clause without a full stop.
    severity: ERROR, or WARNING: a table that has only warnings is good.
    row, column: the place in the file, from 1, where they are known.
    """

    code: str
    pointer: str
    text: str
    remedy: str
    severity: str = ERROR
    row: int | None = None
    column: int | None = None

    def line(self, where: str) -> str:
        """The problem as one line; `where` is the file.  Without a pointer, the text itself names the place."""
        place, kind, rest = self.parts(where)
        return f"{place}: {kind}{rest}"

    def parts(self, where: str) -> tuple[str, str, str]:
        """The line in three parts: the place; "warning: ", or nothing; and what is wrong."""
        row = "" if self.row is None else f":{self.row}"
        # A pointer holds keys of the document, so it needs `short` as much as the text does.
        text, remedy, pointer = (short(part, _MOST_TEXT) for part in (self.text, self.remedy, self.pointer))
        place = f"{where}{row}: {pointer}" if pointer else where
        kind = tr("warning: ") if self.severity == WARNING else ""
        return one_line(place), kind, f"{text}{tr('; ')}{remedy} [{self.code}]"


def errors(problems: Iterable[Problem]) -> list[Problem]:
    """The `problems` that make a table bad."""
    return [problem for problem in problems if problem.severity == ERROR]


def pointer(*keys: object) -> str:
    """JSON pointer to the value under `keys`: ``pointer("a", 0)`` is ``/a/0``."""
    return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in keys)
