"""Escapes text for HTML: text from logs and launch.json contains neither secrets nor markup afterwards."""

from __future__ import annotations

import html
import json
import re

from hccl_tools.common.language import tr
from hccl_tools.common.record import Record
from hccl_tools.common.words import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tools.diagnosis.bundle.masking import Masker

MOST_STEPS = 3  # that are not folded away
_QUOTED = re.compile(r'"([^"<>]{2,200})"')  # what a remedy has between quotes, a user types
_MOST_TEXT = 2000  # characters of one text


class Writer:
    """Writes texts of one run."""

    def __init__(self, masker: Masker) -> None:
        self._masker = masker
        self._known: dict[str, str] = {}

    def text(self, text: object) -> str:
        """One line of text, of bounded length."""
        return escaped(self.plain(text))

    def plain(self, text: object) -> str:
        """The same, not yet as HTML: for data() and for escaped()."""
        text = whole(str(text)[: 2 * _MOST_TEXT])
        if text not in self._known:
            line = one_line(self._masker.text(text))
            self._known[text] = line if len(line) <= _MOST_TEXT else line[:_MOST_TEXT] + "…"
        return self._known[text]

    def items(self, texts: Iterable[object]) -> str:
        """A list of texts; nothing without any."""
        items = "".join(f"<li>{self.text(text)}</li>" for text in texts)
        return f"<ul>{items}</ul>" if items else ""

    def lines(self, lines: Iterable[str]) -> str:
        """Several lines, masked together, because a secret may go over the end of one."""
        masked = self._masker.text(whole("\n".join(line[:_MOST_TEXT] for line in lines)))
        return "\n".join(escaped(one_line(line)) for line in masked.split("\n"))


def whole(text: str) -> str:
    """The text; half a character, which JSON may have and UTF-8 cannot write, becomes a mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


def escaped(text: str) -> str:
    """The text for HTML, also in quotes."""
    return html.escape(whole(text), quote=True)


def section(name: str, title: str, body: str) -> str:
    """A part of the page with a heading; nothing without a body.  The body is HTML."""
    return f'<section id="{name}">\n<h2>{escaped(title)}</h2>\n{body}\n</section>\n' if body else ""


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], cards: bool = False) -> str:
    """A table; the heads are text, the cells HTML.  cards: on a phone each row is a card, with the heads in it."""
    head = "".join(f'<th scope="col">{escaped(text)}</th>' for text in heads)
    labels = [f' data-label="{escaped(text)}"' if cards else "" for text in heads]
    body = "".join(
        "<tr>" + "".join(f"<td{label}>{cell}</td>" for label, cell in zip(labels, row)) + "</tr>\n" for row in rows
    )
    kind = ' class="cards"' if cards else ""
    return f'<div class="wide"><table{kind}>\n<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>\n'


def data(value: object) -> str:
    """JSON for a script element: nothing in it can end the element.  Raises ValueError for nan."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


# ---- What to do, as the steps below an answer: at most three of them, and the others folded away.


def to_do(steps: Sequence[str], writer: Writer, code: str = "") -> str:
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


# ---- Cells, each coloured by a state and with a mark, for a screen that has no colours; and the legend below them.


class States(Record):
    """The states that cells can show.

    words: {state: what it is called}, the most important first; a state is a class of style/hosts.css.
    marks: {state: what a cell has in it}: a colour alone says too little.
    """

    words: Mapping[str, str]
    marks: Mapping[str, str]

    def numbers(self, states: Iterable[str]) -> dict[str, int]:
        """The number of cells in each state, the most important one first."""
        found: dict[str, int] = {}
        for state in states:
            found[state] = found.get(state, 0) + 1
        return {state: found[state] for state in self.words if state in found}

    def cell(self, state: str, title: str, text: str = "") -> str:
        """A cell of the grid.  title: what a pointer shows, as HTML; text: what is in it before the mark, likewise."""
        return f'<i class="cell {state}" title="{title}">{text}{self.marks.get(state, "")}</i>'

    def spot(self, state: str) -> str:
        """A cell next to text with the same meaning."""
        return f'<i class="cell {state}" aria-hidden="true">{self.marks.get(state, "")}</i>'

    def legend(self, states: Iterable[str]) -> str:
        """The states that are there, what they mean, and how often."""
        items = [
            f"<span>{self.spot(state)}{escaped(self.words[state])}: {number}</span>"
            for state, number in self.numbers(states).items()
        ]
        return f'<div class="legend">{"".join(items)}</div>'


def of_cells(cells: Sequence[str], label: str) -> str:
    """Cells side by side.  label: what they are, for a screen reader."""
    return f'<div class="cells" role="img" aria-label="{escaped(label)}">{"".join(cells)}</div>'
