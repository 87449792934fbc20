"""Cells, each coloured by a state and with a mark, for a screen that has no colours; and the legend below them."""

from __future__ import annotations

from hccl_tools.common.record import Record
from tools.run_page.markup import escaped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class States(Record):
    """What cells can show.

    words: {state: what it is called}, the most important first; a state is a class of style/hosts.css.
    marks: {state: what a cell has in it}: a colour alone says too little.
    """

    words: Mapping[str, str]
    marks: Mapping[str, str]

    def numbers(self, states: Iterable[str]) -> dict[str, int]:
        """How many there are of each state, the most important one first."""
        found: dict[str, int] = {}
        for state in states:
            found[state] = found.get(state, 0) + 1
        return {state: found[state] for state in self.words if state in found}

    def cell(self, state: str, title: str, text: str = "") -> str:
        """A cell of the grid.  title: what a pointer shows, as HTML; text: what is in it before the mark, likewise."""
        return f'<i class="cell {state}" title="{title}">{text}{self.marks.get(state, "")}</i>'

    def spot(self, state: str) -> str:
        """A cell beside words, which say the same."""
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
