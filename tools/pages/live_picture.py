"""Draws tools/watch.py's live screen for the README: the example run after a while, before its end."""

from __future__ import annotations

import io
import json
import os
import tempfile
import time
from contextlib import contextmanager
from xml.sax.saxutils import escape

from rich.console import Console

from tools.live import screen
from tools.live.job import Reader
from tools.live.watcher import Watcher
from tools.pages import example_run, svg

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.segment import Segment

    from tools.live.watcher import View

_COLUMNS, _LINES = 116, 36
_CHARACTER, _LINE = 7.25, 19
_STARTED = 1769860800.0  # seconds since 1970: the start of the example
_SILENT, _QUIET = 1, 41.0  # a rank that writes nothing any more, and for how many seconds
_COLOURS = {"yellow": "#d29922", "cyan": "#39c5cf", "red": "#ff7b72", "green": "#3fb950"}
_INK, _PAPER, _DIM = "#e6edf3", "#161b22", "#9198a1"


def drawing(title: str) -> str:
    """The screen as SVG."""
    console = Console(
        width=_COLUMNS, height=_LINES, force_terminal=True, color_system="standard", highlight=False, file=io.StringIO()
    )
    with _utc(), tempfile.TemporaryDirectory() as above:
        lines = screen.frame(watched(above), screen.Picture(), console)
    width, height = int(_COLUMNS * _CHARACTER) + 32, _LINE * len(lines) + 28
    parts = [f'<rect width="{width}" height="{height}" rx="8" fill="{_PAPER}"/>']
    for number, line in enumerate(lines):
        parts += _pieces(console.render(line, console.options.update(no_wrap=True)), 30 + _LINE * number)
    return svg.document(width, height, title, parts)


@contextmanager
def _utc() -> Iterator[None]:
    """The time of day in the picture is the same wherever it is drawn."""
    before = dict(os.environ)
    os.environ.update(TZ="UTC")
    time.tzset()
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
        time.tzset()


def watched(above: str) -> View:
    """The job at the second of two looks; `above`: a folder for the example.  Raises OSError."""
    folder = example_run.make(above)
    os.rename(os.path.join(folder, "restart_1"), os.path.join(above, "later"))
    path = os.path.join(folder, "launch.json")
    with open(path, encoding="utf-8") as file:
        launch = json.load(file)
    with open(path, "w", encoding="utf-8") as file:
        json.dump({name: value for name, value in launch.items() if name != "outcome"}, file)
    later = {}
    for rank in range(len(launch["ranks"])):
        log = os.path.join(folder, f"rank_{rank}.log")
        with open(log, encoding="utf-8") as file:
            lines = [line for line in file.readlines() if " - " in line]  # without the end of one that fails
        later[log] = "".join(lines[len(lines) // 2 :])
        with open(log, "w", encoding="utf-8") as file:
            file.writelines(lines[: len(lines) // 2])
        os.utime(log, (_STARTED + 31, _STARTED + 31))
    watcher = Watcher(Reader(folder))
    watcher.keep_curve()
    watcher.look(0.0, _STARTED + 31)
    for rank, (log, text) in enumerate(later.items()):
        if rank != _SILENT:
            with open(log, "a", encoding="utf-8") as file:
                file.write(text)
            os.utime(log, (_STARTED + 31 + _QUIET, _STARTED + 31 + _QUIET))
    return watcher.look(_QUIET, _STARTED + 31 + _QUIET)


def _pieces(segments: Iterable[Segment], y: float) -> list[str]:
    """The text of one line, each piece at its column: fonts are not all as wide as ours."""
    parts, column = [], 0
    for segment in segments:
        text, style = segment.text.rstrip("\n"), segment.style
        x = 16 + column * _CHARACTER
        column += len(text)
        if not text.strip():
            continue
        colour = _COLOURS.get(style.color.name if style and style.color else "", _INK)
        if style and style.dim:
            colour = _DIM
        if style and style.reverse:
            place = f'x="{x - 2:g}" y="{y - 13.5:g}" width="{len(text) * _CHARACTER + 4:g}" height="{_LINE - 1}"'
            parts.append(f'<rect {place} fill="{colour}"/>')
            colour = _PAPER
        weight = "; font-weight: bold" if style and style.bold else ""
        place = f'xml:space="preserve" x="{x:g}" y="{y:g}" textLength="{len(text) * _CHARACTER:g}" class="code"'
        parts.append(f'<text {place} style="fill: {colour}{weight}">{escape(text)}</text>')
    return parts
