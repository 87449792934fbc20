"""Pieces of the drawings in docs/pictures: boxes, arrows and text, in the reader's light or dark colours."""

from __future__ import annotations

from xml.sax.saxutils import escape

LINE = 19  # from one line of text to the next, in SVG's user units

_STYLE = """\
    text { font: 13px system-ui, "Segoe UI", Roboto, "Noto Sans", "Noto Sans CJK SC", sans-serif; fill: #1f2328; }
    .name { font-weight: 600; }
    .small { font-size: 12px; fill: #59636e; }
    .code { font: 12px "DejaVu Sans Mono", Menlo, Consolas, monospace; white-space: pre; fill: #1f2328; }
    .middle { text-anchor: middle; }
    .box { fill: #f6f8fa; stroke: #59636e; }
    .rank { fill: #ddf4ff; stroke: #0969da; }
    .stop { fill: #ffebe9; stroke: #cf222e; }
    .all { fill: none; stroke: #59636e; stroke-dasharray: 5 4; }
    .arrow { fill: none; stroke: #59636e; stroke-width: 1.4; marker-end: url(#tip); }
    #tip path { fill: #59636e; }
    @media (prefers-color-scheme: dark) {
      text, .code { fill: #e6edf3; } .small { fill: #9198a1; }
      .box { fill: #161b22; stroke: #9198a1; } .rank { fill: #121d2f; stroke: #4493f8; }
      .stop { fill: #3c1618; stroke: #f85149; } .all, .arrow { stroke: #9198a1; } #tip path { fill: #9198a1; }
    }"""


def document(width: int, height: int, title: str, parts: list[str]) -> str:
    """The whole SVG; `title` is what a screen reader reads."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    tip = '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    return "\n".join(
        [
            f'{head} role="img" aria-labelledby="t">',
            f'  <title id="t">{escape(title)}</title>',
            f"  <style>\n{_STYLE}\n  </style>",
            f'  <defs>{tip}<path d="M0 0 L8 4 L0 8 z"/></marker></defs>',
            *("  " + part for part in parts),
            "</svg>\n",
        ]
    )


def text(x: float, y: float, words: str, kind: str = "") -> str:
    """One line of text whose base line is at `y`."""
    return f'<text x="{x:g}" y="{y:g}" class="{kind}">{escape(words)}</text>'


def box(
    x: float, y: float, width: float, height: float, lines: list[str], kind: str = "box", named: bool = True
) -> list[str]:
    """A box with lines in its middle; the first of several is its name, unless it is not `named`."""
    found = [f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6"/>']
    top = y + height / 2 - (len(lines) - 1) * LINE / 2 + 4.5
    for number, line in enumerate(lines):
        weight = ("small" if number else "name") if named and len(lines) > 1 else ""
        found.append(text(x + width / 2, top + number * LINE, line, f"middle {weight}".strip()))
    return found


def arrow(*points: tuple[float, float]) -> str:
    return '<path class="arrow" d="M' + " L".join(f"{x:g} {y:g}" for x, y in points) + '"/>'


def inner(x: float, y: float, svg: str) -> str:
    """Another SVG, placed at (x, y)."""
    return svg.replace("<svg ", f'<svg x="{x:g}" y="{y:g}" ', 1).strip()
