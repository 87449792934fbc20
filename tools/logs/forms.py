"""The form of a line that reports something about a job: how to find it, and which fields it has."""

from __future__ import annotations

import re
from functools import cached_property

from hccl_tools.common.record import Record


class Form(Record):
    """A form of lines: texts, one of which must occur, and the expression that takes the values."""

    kind: str
    texts: tuple[str, ...]
    source: str

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The expression, which is compiled for the first line that has a text: most never are."""
        return re.compile(self.source)


def form(kind: str, texts: tuple[str, ...], source: str = "") -> Form:
    return Form(kind=kind, texts=texts, source=source)
