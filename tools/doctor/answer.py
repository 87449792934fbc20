"""Turns the answer of a program into text for the page."""

from __future__ import annotations

from hccl_tools.common.language import tr
from hccl_tools.common.words import one_line
from hccl_tools.machine.programs import Ended

TIMED_OUT, NOT_FOUND = 124, 127  # as Ended has them


def first_line(ended: Ended) -> str:
    """The first line that the program wrote, on stdout or else stderr; "" if it wrote nothing."""
    text = ended.stdout.strip() or ended.stderr.strip()
    return one_line(text.splitlines()[0].strip()) if text else ""


def failure(ended: Ended) -> str:
    """Why there is no good answer."""
    if ended.status in (TIMED_OUT, NOT_FOUND):
        return str(ended.stderr)
    text = ended.stderr.strip() or ended.stdout.strip()
    last = one_line(text.splitlines()[-1].strip()) if text else tr("it wrote nothing")
    return tr("{last} (exit {status})", last=last, status=ended.status)
