"""Draws an overview as an SVG: one box per server, with its devices in groups and the rank of each.

Lengths are in SVG's user units. A character of the fixed-width font is at most 7.3 units wide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from hccl_tools.common.grouping import grouped
from hccl_tools.show import overview

Box = tuple[int, int, str]  # width, height, body

_CELL, _HEIGHT, _GAP, _PAD = 52, 40, 6, 14  # a device, the space between two, and around a group
_HEAD = 40  # a server's title and second line
_CHARACTER = 7.3
_COLUMNS = 8  # devices in a row, where no group says otherwise
_MAX_WIDTH = 1200
_ALL_DRAWN = 16  # servers; of more, those that are alike share a box

_STYLE = """\
  text { font-family: 'DejaVu Sans Mono', Menlo, Consolas, monospace; font-size: 12px; fill: #1b1f24 }
  .name { font-weight: bold }
  .small { font-size: 11px; fill: #57606a }
  .server { fill: #f6f8fa; stroke: #57606a }
  .group { fill: #ddeaf7; stroke: #8aa9c9 }
  .device { fill: #ffffff; stroke: #8aa9c9 }
"""


def svg(view: overview.Overview) -> str:
    """The drawing of an Overview as the text of an SVG document."""
    runs = [[server] for server in view.servers] if len(view.servers) <= _ALL_DRAWN else view.runs
    boxes = [_server(run, view.group_of, noun="servers" if view.ranks is None else "networks") for run in runs]
    placed, width, height = _placed(boxes)
    width = max(width, _wide(view.headline) + 2 * _PAD)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        f"<title>{_escaped(view.headline)}</title>",
        f"<style>\n{_STYLE}</style>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        _text(_PAD, 22, view.headline, "name"),
    ]
    for x, y, body in placed:
        parts.append(f'<g transform="translate({x},{y})">\n{body}\n</g>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def parts(view: overview.Overview) -> list[str]:
    """The same for a page of HTML: an SVG for each server, narrow enough for a phone.

    It has no colours of its own: the page gives them to the classes server, group, device, name and small.
    """
    return [_part(*_server([server], view.group_of, _COLUMNS // 2), server) for server in view.servers]


def _part(width: int, height: int, body: str, server: overview.Server) -> str:
    said = f"{server.name}: ranks {overview.ranges([device.rank for device in server.devices])}"
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return f'<svg role="img" aria-label="{_escaped(said)}" {size}>\n{body}\n</svg>\n'


def _placed(boxes: Iterable[Box]) -> tuple[list[Box], int, int]:
    """([(x, y, body)], width, height) of the boxes, in rows from left to right."""
    x, y, tallest, widest, placed = _PAD, 36, 0, 0, []
    for width, height, body in boxes:
        if x > _PAD and x + width > _MAX_WIDTH:
            x, y, tallest = _PAD, y + tallest + _PAD, 0
        placed.append((x, y, body))
        x += width + _PAD
        widest, tallest = max(widest, x), max(tallest, height)
    return placed, widest, y + tallest + _PAD


def _server(
    run: Sequence[overview.Server], group_of: Callable[[str], int], columns: int = _COLUMNS, noun: str = "servers"
) -> Box:
    """The box of one server, or of a run of servers that are alike.

    columns: devices in a row, at most.  noun: what they are, several of them.
    """
    first, last = run[0], run[-1]
    name = first.name if len(run) == 1 else f"{first.name} - {last.name}"
    ranks = overview.ranges([device.rank for server in run for device in server.devices])
    note = f"ranks {ranks}" + (f", super pod {first.pod}" if first.pod else "")
    if len(run) > 1:
        note = f"{len(run)} {noun}, {note}"
    x, y, tallest, widest, parts = _PAD, _HEAD, 0, 0, []
    for members in _groups(first.devices, group_of):
        width, height, body = _group(members, len(run) > 1, columns)
        if x > _PAD and x + width > columns * (_CELL + _GAP) + 4 * _PAD:
            x, y, tallest = _PAD, y + tallest + _GAP, 0
        parts.append(f'<g transform="translate({x},{y})">{body}</g>')
        x += width + _GAP
        widest, tallest = max(widest, x), max(tallest, height)
    width = max(widest + _PAD - _GAP, _wide(name) + 2 * _PAD, _wide(note) + 2 * _PAD)
    height = y + tallest + _PAD
    frame = f'<rect class="server" width="{width}" height="{height}" rx="6"/>'
    return width, height, "\n".join([frame, _text(_PAD, 18, name, "name"), _text(_PAD, 33, note, "small"), *parts])


def _groups(devices: Iterable[overview.Device], group_of: Callable[[str], int]) -> list[list[overview.Device]]:
    """The devices of a server as lists, one list per group, in the order of their first devices."""
    groups = grouped((group_of(device.number), device) for device in devices)
    return list(groups.values())


def _group(members: Sequence[overview.Device], run_of_many: bool, most: int) -> Box:
    """The box of one group's devices; in a run the ranks are those of its first server, with "..." behind them."""
    columns = min(len(members), most)
    rows = -(-len(members) // columns)
    width, height = columns * (_CELL + _GAP) + _GAP, rows * (_HEIGHT + _GAP) + _GAP
    parts = [f'<rect class="group" width="{width}" height="{height}" rx="4"/>']
    for index, device in enumerate(members):
        x, y = _GAP + index % columns * (_CELL + _GAP), _GAP + index // columns * (_HEIGHT + _GAP)
        parts.append(_device(x, y, device, device.rank + ("..." if run_of_many else "")))
    return width, height, "".join(parts)


def _device(x: int, y: int, device: overview.Device, rank: str) -> str:
    """One device; its whole text is what a viewer shows under the pointer."""
    hint = f"device {device.number}, rank {device.rank}, {device.address}"
    return (
        f'<g transform="translate({x},{y})"><title>{_escaped(hint)}</title>'
        f'<rect class="device" width="{_CELL}" height="{_HEIGHT}" rx="3"/>'
        + _text(5, 16, f"dev {device.number[:2]}", "small")
        + _text(5, 32, rank[:6], "name")
        + "</g>"
    )


def _text(x: int, y: int, text: str, style: str) -> str:
    return f'<text x="{x}" y="{y}" class="{style}">{_escaped(text)}</text>'


def _wide(text: str) -> int:
    """How wide a text can be; Chinese characters take two places."""
    return int(sum(_CHARACTER if ord(char) < 0x1100 else 2 * _CHARACTER for char in text) + 0.5)


def _escaped(text: str) -> str:
    """`text` for XML; the overview has already made control characters visible, which XML cannot hold."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
