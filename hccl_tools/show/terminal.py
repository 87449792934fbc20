"""Shows an overview as a table on the terminal, with rich; `colours` decides whether it has colours."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from hccl_tools.common import colours
from hccl_tools.machine import interpreter
from hccl_tools.show import overview

interpreter.new_enough("rich")

Column = tuple[str, bool]  # its name, and whether it is aligned to the right
Row = tuple[list[str], bool]  # its texts, and whether a line is drawn below

_OF_RICH = {colours.FAILURE: "bold red", colours.GOOD: "green"}
_FILE_WIDTH = 160  # columns if stdout is not a terminal: so many that nothing is cut or wrapped


def show(view: overview.Overview) -> None:
    """Prints the Overview on stdout: one line per device if there are few, otherwise one line per run of servers."""
    console = _console()
    devices = sum(len(server.devices) for server in view.servers)
    columns, rows = (_detailed if devices <= overview.MAX_DETAILED else _folded)(view)
    console.print(Text(view.headline))
    console.print(_table(columns, rows, {}))


def show_rows(columns: Sequence[Column], rows: Iterable[Row], styles: Mapping[str, str] | None = None) -> None:
    """Prints rows under columns.  styles: {cell: one of colours.CODES}, for cells of this text."""
    _console().print(_table(columns, rows, styles or {}))


def _console() -> Console:
    coloured = colours.wanted(sys.stdout)
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else _FILE_WIDTH
    return Console(highlight=False, width=width, color_system="standard" if coloured else None)


def _table(columns: Sequence[Column], rows: Iterable[Row], styles: Mapping[str, str]) -> Table:
    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    for name, right in columns:
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    for row, ends_section in rows:
        # Text, because words of a table are not markup
        cells = (Text(cell, style=_OF_RICH.get(styles.get(cell, ""), "")) for cell in row)
        table.add_row(*cells, end_section=ends_section)
    return table


def _detailed(view: overview.Overview) -> tuple[list[Column], list[Row]]:
    pods = any(server.pod for server in view.servers)
    if view.ranks is not None:
        return _detailed_ranks(view)
    columns = [("server", False), ("rank", True), ("device", True), ("device_ip", False)]
    if pods:
        columns += [("super_device_id", True), ("super pod", False)]
    rows: list[Row] = []
    for server in view.servers:
        for index, device in enumerate(server.devices):
            row = [server.name if index == 0 else "", device.rank, device.number, device.address]
            if pods:
                row += [device.super_device_id, (server.pod or "-") if index == 0 else ""]
            rows.append((row, index == len(server.devices) - 1))
    return columns, rows


def _detailed_ranks(view: overview.Overview) -> tuple[list[Column], list[Row]]:
    """Of a version 2.0 table: which rank is where in the networks, and its addresses on each layer."""
    columns = [("network", False), ("rank", True), ("device", True), ("local_id", True), ("addresses", False)]
    rows: list[Row] = []
    for server in view.servers:
        for index, device in enumerate(server.devices):
            name = server.name if index == 0 else ""
            cells = [name, device.rank, device.number, device.local_id, device.address]
            rows.append((cells, index == len(server.devices) - 1))
    return columns, rows


def _folded(view: overview.Overview) -> tuple[list[Column], list[Row]]:
    pods = any(server.pod for server in view.servers)
    first_column, last_column = ("servers", "device_ip") if view.ranks is None else ("networks", "addresses")
    columns = [(first_column, False), ("number", True), ("ranks", False), ("devices", False), (last_column, False)]
    if pods:
        columns.append(("super pod", False))
    rows: list[Row] = []
    for run in view.runs:
        first, last = run[0], run[-1]
        row = [
            first.name if len(run) == 1 else f"{first.name} - {last.name}",
            str(len(run)),
            overview.ranges([device.rank for server in run for device in server.devices]),
            overview.ranges([device.number for device in first.devices]),
            overview.addresses(run),
        ]
        rows.append((row + ([first.pod or "-"] if pods else []), False))
    return columns, rows
