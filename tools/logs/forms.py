"""A form of lines that say something of a job: how to find them, and what they hold."""

from __future__ import annotations

import re

from hccl_tools.common.record import Row


class Form(Row):
    """A form of lines: texts of which one must be there, and the expression that takes the values."""

    kind: str
    texts: tuple[str, ...]
    pattern: re.Pattern[str]


def form(kind: str, texts: tuple[str, ...], pattern: str = "") -> Form:
    return Form(kind, texts, re.compile(pattern))
