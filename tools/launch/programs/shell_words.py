"""Splits a text into words as a shell does; nothing in them is expanded, and nothing runs."""

from __future__ import annotations

import re

from hccl_tools.common.language import tr
from hccl_tools.common.refusal import USAGE, Refusal, misused
from hccl_tools.common.words import one_line


def split(text: str, what: str) -> list[str]:
    """The words of the text, which is `what` for messages; at least one.  Raises Refusal."""
    import shlex  # few launches need it

    lines_joined = re.sub(r"\\(.)", lambda pair: "" if pair[1] == "\n" else pair[0], text, flags=re.DOTALL)
    try:
        words = shlex.split(lines_joined)
    except ValueError as error:
        reason = tr("a quote is not closed") if "quot" in str(error) else tr("nothing follows its last backslash")
        raise Refusal(USAGE, f"{what}: {reason}: {one_line(text)}") from error
    if not words:
        raise misused("{what} has no word in it", what=what)
    return words
