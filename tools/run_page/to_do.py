"""What to do, as the steps below an answer: at most three of them, and the others folded away."""

from __future__ import annotations

import re

from hccl_tools.common.language import tr
from tools.run_page.markup import escaped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tools.run_page.markup import Writer

MOST_STEPS = 3  # that are not folded away
_QUOTED = re.compile(r'"([^"<>]{2,200})"')  # what a remedy has between quotes, a user types


def html_of(steps: Sequence[str], writer: Writer, code: str = "") -> str:
    """The steps with their heading; nothing without one.  code: HTML below them."""
    todo = [step_html(text, writer) for text in steps]
    if not todo:
        return ""
    more = ""
    if len(todo) > MOST_STEPS:
        title = tr("{number} more", number=len(todo) - MOST_STEPS)
        rest = _items(todo[MOST_STEPS:], MOST_STEPS + 1)
        more = f"<details><summary>{escaped(title)}</summary>{rest}</details>"
    return f'<div class="todo"><h2>{escaped(tr("What to do"))}</h2>{_items(todo[:MOST_STEPS], 1)}{more}{code}</div>'


def _items(todo: Iterable[str], first: int) -> str:
    return f'<ol start="{first}">' + "".join(f"<li>{step}</li>" for step in todo) + "</ol>"


def capital(text: str) -> str:
    """The text as a sentence of its own begins."""
    return text[:1].upper() + text[1:]


def step_html(text: str, writer: Writer) -> str:
    """A step as a sentence of its own; one click chooses what the user types."""
    shown = writer.text(capital(text)).replace("&quot;", '"')
    return _QUOTED.sub(r'<code class="type">\1</code>', shown)
