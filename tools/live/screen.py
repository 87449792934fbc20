"""A job on a terminal: the frames of the live screen, by rich."""

from __future__ import annotations

import os

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from hccl_tools.common.language import tr
from hccl_tools.common.words import one_line
from hccl_tools.machine import interpreter
from tools.live import sentences, table
from tools.live.estimate import estimate
from tools.live.watcher import DRIFTS, FAILED, NO_LOG, NOT_FINITE, OVER, SILENT, SLOW
from tools.progress.figures import bar, curve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from tools.live.table import Line
    from tools.live.watcher import View

interpreter.new_enough("rich")

_STYLES = {
    FAILED: "bold red",
    NOT_FINITE: "bold red",
    SLOW: "yellow",
    SILENT: "yellow",
    DRIFTS: "yellow",
    NO_LOG: "dim",
    OVER: "dim",
}
_BAR = 40  # columns at most
_TROUBLE = 3  # lines at most
_MESSAGES = 4  # lines at most
_KEYS = "q {quit}  p {problems}  ↑↓ {choose}  Enter {log}"


class Picture:
    """What the person has chosen to see."""

    def __init__(self) -> None:
        self.only_problems = False
        self.chosen = 0  # index of the line
        self.lines: list[Line] = []  # as they were shown last

    def choose(self, by: int) -> None:
        """Moves to another line."""
        self.chosen = min(max(0, self.chosen + by), max(0, len(self.lines) - 1))

    @property
    def rank(self) -> int | None:
        """The rank of the chosen line; None where it is of several."""
        return self.lines[self.chosen].rank if self.chosen < len(self.lines) else None


def frame(view: View, picture: Picture, console: Console, messages: Sequence[str] = ()) -> list[Text]:
    """The lines of the screen, which fit on the console; messages: of the launcher, the newest last."""
    width, height = console.size
    top = header(view, console)
    rows = view.problems if picture.only_problems else view.rows
    below = [Text(one_line(line)) for line in messages[-_MESSAGES:]]
    room = height - len(top) - 3 - len(below)  # an empty line, the names of the columns, the keys
    picture.lines = table.body(rows, max(0, room))
    picture.choose(0)
    shown = table.fitting(picture.lines, width)
    found = [*top, Text(""), Text(table.head(shown), style="bold")]
    for number, line in enumerate(picture.lines):
        style = _STYLES.get(line.state, "")
        found.append(Text(table.text(line, shown), style=f"{style} reverse" if number == picture.chosen else style))
    if not picture.lines and picture.only_problems:
        found.append(Text(tr("no rank has a problem"), style="green"))
    found += [Text("")] * (height - len(found) - len(below) - 1)
    found = [*found[: max(0, height - len(below) - 1)], *below]
    return [_cut(line, width) for line in [*found[: height - 1], keys(picture)]][:height]


def header(view: View, console: Console) -> list[Text]:
    """The job, how far it is, its numbers, and what is wrong."""
    width = console.size[0]
    share, _ = estimate(view)
    found = [Text(sentences.title(view), style="bold"), Text(sentences.where(view))]
    if drawn := bar(share, min(_BAR, width)):
        found.append(Text(drawn, style="cyan"))
    numbers = Text(sentences.numbers(view))
    losses = view.lead.losses if view.lead else ()
    if drawn := curve(losses, min(_BAR, width - cell_len(numbers.plain) - 2)):
        numbers.append(f"  {drawn}", style="cyan")
    if numbers.plain:
        found.append(numbers)
    if trouble := sentences.trouble(view):
        found += Text(trouble, style="bold yellow").wrap(console, max(1, width))[:_TROUBLE]
    if clocks := sentences.clocks(view):
        found.append(Text(clocks, style="yellow"))
    return found


def keys(picture: Picture) -> Text:
    """What the keys do."""
    problems = tr("all ranks") if picture.only_problems else tr("only problems")
    words = _KEYS.format(quit=tr("quit"), problems=problems, choose=tr("choose"), log=tr("log of the rank"))
    return Text(words, style="dim")


def log_frame(path: str, lines: Sequence[str], width: int, height: int) -> list[Text]:
    """The last lines of a rank's log; its name comes before its folder, which may be long."""
    room = max(0, height - 2)
    shown = [one_line(line) for line in lines[max(0, len(lines) - room) :]]
    found = [Text(one_line(f"{os.path.basename(path)}  {os.path.dirname(path)}"), style="bold"), *map(Text, shown)]
    found += [Text("")] * (height - len(found) - 1)
    back = Text(tr("Esc back  q quit"), style="dim")
    return [_cut(line, width) for line in [*found[: height - 1], back]][:height]


def _cut(line: Text, width: int) -> Text:
    if cell_len(line.plain) > width:
        line = Text(set_cell_size(line.plain, max(0, width)), style=line.style)
    return line


def summary(view: View, console: Console, most: int) -> list[Text]:
    """What stays on the terminal: the job and its ranks, at most `most` lines of them."""
    lines = table.body(view.rows, most)
    shown = table.fitting(lines, console.size[0])
    rows = [Text(table.text(line, shown), style=_STYLES.get(line.state, "")) for line in lines]
    return [*header(view, console), Text(table.head(shown), style="bold"), *rows]
