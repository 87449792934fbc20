"""Draws a job on a terminal: the frames of the live screen, with rich."""

from __future__ import annotations

import os

from rich.cells import cell_len
from rich.text import Text

from hccl_tools.common.colours import cut
from hccl_tools.common.language import tr
from hccl_tools.common.words import one_line
from hccl_tools.machine import interpreter
from tools.live import panels, sentences, table
from tools.live.estimate import estimate
from tools.live.watcher import DRIFTS, FAILED, HELD, NO_LOG, NOT_FINITE, OVER, SILENT, SLOW
from tools.progress.figures import bar
from tools.progress.figures import curve as small_curve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from tools.live.table import Line
    from tools.live.watcher import View

interpreter.new_enough("rich")

_STYLES = {
    FAILED: "bold red",
    HELD: "yellow",
    NOT_FINITE: "bold red",
    SLOW: "yellow",
    SILENT: "yellow",
    DRIFTS: "yellow",
    NO_LOG: "dim",
    OVER: "dim",
}
_BAR = 40  # columns at most
_LINES_A_PROBLEM = 6  # of the screen: so many more lines give one more line to problems
_LEAST_TROUBLE, _MOST_TROUBLE = 3, 10  # lines
_MESSAGES = 4  # lines at most
_KEYS = "q {quit}  p {problems}  ↑↓ {choose}  Enter {log}"


class Picture:
    """The view that the person has selected."""

    def __init__(self) -> None:
        self.only_problems = False
        self.chosen = 0  # index of the line
        self.lines: list[Line] = []  # as they were shown last

    def choose(self, by: int) -> None:
        """Selects another line."""
        self.chosen = min(max(0, self.chosen + by), max(0, len(self.lines) - 1))

    @property
    def rank(self) -> int | None:
        """The rank of the chosen line; None where it is of several."""
        return self.lines[self.chosen].rank if self.chosen < len(self.lines) else None


def frame(view: View, picture: Picture, console: Console, messages: Sequence[str] = ()) -> list[Text]:
    """The lines of the screen, which fit on the console; messages: of the launcher, the newest last."""
    width, height = console.size
    rows = view.problems if picture.only_problems else view.rows
    below = [Text(one_line(line)) for line in messages[-_MESSAGES:]]
    rest = height - 3 - len(below)  # an empty line, the names of the columns, the keys
    top = header(view, console)
    picture.lines = table.body(rows, max(0, rest - len(top)))
    if view.points and rest - len(top) - len(picture.lines) >= panels.LEAST:
        top = header(view, console, curve=False)  # it is drawn below
    picture.choose(0)
    found = [*top, Text(""), *_rows(picture, width)]
    if not picture.lines and picture.only_problems:
        found.append(Text(tr("no rank has a problem"), style="green"))
    found += panels.below(view, picture.rank, width, height - len(found) - len(below) - 1)
    found += [Text("")] * (height - len(found) - len(below) - 1)
    found = [*found[: max(0, height - len(below) - 1)], *below]
    return [_cut(line, width) for line in [*found[: height - 1], keys(picture)]][:height]


def _rows(picture: Picture, width: int) -> list[Text]:
    """The table; the chosen line is reversed, and old numbers are grey."""
    shown = table.fitting(picture.lines, width)
    found = [Text(table.head(shown), style="bold")]
    for number, line in enumerate(picture.lines):
        found.append(_row(line, shown))
        if number == picture.chosen:
            found[-1].stylize("reverse")
    return found


def _row(line: Line, shown: Sequence[int]) -> Text:
    text = table.text(line, shown)
    fresh = table.fresh(line, shown)
    row = Text(text[:fresh], style=_STYLES.get(line.state, ""))
    found = Text().append_text(row)
    return found.append(text[fresh:], style="dim")


def header(view: View, console: Console, curve: bool = True) -> list[Text]:
    """The job, how far it is, its numbers, and what is wrong; curve: with a small one of the loss."""
    width, height = console.size
    share = estimate(view).share
    found = [Text(sentences.title(view), style="bold"), Text(sentences.where(view))]
    if drawn := bar(share, min(_BAR, width)):
        found.append(Text(drawn, style="cyan"))
    numbers = Text(sentences.numbers(view))
    losses = view.lead.losses if view.lead and curve else ()
    if drawn := small_curve(losses, min(_BAR, width - cell_len(numbers.plain) - 2)):
        numbers.append(f"  {drawn}", style="cyan")
    if numbers.plain:
        found.append(numbers)
    room = min(_MOST_TROUBLE, max(_LEAST_TROUBLE, height // _LINES_A_PROBLEM))
    found += [Text(line.plain, style="bold yellow") for line in _trouble(view, console, width, room)]
    if clocks := sentences.clocks(view):
        found.append(Text(clocks, style="yellow"))
    return found


def _trouble(view: View, console: Console, width: int, room: int) -> list[Text]:
    """The problems in at most `room` lines; where that is too little, the last lines name all of their ranks."""
    every = [Text(sentence).wrap(console, max(1, width)) for sentence in sentences.troubles(view)]
    if sum(map(len, every)) <= room:
        return [line for lines in every for line in lines]
    short = Text(sentences.in_short(view)).wrap(console, max(1, width))
    found: list[Text] = []
    for lines in every:
        if len(found) + len(lines) > max(1, room - len(short)):
            break
        found += lines
    left = max(1, room - len(found))
    if len(short) > left:
        short[left - 1] = Text(cut(short[left - 1].plain.rstrip() + " " * width, width))  # it ends with an ellipsis
    return [*found, *short[:left]][:room]


def keys(picture: Picture) -> Text:
    """The help text for the keys."""
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
        line = line.copy()
        line.truncate(max(0, width), overflow="crop")
    return line


def summary(view: View, console: Console, most: int) -> list[Text]:
    """The lines that remain on the terminal: the job and its ranks, at most `most` lines of them."""
    lines = table.body(view.rows, most)
    shown = table.fitting(lines, console.size[0])
    rows = [_row(line, shown) for line in lines]
    return [*header(view, console), Text(table.head(shown), style="bold"), *rows]
