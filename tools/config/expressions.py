"""Compiles regular expressions from YAML files that are not trusted."""

from __future__ import annotations

import re

from hccl_tools.common.language import tr
from hccl_tools.common.words import short


def compiled(pattern: str, shown: str, flags: int = 0) -> re.Pattern[str] | str:
    """The expression; a text states what is wrong with it, by the name `shown`."""
    try:
        expression = re.compile(pattern, flags)
        matches_nothing = expression.match("")
    except (re.error, OverflowError, RecursionError) as error:
        return tr("{pattern} is not a regular expression: {error}", pattern=short(shown), error=error)
    if matches_nothing:
        return tr("{pattern} matches every line, also an empty one", pattern=short(shown))
    return expression
