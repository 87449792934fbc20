"""Draws the recorded report of the failing launch in README.md, in the colours of a terminal."""

from __future__ import annotations

import re
from pathlib import Path
from xml.sax.saxutils import escape

from hccl_tools.common import colours, project
from tools.pages import svg

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_COLUMNS, _LINE = 118, 20
_CHARACTER = 7.25  # width of one of the fixed-width font
_INK, _PAPER = "#e6edf3", "#161b22"
_COLOURS = {"31": "#ff7b72", "32": "#3fb950", "33": "#d29922", "36": "#39c5cf"}  # by the number of the colour
_DOTS = ("#f85149", "#d29922", "#3fb950")
_ESCAPE = re.compile(r"\x1b\[([0-9;]*)m")
_STYLES = (  # of the text behind the name of the script, or of a line without one
    (re.compile(r"rank +device +exit "), colours.HEAD),
    (re.compile(r"\d+ +\d+ .*, failed first "), colours.FAILURE),
    (re.compile(r"rank \d+ \(.*\) (failed first: |exited with code )"), colours.FAILURE),
    (re.compile(r"    (cause|remedy|next): |note: "), colours.LABEL),
)
_NAMED = re.compile(r"(?:\w+\.sh|mslaunch): ")
_RECORDING = Path(project.path("docs", "recordings", "first_minutes_python3.13.txt"))
_COMMAND = r"(?m)^\$ mslaunch .*\n"  # and what it prints, to the next command
_PRINTED = r"(?:(?!\$ ).*\n)*"


def drawing(title: str) -> str:
    """The picture as SVG."""
    lines = [line if len(line) <= _COLUMNS else line[: _COLUMNS - 1] + "…" for line in recorded()]
    width, height = int(_COLUMNS * _CHARACTER) + 32, _LINE * len(lines) + 52
    parts = [f'<rect width="{width}" height="{height}" rx="8" fill="{_PAPER}"/>']
    parts += [f'<circle cx="{20 + 18 * dot}" cy="18" r="5.5" fill="{colour}"/>' for dot, colour in enumerate(_DOTS)]
    for number, line in enumerate(lines):
        place = f'<text xml:space="preserve" x="16" y="{50 + _LINE * number}" class="code"'
        parts.append(f'{place} style="fill: {_INK}">{"".join(_pieces(on_terminal(line)))}</text>')
    return svg.document(width, height, title, parts)


def recorded() -> list[str]:
    """The failing command and its output, from the recording that tests/project/first_minutes.py makes."""
    recording = _RECORDING.read_text(encoding="utf-8")
    found = re.search(f"{_COMMAND}{_PRINTED}?.*failed first.*\n{_PRINTED}", recording)
    assert found, f"{_RECORDING.name} has no rank that failed first"
    return [line for line in found[0].splitlines() if ": note: " not in line]


def on_terminal(line: str) -> str:
    """The line as a launch writes it to a terminal.  A test compares this with a launch."""
    name = _NAMED.match(line)
    begin = name.end() if name else 0
    style = next((style for form, style in _STYLES if form.match(line[begin:])), "")
    return line[:begin] + colours.shown(line[begin:], style)


def _pieces(line: str) -> Iterator[str]:
    """The line for an SVG; what has a style is a tspan."""
    texts = _ESCAPE.split(line)
    for text, codes in zip(texts[::2], ["", *texts[1::2]]):
        look = [f"fill: {_COLOURS[code]}" for code in codes.split(";") if code in _COLOURS]
        look += ["font-weight: bold"] * ("1" in codes.split(";"))
        if text:
            yield f'<tspan style="{";".join(look)}">{escape(text)}</tspan>' if look else escape(text)
